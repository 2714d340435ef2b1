//! Whose trouble it is: an instance's that was stopped or cut off, or a server's.

use crate::{
    buyers::{text, until},
    instances::{MINUTE, check, cluster_with, put_stock, shelf, until_held},
    program,
};
use oversell::lab::Options;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use zookeeper_client::Client as ZooKeeper;

type Outcome = Result<(), String>;

/// What the instance at `base` says of the whole cluster.
async fn lights(client: &Client, base: &str, query: &str) -> Result<(StatusCode, Value), String> {
    let answer = client
        .get(format!("{base}/health/ready{query}"))
        .send()
        .await
        .map_err(text)?;
    Ok((answer.status(), answer.json().await.map_err(text)?))
}

fn says<'a>(lights: &'a Value, instance: &str) -> Vec<&'a str> {
    let notes = lights["notes"].as_array().into_iter().flatten();
    notes
        .filter(|note| note["instance"] == instance)
        .filter_map(|note| note["says"]["en"].as_str())
        .collect()
}

/// A server that one of the instances reaches is never blamed. Where an instance took too long to answer nobody may know of one
/// that reaches it: that is no mistake, and the next look tells.
fn no_server_is_blamed(base: &str, lights: &Value) -> Outcome {
    let up = |of: &Value| of["servers"]["zookeeper"]["up"] == true;
    let reached = lights["instances"].as_array().into_iter().flatten().any(up);
    if reached && !up(lights) {
        Err(format!("{base}: a server is blamed: {lights}"))
    } else {
        Ok(())
    }
}

