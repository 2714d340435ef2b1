//! Verdicts of a run are kept.

use crate::support::{
    http::{answer, client},
    labs, *,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Every instance shows a verdict that one received; a later run replaces it.
#[apply(test!)]
async fn each_instance_serves_the_same_kept_verdicts() -> Result<()> {
    let lab = labs::full_lab().await?;
    let [one, other] = [0, 1].map(|n| format!("{}/course/verdicts", lab.addresses().instances[n].url));
    let put = async |lessons: Value| {
        let body = json!({"conditions": {"cores": 2}, "lessons": lessons});
        answer(client().put(&one).json(&body)).await
    };
    let lesson = |id: &str, verdict: &str| {
        json!({
            "id": id,
            "on": ["oversell"],
            "verdict": verdict,
            "seen": {"zh": "看到", "en": "seen"},
            "figures": {"left": [1]}
        })
    };
    let (status, text) = answer(client().get(&other)).await?;
    ensure!(status == StatusCode::NO_CONTENT, "before the first run: {status} {text}");
    for (wrong, field) in [(lesson("9.9", "reproduced"), "lessons[0].id"), (lesson("1.4", "maybe"), "verdict")] {
        let (status, text) = put(json!([wrong])).await?;
        ensure!(status == StatusCode::BAD_REQUEST && text.contains(field), "{field}: {status} {text}");
    }
    for run in [json!([lesson("1.4", "reproduced"), lesson("1.5", "unavailable")]), json!([lesson("1.5", "not-reproduced")])] {
        let (status, text) = put(run).await?;
        ensure!(status == StatusCode::NO_CONTENT, "{status} {text}");
    }
    let mut kept = Vec::new();
    for url in [&one, &other] {
        kept.push(client().get(url).send().await?.json::<Value>().await?);
    }
    let mut lessons = kept[1]["lessons"].as_array().cloned().unwrap_or_default();
    lessons.sort_by_key(|lesson| lesson["id"].to_string());
    ensure!(
        lessons == [lesson("1.4", "reproduced"), lesson("1.5", "not-reproduced")]
            && kept[0] == kept[1]
            && kept[1]["at"].is_string()
            && kept[1]["conditions"] == json!({"cores": 2}),
        "{kept:?}"
    );
    labs::keep_for_next_test(lab);
    Ok(())
}
