//! Orders to break servers and instances that cannot be carried out.

use crate::{buyers::text, support::ordered::in_a_lab};
use reqwest::Client;
use serde_json::{Value, json};

type Outcome = Result<(), String>;

/// By field and rule, or in the words of the lab; while a replay breaks servers, and not while one does not.
pub(crate) async fn an_order_that_cannot_be_carried_out_is_refused_in_words() -> Outcome {
    in_a_lab(&["--redis-ports=0,0,0,0,0"], async |at| {
        let [near, far] = [0, 1].map(|n| at.instances[n].clone());
        let client = Client::new();
        let order = async |action: &str, member: &str| {
            let fault = json!({ "action": action, "member": member });
            let answer = client
                .post(format!("{}/lab/faults", near.url))
                .header("accept", "application/json")
                .json(&fault);
            let answer = answer.send().await.map_err(text)?;
            Ok::<_, String>((
                answer.status().as_u16(),
                answer.json::<Value>().await.map_err(text)?,
            ))
        };
        for (action, member, status, words) in [
            (
                "pause",
                "8888",
                400,
                "member: must be one of mysql, zookeeper, redis",
            ),
            ("break", "redis", 400, "action"),
            ("pause", near.name.as_str(), 400, "is asked itself"),
            ("pause", "nginx", 400, "member: must be one of"),
            ("start", "redis-2", 409, "redis-2 runs already"),
            ("cut", "redis", 409, "`oversell lab --ways`"),
            ("promote", "redis-2", 409, "can be promoted"),
        ] {
            let (seen, said) = order(action, member).await?;
            if seen != status
                || !said["detail"]
                    .as_str()
                    .is_some_and(|detail| detail.contains(words))
            {
                return Err(format!("{action} {member}: {seen} {said}"));
            }
        }
        let paused = order("pause", &far.name).await?;
        let state = |lab: &Value, name: &str| {
            let members = lab["members"].as_array().into_iter().flatten();
            members
                .filter(|m| m["name"] == name)
                .map(|m| m["state"].as_str().unwrap_or_default().to_owned())
                .next()
        };
        if paused.0 != 200 || state(&paused.1, &far.name).as_deref() != Some("paused") {
            return Err(format!("{paused:?}"));
        }
        order("resume", &far.name).await?;

        for (lesson, refused) in [("2.10.4", true), ("1.3", false)] {
            let started = client
                .post(format!("{}/replays/{lesson}?pace=step", far.url))
                .send()
                .await
                .map_err(text)?;
            let started: Value = started.json().await.map_err(text)?;
            let (status, said) = order("pause", "redis-2").await?;
            order("resume", "redis-2").await?;
            let id = started["id"]
                .as_str()
                .ok_or_else(|| format!("{lesson}: {started}"))?;
            client
                .delete(format!("{}/replays/{id}", far.url))
                .send()
                .await
                .map_err(text)?;
            client
                .get(format!("{}/replays/{id}/events", far.url))
                .send()
                .await
                .map_err(text)?
                .text()
                .await
                .map_err(text)?;
            if (status == 409) != refused {
                return Err(format!("while {lesson} is played: {status} {said}"));
            }
        }
        Ok(())
    })
    .await
}
