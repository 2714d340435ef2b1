//! Whose trouble it is: an instance's that was stopped or cut off, or a server's.

use crate::{
    buyers::{text, until},
    instances::{MINUTE, check, cluster_with, until_held},
    program,
};
use oversell::lab::Options;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use zookeeper_client::Client as ZooKeeper;

type Outcome = Result<(), String>;

/// What the instance at `base` says of the whole cluster.
async fn lights(client: &Client, base: &str, query: &str) -> Result<(StatusCode, Value), String> {
    let answer = client.get(format!("{base}/health/ready{query}")).send().await.map_err(text)?;
    Ok((answer.status(), answer.json().await.map_err(text)?))
}

fn says<'a>(lights: &'a Value, instance: &str) -> Vec<&'a str> {
    let notes = lights["notes"].as_array().into_iter().flatten();
    notes.filter(|note| note["instance"] == instance).filter_map(|note| note["says"]["en"].as_str()).collect()
}

/// Cut off from ZooKeeper, then stopped for longer than its session lasts, an instance is told apart from the server, by
/// itself as by the others; what it says of itself alone is the twin, which blames the server. A ZooKeeper that is killed
/// is down for all.
pub(crate) async fn an_instance_that_is_cut_off_or_was_stopped_is_no_server_that_is_down() -> Outcome {
    let lab = cluster_with(Options { ways: true, ..program() }).await?;
    let client = Client::new();
    let [near, far] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let all = async |base: &str| lights(&client, base, "?instances=true").await;

    lab.cut(&format!("{}-zookeeper", near.name)).map_err(text)?;
    until("it is cut off", || async { Ok(lights(&client, &near.url, "").await?.0 != StatusCode::OK) }).await?;
    for base in [&near.url, &far.url] {
        let (status, lights) = all(base).await?;
        let blamed = [&lights["servers"]["zookeeper"]["up"], &lights["instances"][0]["servers"]["zookeeper"]["up"]];
        let words = says(&lights, &near.name).concat();
        if status != StatusCode::OK || blamed != [true, false] || !words.contains("does not reach zookeeper") {
            return Err(format!("{base}, while {} is cut off: {status} {lights}", near.name));
        }
    }
    let (twin, alone) = lights(&client, &near.url, "").await?;
    if twin == StatusCode::OK || alone["servers"]["zookeeper"]["up"] != false {
        return Err(format!("the twin, which asks nobody else, blames nobody: {alone}"));
    }
    lab.mend("zookeeper").map_err(text)?;
    until("all is well", || async { Ok(all(&near.url).await?.1["notes"] == json!([])) }).await?;

    let held = tokio::spawn(client.get(check(&near.url, "zk-lock", MINUTE, MINUTE)).send());
    until_held(&client, &far.url, "zk-lock").await?;
    let zookeeper = ZooKeeper::connect(&lab.addresses().zookeeper.connect).await.map_err(text)?;
    lab.pause(&near.name).map_err(text)?;
    let (_, stopped) = all(&far.url).await?;
    let words: String = stopped["notes"].as_array().into_iter().flatten().map(ToString::to_string).collect();
    if stopped["instances"][0]["up"] != false || !words.contains("does not answer: no answer within") {
        return Err(format!("while it is stopped: {stopped}"));
    }
    until("its session ends", || async {
        Ok(zookeeper.list_children("/distributed/zk-lock").await.is_ok_and(|nodes| nodes.is_empty()))
    })
    .await?;
    lab.resume(&near.name).map_err(text)?;
    for base in [&near.url, &far.url] {
        until("its lost session is told", || async {
            let (status, lights) = all(base).await?;
            if status != StatusCode::OK || lights["servers"]["zookeeper"]["up"] != true {
                return Err(format!("{base}: {status}, a server is blamed: {lights}"));
            }
            Ok(says(&lights, &near.name) == [format!("{} has lost its ZooKeeper session", near.name)])
        })
        .await?;
    }
    held.abort();

    lab.kill("zookeeper").await.map_err(text)?;
    until("it is down for all", || async {
        let (status, lights) = all(&far.url).await?;
        let of_all = lights["notes"].as_array().into_iter().flatten().any(|note| note["instance"].is_null());
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && lights["servers"]["zookeeper"]["up"] == false && of_all)
    })
    .await?;
    lab.stop().await;
    Ok(())
}
