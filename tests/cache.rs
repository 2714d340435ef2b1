//! What a browser may keep: the same headers by nginx and by a lone instance, and what a real browser makes of them.

use crate::{
    buyers::{text, until},
    program,
    support::browser::{Browser, NetworkLog},
};
use chromiumoxide::Page;
use oversell::lab::{Lab, Options, Part};
use reqwest::{Client, header::HeaderMap};
use std::{collections::BTreeMap, path::PathBuf};

type Outcome = Result<(), String>;

/// Each state, and what a second visit costs on the wire.
const STATES: [(&str, Option<i64>); 4] = [
    ("fresh", None),
    ("etag", Some(304)),
    ("last-modified", Some(304)),
    ("never", Some(200)),
];

/// What says who answered, and when; and what nginx can do besides: parts of a file, and a compressed one.
const OF_THE_SERVER: [&str; 7] = [
    "server",
    "date",
    "connection",
    "x-instance",
    "x-request-id",
    "accept-ranges",
    "vary",
];

pub(crate) async fn a_browser_asks_for_what_it_has_as_the_headers_say_and_nginx_and_an_instance_say_the_same()
-> Outcome {
    let dir =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{}", std::process::id()));
    let options = Options {
        without: vec![Part::MySql, Part::Redis, Part::ZooKeeper],
        instance_ports: vec![0],
        redis_ports: vec![0],
        env: vec![("RUST_LOG".into(), "tower_http=debug,oversell=debug".into())],
        dir: Some(dir.clone()),
        ..program()
    };
    let lab = Lab::start(options).await.map_err(text)?;
    let (nginx, instance) = (
        lab.addresses().http.clone(),
        lab.addresses().instances[0].clone(),
    );
    let browser = Browser::start().await?;
    let seen = seen(&browser, &nginx, &instance.url).await;
    let closed = browser.close().await;
    lab.stop().await;
    let log =
        std::fs::read_to_string(dir.join(format!("instance-{}.log", instance.name))).map_err(text);
    std::fs::remove_dir_all(&dir).map_err(text)?;
    seen?;
    closed?;
    let log = log?;
    // Two visits with the browser's cache and one without; and before them a client without any.
    for (state, second) in STATES {
        let asked = log.lines().filter(|line| {
            line.contains(&format!("/cache/{state}.svg")) && line.contains("finished")
        });
        let (asked, wanted) = (asked.count(), if second.is_none() { 2 } else { 3 });
        if asked != wanted + AS_A_CLIENT {
            return Err(format!("the instance was asked {asked} times for {state}"));
        }
    }
    Ok(())
}

async fn seen(browser: &Browser, nginx: &str, instance: &str) -> Outcome {
    the_same_headers(nginx, instance).await?;
    let page = browser.page().await?;
    for base in [nginx, instance] {
        let first = visit(&page, base).await?;
        keeps(&first, &visit(&page, base).await?)?;
        // The twin: a browser that has nothing at its second visit either.
        if keeps(&first, &visit(&browser.private_page().await?, base).await?).is_ok() {
            return Err("a browser that keeps nothing was not seen".into());
        }
    }
    Ok(())
}

/// What came over the wire for each picture, and what the page says of it.
type Visit = BTreeMap<&'static str, (Vec<Option<i64>>, String)>;

async fn visit(page: &Page, base: &str) -> Result<Visit, String> {
    let (log, mut visit) = (NetworkLog::of(page).await?, Visit::new());
    page.goto(format!("{base}/cache.html"))
        .await
        .map_err(text)?;
    for (state, _) in STATES {
        let wire = log.on_the_wire(&format!("/cache/{state}.svg"), 1).await?;
        let words = async || -> Result<String, String> {
            let words = format!("document.getElementById('{state}-said').textContent");
            page.evaluate(words)
                .await
                .map_err(text)?
                .into_value()
                .map_err(text)
        };
        until("the page says what came", || async {
            Ok(!words().await?.is_empty())
        })
        .await?;
        visit.insert(state, (wire, words().await?));
    }
    page.goto("about:blank").await.map_err(text)?;
    Ok(visit)
}

fn keeps(first: &Visit, second: &Visit) -> Outcome {
    let is = |visit: &Visit, state: &str, status: Option<i64>| {
        let words = status.map_or("没有问".to_owned(), |status| status.to_string());
        visit
            .get(state)
            .is_some_and(|(wire, said)| *wire == [status] && said.contains(&words))
    };
    let as_wanted = STATES
        .iter()
        .all(|(state, then)| is(first, state, Some(200)) && is(second, state, *then));
    if as_wanted {
        Ok(())
    } else {
        Err(format!("at first {first:?}, then {second:?}"))
    }
}

/// How often [`the_same_headers`] asks the instance for each file.
const AS_A_CLIENT: usize = 3;

/// Every file of the pages and each state: without a condition, with its ETag, with its time.
async fn the_same_headers(nginx: &str, instance: &str) -> Outcome {
    let files = ["limits.html", "cache.html"].map(str::to_owned);
    for file in STATES
        .iter()
        .map(|(state, _)| format!("cache/{state}.svg"))
        .chain(files)
    {
        let whole = [
            answer(nginx, &file, &[]).await?,
            answer(instance, &file, &[]).await?,
        ];
        let known = |name: &str| {
            whole[0]
                .1
                .get(name)
                .cloned()
                .unwrap_or_else(|| "\"none\"".into())
        };
        let etag = [("if-none-match", known("etag"))];
        let time = [("if-modified-since", known("last-modified"))];
        let by_etag = [
            answer(nginx, &file, &etag).await?,
            answer(instance, &file, &etag).await?,
        ];
        let by_time = [
            answer(nginx, &file, &time).await?,
            answer(instance, &file, &time).await?,
        ];
        for [through_nginx, alone] in [&whole, &by_etag, &by_time] {
            if through_nginx != alone {
                return Err(format!(
                    "{file}: {through_nginx:?} by nginx, {alone:?} by an instance"
                ));
            }
        }
    }
    Ok(())
}

/// Status and headers.
async fn answer(
    base: &str,
    file: &str,
    conditions: &[(&str, String)],
) -> Result<(u16, BTreeMap<String, String>), String> {
    let request = conditions.iter().fold(
        Client::new().get(format!("{base}/{file}")),
        |request, (name, value)| request.header(*name, value),
    );
    let answer = request.send().await.map_err(text)?;
    Ok((answer.status().as_u16(), told(answer.headers())))
}

fn told(headers: &HeaderMap) -> BTreeMap<String, String> {
    let told = headers
        .iter()
        .filter(|(name, _)| !OF_THE_SERVER.contains(&name.as_str()));
    told.map(|(name, value)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    })
    .collect()
}
