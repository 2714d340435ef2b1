//! Whether an instance is cut off or stopped, or a server is down.

use crate::support::{
    http::{MINUTE, check_url, client, elements, new_client, put_stock, status, stock},
    *,
};
use oversell::stock::Store;
use oversell_lab::lab::{Lab, Options};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The state of the whole cluster, by the instance at `base`.
async fn lights(base: &str, query: &str) -> Result<(StatusCode, Value)> {
    // Not over a kept connection: an instance that was stopped closes it when it goes on, as the request arrives.
    let answer = new_client().get(format!("{base}/health/ready{query}")).send().await?;
    Ok((answer.status(), answer.json().await?))
}

fn says<'a>(lights: &'a Value, instance: &str) -> Vec<&'a str> {
    elements(&lights["notes"])
        .filter(|note| note["instance"] == instance)
        .filter_map(|note| note["says"]["en"].as_str())
        .collect()
}

/// A server is down only if no instance reaches it. If an instance did not answer in time, nobody may know of one that
/// does: the next look tells.
fn no_server_is_blamed(base: &str, lights: &Value) -> Result<()> {
    let up = |of: &Value| of["servers"]["zookeeper"]["up"] == true;
    let reached = elements(&lights["instances"]).any(up);
    ensure!(!reached || up(lights), "{base}: a server is blamed: {lights}");
    Ok(())
}

/// An instance that is cut off from ZooKeeper, or stopped beyond its session, is told apart from the server, by itself
/// and by the others. Its own view alone is the twin, which blames the server. A killed ZooKeeper is down for all.
#[apply(test!)]
async fn an_instance_cut_off_or_stopped_is_no_server_down() -> Result<()> {
    let lab = Lab::start(Options { links: true, redis_ports: vec![0], ..labs::short_leases() }).await?;
    let [near, far] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let all = async |base: &str| lights(base, "?instances=true").await;

    lab.cut(&format!("{}-zookeeper", near.name))?;
    wait_until("it is cut off", || async { Ok(lights(&near.url, "").await?.0 != StatusCode::OK) }).await?;
    for base in [&near.url, &far.url] {
        wait_until("it is told apart from the server", || async {
            let (status, lights) = all(base).await?;
            no_server_is_blamed(base, &lights)?;
            let blamed = [&lights["servers"]["zookeeper"]["up"], &lights["instances"][0]["servers"]["zookeeper"]["up"]];
            let words = says(&lights, &near.name).concat();
            Ok(status == StatusCode::OK && blamed == [true, false] && words.contains("does not reach zookeeper"))
        })
        .await?;
    }
    let (twin, alone) = lights(&near.url, "").await?;
    ensure!(
        twin != StatusCode::OK && alone["servers"]["zookeeper"]["up"] == false,
        "the twin, which asks nobody else, blames nobody: {alone}"
    );
    lab.mend("zookeeper")?;
    wait_until("all is well", || async { Ok(all(&near.url).await?.1["notes"] == json!([])) }).await?;

    let held = tokio::spawn(status(check_url(&near.url, "zk-lock", MINUTE, MINUTE)));
    let queue = || labs::child_nodes(&lab.addresses().zookeeper.connect, "/distributed/zk-lock");
    wait_until("its node is there", || async { Ok(!queue().await?.is_empty()) }).await?;
    lab.pause(&near.name)?;
    let (_, stopped) = all(&far.url).await?;
    let words: String = elements(&stopped["notes"]).map(Value::to_string).collect();
    ensure!(
        stopped["instances"][0]["up"] == false && words.contains("does not answer: no answer within"),
        "while it is stopped: {stopped}"
    );
    wait_until("its session ends", || async { Ok(queue().await?.is_empty()) }).await?;
    lab.resume(&near.name)?;
    for base in [&near.url, &far.url] {
        wait_until("its lost session is told", || async {
            let (status, lights) = all(base).await?;
            no_server_is_blamed(base, &lights)?;
            let told = says(&lights, &near.name) == [format!("{} has lost its ZooKeeper session", near.name)];
            Ok(told && status == StatusCode::OK && lights["servers"]["zookeeper"]["up"] == true)
        })
        .await?;
    }
    held.abort();

    lab.kill("zookeeper").await?;
    wait_until("it is down for all", || async {
        let (status, lights) = all(&far.url).await?;
        let of_all = elements(&lights["notes"]).any(|note| note["instance"].is_null());
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && lights["servers"]["zookeeper"]["up"] == false && of_all)
    })
    .await?;
    lab.stop().await;
    Ok(())
}

/// Behind nginx an instance is chosen by its name, with the same rule: what it did not answer is sent to no other, which would have
/// sold.
#[apply(test!)]
async fn an_instance_is_chosen_by_its_name() -> Result<()> {
    let mut lab = labs::full_lab().await?;
    let http = lab.addresses().http.clone();
    put_stock(&http, 1000).await?;
    let buy = async |instance: &str| {
        let at = format!("{http}/instances/{instance}");
        let answer = client().post(check_url(&at, "mutex", 0, MINUTE)).header("accept", "application/json");
        let answer = answer.send().await?;
        let by = answer.headers().get("x-instance").and_then(|name| name.to_str().ok()).map(str::to_owned);
        anyhow::Ok((answer.status(), by, answer.json::<Value>().await?))
    };
    for instance in &lab.addresses().instances {
        let sold = buy(&instance.name).await?;
        ensure!(sold.1.as_ref() == Some(&instance.name), "at {}: {sold:?}", instance.name);
    }
    let [victim, other] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let unknown = status(format!("{http}/instances/9999/stock")).await?;
    let of_another = status(format!("{}/instances/8888/", victim.url)).await?;
    ensure!([unknown, of_another] == [StatusCode::NOT_FOUND; 2], "names that are none: {unknown} {of_another}");
    lab.kill(&victim.name).await?;
    let before = stock(&other.url, Store::MySql).await?;
    let (status, by, answer) = buy(&victim.name).await?;
    let gone = before - stock(&other.url, Store::MySql).await?;
    let is_unknown = status == StatusCode::BAD_GATEWAY && answer["outcome"] == "unknown";
    ensure!(is_unknown && gone == 0, "of a dead one: {status} {by:?} {answer}, {gone} gone");
    lab.restart(&victim.name).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
