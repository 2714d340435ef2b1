use super::*;
use crate::trials::{MeasuredRate, Observation};
use oversell::{
    claims::{RateSide, RatioClaim, Target, Words},
    load::conditions::Conditions,
    replay::{ReplayEvent, ReplayResult},
};
use oversell_lab::spread::Spread;
use serde_json::{Value, json};
use std::time::Duration;

/// A late delete: A stands still until its lease is over, and deletes B's lock.
fn race() -> PlayedRace {
    let happened = [
        json!({"actor": "step", "event": "step", "value": {"zh": "A 拿锁", "en": "A takes the lock"}}),
        json!({"actor": "A", "instance": "8000", "event": "start", "value": "redis-setnx-ttl"}),
        json!({"actor": "lock", "event": "held", "owner": "A", "pttl": 3000}),
        json!({"actor": "A", "event": "locked"}),
        json!({"actor": "stock", "event": "stock", "value": "5000"}),
        json!({"actor": "A", "event": "read", "value": "5000"}),
        json!({"actor": "A", "event": "stopped"}),
        json!({"actor": "B", "instance": "8100", "event": "start", "value": "redis-setnx-ttl"}),
        json!({"actor": "B", "event": "refused"}),
        json!({"actor": "lock", "event": "expired"}),
        json!({"actor": "lock", "event": "held", "owner": "B", "pttl": 3000}),
        json!({"actor": "B", "event": "locked"}),
        json!({"actor": "A", "event": "continued"}),
        json!({"actor": "A", "event": "written", "value": "4999"}),
        json!({"actor": "stock", "event": "stock", "value": "4999"}),
        json!({"actor": "A", "event": "deleted", "owner": "B", "value": "foreign"}),
        json!({"actor": "lock", "event": "free"}),
        json!({"actor": "B", "event": "unheard-of", "value": "<b>"}),
        json!({"actor": "B", "event": "sold", "value": "4999"}),
    ];
    let event = |(n, mut event): (usize, Value)| -> ReplayEvent {
        event["t_us"] = json!(n * 1000);
        serde_json::from_value(event).unwrap()
    };
    let events = happened.into_iter().enumerate().map(event).collect();
    PlayedRace {
        lesson: "2.2".into(),
        cured: false,
        ends: ReplayResult { sold: 2, gone: 1, inside: 2, notes: String::new(), forced: None, as_meant: true },
        said: Default::default(),
        events,
    }
}

fn tried(id: &str, verdict: ClaimVerdict, with: impl FnOnce(Observation) -> Observation) -> TrialResult {
    let seen = with(Observation::of(verdict, Words::new("看到了", "this was seen")));
    TrialResult::of("1", find(id).unwrap(), None, Ok(seen), Duration::ZERO)
}

fn page() -> String {
    let sale = |oversold: i64| Sale {
        strategy: "mutex".into(),
        target: "three".into(),
        threads: 100,
        loops: 50,
        sold: 5000,
        gone: 5000 - oversold,
        oversold,
        errors: 0,
        retries: None,
        sold_per_sec: 1234.5,
        median_ms: 36.0,
        p99_ms: 98.0,
    };
    let rated = |target| MeasuredRate {
        side: RateSide { strategy: "mutex", target, threads: 100 },
        per_sec: Spread::from_values([900.0, 1100.0]),
    };
    let (first, second) = (rated(Target::Three), rated(Target::One));
    let ratio = Ratio { first, second, ratio: Spread::from_values([0.9, 1.2, 1.5]), failed: 0, says: RatioClaim::Faster };
    let cure = PlayedRace { cured: true, ..race() };
    let sold = |mut seen: Observation| {
        seen.figures.sales = vec![sale(0), sale(4870)];
        seen
    };
    let lessons = vec![
        tried("1.1", ClaimVerdict::Reproduced, |seen| seen.plays([race(), cure])),
        tried("1.4", ClaimVerdict::NotReproduced, sold),
        tried("1.6.2", ClaimVerdict::Noise, |seen| seen.ratios([ratio])),
        tried("1.5", ClaimVerdict::Unavailable, |seen| seen),
    ];
    html(&CourseResults { conditions: Conditions::default(), lessons }).unwrap()
}

#[test]
fn a_report_needs_nothing_else_and_draws_each_form_of_figures() {
    let page = page();
    for foreign in ["<script src", "<link", " src=", "url(http", "@import", "https://"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for drawn in ["超卖</span>", "4,870", "≈", "class=\"over\""] {
        assert!(page.contains(drawn), "{drawn}");
    }
    assert!(page.contains("与上次完整运行不同"), "what came out otherwise says so");
    assert!(!page.contains("<b>\"}"), "an event cannot write into the page");
}

/// What a browser makes of the page, from a file and without a service.
#[test]
fn the_pages_own_timeline_draws_the_races_in_both_languages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (checked, words) in
        [("zh", ["删掉了 B 的锁", "unheard-of &lt;b&gt;"]), ("en", ["deletes the lock of B", "unheard-of &lt;b&gt;"])]
    {
        let page = page().replace(" checked>", ">").replace(&format!("id=\"{checked}\""), &format!("id=\"{checked}\" checked"));
        let file = folder.join(format!("{checked}.html"));
        std::fs::write(&file, page).unwrap();
        let drawn = dom(&file, folder);
        for words in words {
            assert!(drawn.contains(words), "{checked}: {words}");
        }
        for (class, times) in [("class=\"timeline\"", 2), ("class=\"wedge\"", 4)] {
            assert_eq!(drawn.matches(class).count(), times, "{checked}: {class}");
        }
        for kind in ["overlap", "stopped", "waits", "inside", "arrow"] {
            assert!(drawn.contains(&format!("data-kind=\"{kind}\"")), "{checked}: {kind}");
        }
    }
}

/// The page once its scripts have run.
fn dom(file: &std::path::Path, folder: &std::path::Path) -> String {
    let shell = "/usr/bin/chromium-headless-shell";
    let browser = if std::path::Path::new(shell).exists() { shell } else { "chromium" };
    let shown = std::process::Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("Chromium: `scripts/install test` installs it");
    String::from_utf8(shown.stdout).unwrap()
}