/// Cut off from ZooKeeper, then stopped for longer than its session lasts, an instance is told apart from the server, by
/// itself as by the others; what it says of itself alone is the twin, which blames the server. A ZooKeeper that is killed
/// is down for all.
pub(crate) async fn an_instance_that_is_cut_off_or_was_stopped_is_no_server_that_is_down() -> Outcome
{
    let lab = cluster_with(Options {
        ways: true,
        ..program()
    })
    .await?;
    let client = Client::new();
    let [near, far] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let all = async |base: &str| lights(&client, base, "?instances=true").await;

    lab.cut(&format!("{}-zookeeper", near.name)).map_err(text)?;
    until("it is cut off", || async {
        Ok(lights(&client, &near.url, "").await?.0 != StatusCode::OK)
    })
    .await?;
    for base in [&near.url, &far.url] {
        until("it is told apart from the server", || async {
            let (status, lights) = all(base).await?;
            no_server_is_blamed(base, &lights)?;
            let blamed = [
                &lights["servers"]["zookeeper"]["up"],
                &lights["instances"][0]["servers"]["zookeeper"]["up"],
            ];
            let words = says(&lights, &near.name).concat();
            Ok(status == StatusCode::OK
                && blamed == [true, false]
                && words.contains("does not reach zookeeper"))
        })
        .await?;
    }
    let (twin, alone) = lights(&client, &near.url, "").await?;
    if twin == StatusCode::OK || alone["servers"]["zookeeper"]["up"] != false {
        return Err(format!(
            "the twin, which asks nobody else, blames nobody: {alone}"
        ));
    }
    lab.mend("zookeeper").map_err(text)?;
    until("all is well", || async {
        Ok(all(&near.url).await?.1["notes"] == json!([]))
    })
    .await?;

    let held = tokio::spawn(
        client
            .get(check(&near.url, "zk-lock", MINUTE, MINUTE))
            .send(),
    );
    until_held(&client, &far.url, "zk-lock").await?;
    let zookeeper = ZooKeeper::connect(&lab.addresses().zookeeper.connect)
        .await
        .map_err(text)?;
    lab.pause(&near.name).map_err(text)?;
    let (_, stopped) = all(&far.url).await?;
    let words: String = stopped["notes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    if stopped["instances"][0]["up"] != false
        || !words.contains("does not answer: no answer within")
    {
        return Err(format!("while it is stopped: {stopped}"));
    }
    until("its session ends", || async {
        Ok(zookeeper
            .list_children("/distributed/zk-lock")
            .await
            .is_ok_and(|nodes| nodes.is_empty()))
    })
    .await?;
    lab.resume(&near.name).map_err(text)?;
    for base in [&near.url, &far.url] {
        until("its lost session is told", || async {
            let (status, lights) = all(base).await?;
            no_server_is_blamed(base, &lights)?;
            let told = says(&lights, &near.name)
                == [format!("{} has lost its ZooKeeper session", near.name)];
            Ok(told && status == StatusCode::OK && lights["servers"]["zookeeper"]["up"] == true)
        })
        .await?;
    }
    held.abort();

    lab.kill("zookeeper").await.map_err(text)?;
    until("it is down for all", || async {
        let (status, lights) = all(&far.url).await?;
        let of_all = lights["notes"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|note| note["instance"].is_null());
        Ok(status == StatusCode::SERVICE_UNAVAILABLE
            && lights["servers"]["zookeeper"]["up"] == false
            && of_all)
    })
    .await?;
    lab.stop().await;
    Ok(())
}

/// Behind nginx an instance is chosen by its name, with the same rule: what it did not answer is sent to no other, which
/// would have sold. Both purchases of "two at once" then meet in one process, whose mutex is enough; through nginx they
/// meet in two, and it is not: the twin.
pub(crate) async fn an_instance_is_chosen_by_its_name() -> Outcome {
    let lab = cluster_with(program()).await?;
    let (client, http) = (Client::new(), lab.addresses().http.clone());
    put_stock(&client, &http, 1000).await?;
    let buy = async |base: &str, hold_ms: u64| {
        let answer = client
            .post(check(base, "mutex", hold_ms, MINUTE))
            .header("accept", "application/json");
        let answer = answer.send().await.map_err(text)?;
        let by = answer
            .headers()
            .get("x-instance")
            .and_then(|name| name.to_str().ok())
            .map(str::to_owned);
        Ok::<_, String>((
            answer.status(),
            by,
            answer.json::<Value>().await.map_err(text)?,
        ))
    };
    for instance in &lab.addresses().instances {
        let base = format!("{http}/instances/{}", instance.name);
        let (first, second) = tokio::try_join!(buy(&base, 300), buy(&base, 300))?;
        let left = [&first, &second].map(|(_, _, sold)| sold["remaining"].as_i64());
        if [&first.1, &second.1] != [&Some(instance.name.clone()); 2] || left[0] == left[1] {
            return Err(format!("both at {}: {first:?} {second:?}", instance.name));
        }
    }
    // Both must have read before either writes.
    let (first, second) = tokio::try_join!(buy(&http, 3000), buy(&http, 3000))?;
    if first.1 == second.1 || first.2["remaining"] != second.2["remaining"] {
        return Err(format!("the twin, at nginx: {first:?} {second:?}"));
    }
    let unknown = client
        .get(format!("{http}/instances/9999/stock"))
        .send()
        .await
        .map_err(text)?
        .status();
    let page = client
        .get(format!(
            "{}/instances/8888/",
            lab.addresses().instances[0].url
        ))
        .send()
        .await;
    let of_another = page.map_err(text)?.status();
    let (victim, other) = (
        &lab.addresses().instances[0].name,
        &lab.addresses().instances[1].url,
    );
    lab.kill(victim).await.map_err(text)?;
    let before = shelf(&client, other).await?;
    let (status, by, answer) = buy(&format!("{http}/instances/{victim}"), 300).await?;
    let gone = before - shelf(&client, other).await?;
    lab.stop().await;
    if (unknown, of_another) != (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND) {
        return Err(format!("names that are none: {unknown} {of_another}"));
    }
    let is_unknown = status == StatusCode::BAD_GATEWAY && answer["outcome"] == "unknown";
    if is_unknown && gone == 0 {
        Ok(())
    } else {
        Err(format!(
            "of a dead one: {status} {by:?} {answer}, {gone} gone"
        ))
    }
}
