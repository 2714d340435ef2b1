//! Runs of load on real servers, while others buy, reset and run beside them.

use crate::{
    buyers::{text, until},
    instances::{check, cluster, put_stock},
};
use futures::future::{join, join_all};
use oversell::{
    lab::{Lab, Part},
    load::{
        Plan, Row,
        run::{Snapshot, run},
        verdict::Verdict,
    },
    stock::{self, Promise},
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), String>;

fn plan(base: &str, target: &str, strategy: &str) -> Plan {
    let mut plan = Plan::new(base, target, strategy);
    (plan.threads, plan.loops, plan.count) = (20, 25, 500);
    plan
}

async fn load(plan: &Plan) -> Result<Row, String> {
    run(
        plan,
        &watch::Sender::new(Snapshot::default()),
        &CancellationToken::new(),
    )
    .await
    .map_err(|e| e.to_string())
}

/// Two runs side by side, and two more from the page of two instances, are exact whoever buys and resets product 1
/// meanwhile; afterwards their products are gone. A run on product 1 itself is not exact. ZooKeeper is down all the
/// while, which none of them needs.
pub(crate) async fn a_run_is_exact_whatever_others_do_meanwhile() -> Outcome {
    let lab = cluster(vec![Part::ZooKeeper]).await?;
    let client = Client::new();
    let (http, first) = (
        lab.addresses().http.clone(),
        lab.addresses().instances[0].url.clone(),
    );
    let second = lab.addresses().instances[1].url.clone();

    // Without ZooKeeper an instance is never ready; it has its tables once the stock can be set.
    for instance in &lab.addresses().instances {
        while put_stock(&client, &instance.url, 1).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    let plans = [
        plan(&http, "three", "single-update"),
        plan(&first, "one", "redis-lock"),
    ];
    let runs = join_all(plans.iter().map(load));
    let pages = async {
        [
            page_run(&client, &first, "single-update").await,
            page_run(&client, &second, "redis-script").await,
        ]
    };
    let (rows, rows_of_pages) = meanwhile(&lab, &client, join(runs, pages)).await;
    for row in rows {
        let row = row?;
        if (row.verdict, row.kept, row.sold, row.retries.is_some())
            != (Verdict::Exact, true, 500, true)
        {
            return Err(format!("others falsify a run: {row:?}"));
        }
    }
    for row in rows_of_pages {
        let row = row?;
        if (&row["verdict"], &row["sold"], &row["after"])
            != (&json!("exact"), &json!(500), &json!(0))
        {
            return Err(format!("others falsify a run of the page: {row}"));
        }
    }
    for plan in &plans {
        let left = client
            .get(format!("{first}/stock?stock_id={}", plan.stock_id))
            .send()
            .await;
        let left = left.map_err(|e| e.to_string())?.status();
        if left != StatusCode::NOT_FOUND {
            return Err(format!("the product of a run is left: {left}"));
        }
    }

    let mut twin = plan(&http, "three", "single-update");
    twin.stock_id = 1;
    let row = meanwhile(&lab, &client, load(&twin)).await?;
    lab.stop().await;
    if row.verdict == Verdict::Exact {
        Err("a run on everybody's product was not falsified".into())
    } else {
        Ok(())
    }
}

/// A run that one instance sends keeps every other from sending one, and the refusal says whose it is. With MySQL gone,
/// which has the lock, a run that does not need MySQL starts, and then a second one in another instance: the twin, in
/// which each instance looks at its own runs only.
pub(crate) async fn one_run_at_a_time_over_all_instances() -> Outcome {
    let lab = cluster(vec![]).await?;
    let client = Client::new();
    let [first, second] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let start = async |base: &str| -> Result<(StatusCode, Value), String> {
        let wanted = json!({"strategy": "redis-script", "threads": 10, "loops": 10_000});
        let answer = client
            .post(format!("{base}/runs"))
            .header("accept", "application/json")
            .json(&wanted);
        let answer = answer.send().await.map_err(text)?;
        Ok((answer.status(), answer.json().await.map_err(text)?))
    };
    let end = async |base: &str, run: &Value| -> Outcome {
        client
            .delete(format!(
                "{base}/runs/{}",
                run["id"].as_str().unwrap_or_default()
            ))
            .send()
            .await
            .map_err(text)?;
        until("it ends", || async {
            let view: Value = client
                .get(format!("{base}/runs/current"))
                .send()
                .await
                .map_err(text)?
                .json()
                .await
                .map_err(text)?;
            Ok(view["state"] == "cancelled")
        })
        .await
    };
    let (_, run) = start(&first.url).await?;
    let (status, refused) = start(&second.url).await?;
    let whose = &refused["run"];
    let is_named = whose["instance"] == first.name.as_str()
        && whose["id"] == run["id"]
        && whose["by"] == "127.0.0.1";
    if status != StatusCode::CONFLICT || !is_named || whose["strategy"] != "redis-script" {
        return Err(format!("beside {run}: {status} {refused}"));
    }
    end(&first.url, &run).await?;
    let (status, run) = start(&second.url).await?;
    if status != StatusCode::ACCEPTED {
        return Err(format!("after the first has ended: {status} {run}"));
    }
    end(&second.url, &run).await?;

    lab.kill("mysql").await.map_err(text)?;
    let both = [start(&first.url).await?, start(&second.url).await?];
    lab.stop().await;
    let started = both
        .iter()
        .all(|(status, _)| *status == StatusCode::ACCEPTED);
    if started {
        Ok(())
    } else {
        Err(format!("without MySQL, which they do not need: {both:?}"))
    }
}

/// Where the section is one, one at a time is inside, over all instances, of whatever kind the lock is; a mutex of the
/// process lets one of each instance in, no lock all, and a shared lock those that will deadlock: the twins. Who waits
/// says how long. Each answer says when its request was inside, or when it tried.
pub(crate) async fn as_many_are_inside_at_once_as_the_lock_lets_in() -> Outcome {
    let lab = cluster(vec![]).await?;
    let (http, one) = (
        lab.addresses().http.clone(),
        lab.addresses().instances[0].url.clone(),
    );
    let short = |base: &str, target: &str, slug: &str| {
        let mut plan = Plan::new(base, target, slug);
        (
            plan.threads,
            plan.loops,
            plan.hold_ms,
            plan.count,
            plan.draws,
        ) = (9, 2, 5, 1000, true);
        plan
    };
    for strategy in stock::ALL.iter() {
        let row = load(&short(&http, "three", strategy.slug)).await?;
        let alone = strategy.promise != Promise::Unsafe && strategy.promise != Promise::OneProcess;
        let as_meant = match row.most_inside {
            None => NO_SECTION.contains(&strategy.slug),
            Some(most) => (most == 1) == (alone && strategy.slug != "select-share"),
        };
        let waited = (row.waited_p50_ms, row.waited_p99_ms, row.waited_max_ms);
        let in_order = waited.0.is_some() && waited.0 <= waited.1 && waited.1 <= waited.2;
        if !as_meant || !in_order {
            return Err(format!(
                "{}: {:?} inside at once, waits {waited:?}",
                strategy.slug, row.most_inside
            ));
        }
        let drawn = row.lanes.map(|lanes| lanes.drawn).unwrap_or_default();
        let tries = NO_SECTION.contains(&strategy.slug);
        if drawn.len() as u64 != row.sold || drawn.iter().any(|lane| lane.vain.is_some() != tries) {
            return Err(format!(
                "{}: {} are sold, and drawn are {drawn:?}",
                strategy.slug, row.sold
            ));
        }
    }
    let mutex = load(&short(&one, "one", "mutex")).await?.most_inside;
    lab.stop().await;
    if mutex == Some(1) {
        Ok(())
    } else {
        Err(format!("{mutex:?} inside one process's mutex"))
    }
}

/// Strategies that try until nobody came between, or leave it to one statement or script: nobody waits to be alone.
const NO_SECTION: [&str; 8] = [
    "single-update",
    "single-update-merged",
    "single-update-buckets",
    "version-cas",
    "version-cas-paced",
    "redis-watch",
    "redis-watch-merged",
    "redis-script",
];

/// One of three instances is stopped in the middle of a run: the run says that all wait in that one, and that nothing is
/// answered any more, which an average hides.
pub(crate) async fn a_run_says_where_its_requests_wait() -> Outcome {
    const THREADS: u64 = 20;
    let lab = cluster(vec![]).await?;
    let (client, nginx, stopped) = (
        Client::new(),
        lab.addresses().http.clone(),
        lab.addresses().instances[1].name.clone(),
    );
    let wanted =
        json!({"strategy": "single-update", "target": "three", "threads": THREADS, "loops": 2000});
    let started = client
        .post(format!("{nginx}/runs"))
        .json(&wanted)
        .send()
        .await
        .map_err(text)?;
    let started: Value = started
        .error_for_status()
        .map_err(text)?
        .json()
        .await
        .map_err(text)?;
    let run = async || -> Result<Value, String> {
        let view = client
            .get(format!("{nginx}/runs/current"))
            .send()
            .await
            .map_err(text)?;
        view.json().await.map_err(text)
    };
    until("all instances say what is under way in them", || async {
        let view = run().await?;
        Ok(view["under_way"]
            .as_object()
            .is_some_and(|all| all.len() == 3)
            && view["snapshot"]["pace"] != 0)
    })
    .await?;
    lab.pause(&stopped).map_err(text)?;
    until("all wait in the one that is stopped", || async {
        let view = run().await?;
        let is_still =
            view["snapshot"]["pace"] == 0 && view["snapshot"]["throughput"].as_f64() > Some(0.0);
        Ok(is_still && view["under_way"][&stopped] == THREADS)
    })
    .await?;
    lab.resume(&stopped).map_err(text)?;
    until("it goes on", || async {
        Ok(run().await?["snapshot"]["pace"] != 0)
    })
    .await?;
    let id = started["id"].as_str().unwrap_or_default();
    client
        .delete(format!("{nginx}/runs/{id}"))
        .send()
        .await
        .map_err(text)?;
    until("it ends", || async {
        Ok(run().await?["state"] == "cancelled")
    })
    .await?;
    lab.stop().await;
    Ok(())
}

/// Buys product 1 and resets it again and again, for as long as `work` takes.
async fn meanwhile<T>(lab: &Lab, client: &Client, work: impl Future<Output = T>) -> T {
    let base = &lab.addresses().instances[2].url;
    let disturb = async {
        loop {
            for _ in 0..5 {
                client
                    .get(check(base, "single-update", 0, 1000))
                    .send()
                    .await
                    .ok();
            }
            put_stock(client, base, 777).await.ok();
        }
    };
    tokio::select! {
        done = work => done,
        () = disturb => unreachable!("it never ends"),
    }
}

/// A run as the page starts it; its row.
async fn page_run(client: &Client, base: &str, strategy: &str) -> Result<Value, String> {
    let wanted = json!({"strategy": strategy, "threads": 20, "loops": 25, "count": 500});
    let started = client
        .post(format!("{base}/runs"))
        .json(&wanted)
        .send()
        .await
        .map_err(|e| e.to_string())?;
    if started.status() != StatusCode::ACCEPTED {
        return Err(started.text().await.unwrap_or_default());
    }
    for _ in 0..600 {
        let view: Value = client
            .get(format!("{base}/runs/current"))
            .send()
            .await
            .map_err(|e| e.to_string())?
            .json()
            .await
            .map_err(|e| e.to_string())?;
        if view["state"] != "running" {
            let why = || format!("the run of the page has no row: {view}");
            return view
                .get("row")
                .filter(|row| row.is_object())
                .cloned()
                .ok_or_else(why);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("a run does not end".into())
}
