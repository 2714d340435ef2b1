//! Verdicts of a run: a broken service yields none, and verdicts are kept.

use crate::support::{
    http::{answer, client},
    labs, *,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, MySqlConnection};
use tokio::process::Command;

/// With no order written, nobody has two orders; that is not what the claim says.
#[apply(test!)]
async fn without_written_orders_no_claim_about_orders_holds() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let mut mysql = MySqlConnection::connect(&at.mysql.url).await?;
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON tb_voucher_order FOR EACH ROW \
                  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no order'";
    mysql.execute(refuse).await?;
    let tried = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .args(["course", "--lang", "en", "--http", &at.http])
        .args(["--instance", &at.instances[0].url])
        .args(["--lesson", "002.user-mutex", "002.conditional"])
        .output()
        .await?;
    mysql.execute("DROP TRIGGER refuse").await?;
    mysql.execute("DELETE FROM course_verdict").await?;
    let said = String::from_utf8_lossy(&tried.stderr);
    ensure!(
        tried.status.code() == Some(1)
            && said.contains("002.user-mutex: not reproduced")
            && said.contains("002.conditional: not reproduced"),
        "{tried:?}"
    );
    labs::keep_for_next_test(lab);
    Ok(())
}

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
    for run in
        [json!([lesson("1.4", "reproduced"), lesson("1.5", "unavailable")]), json!([lesson("1.5", "not-reproduced")])]
    {
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
