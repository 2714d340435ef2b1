//! Faults that cannot be injected.

use crate::support::{
    http::{answer, ask, client, elements},
    *,
};
use oversell_lab::addresses::Addresses;
use serde_json::{Value, json};
use std::path::Path;

/// Refusals name field and rule, or use the lab's words. No fault is accepted while a replay breaks servers.
#[apply(test!)]
async fn an_impossible_fault_is_refused_with_a_reason() -> Result<()> {
    let options = ["--instances=0,0,0", "--redis-ports=0,0,0,0,0"];
    labs::with_lab_command(&options, async |_: &Path, at: Addresses| {
        let [near, far] = [0, 1].map(|n| at.instances[n].clone());
        let inject = async |action: &str, member: &str| {
            let fault = json!({ "action": action, "member": member });
            let request = client().post(format!("{}/lab/faults", near.url)).header("accept", "application/json").json(&fault);
            let (status, body) = answer(request).await?;
            anyhow::Ok((status.as_u16(), serde_json::from_str::<Value>(&body)?))
        };
        for (action, member, status, words) in [
            ("pause", "8888", 400, "member: must be one of mysql, zookeeper, redis"),
            ("break", "redis", 400, "action"),
            ("pause", near.name.as_str(), 400, "is asked itself"),
            ("pause", "nginx", 400, "member: must be one of"),
            ("start", "redis-2", 409, "redis-2 runs already"),
            ("cut", "redis", 409, "`oversell lab --links`"),
            ("promote", "redis-2", 409, "can be promoted"),
        ] {
            let (code, body) = inject(action, member).await?;
            ensure!(
                code == status && body["detail"].as_str().is_some_and(|detail| detail.contains(words)),
                "{action} {member}: {code} {body}"
            );
        }
        let paused = inject("pause", &far.name).await?;
        let state = |lab: &Value, name: &str| {
            let member = elements(&lab["members"]).find(|m| m["name"] == name)?;
            member["state"].as_str().map(str::to_owned)
        };
        ensure!(paused.0 == 200 && state(&paused.1, &far.name).as_deref() == Some("paused"), "{paused:?}");
        inject("resume", &far.name).await?;

        for (lesson, refused) in [("2.10.4", true), ("1.1", false)] {
            let replays = format!("{}/replays", far.url);
            let (_, started) = answer(client().post(format!("{replays}/{lesson}?pace=step"))).await?;
            let (status, body) = inject("pause", "redis-2").await?;
            inject("resume", "redis-2").await?;
            let started: Value = serde_json::from_str(&started)?;
            let id = started["id"].as_str();
            let id = id.with_context(|| format!("{lesson}: {started}"))?;
            client().delete(format!("{replays}/{id}")).send().await?;
            ask(format!("{replays}/{id}/events")).await?;
            ensure!((status == 409) == refused, "while {lesson} is played: {status} {body}");
        }
        Ok(())
    })
    .await
}
