//! Runs on the page while they go on: their lanes, several side by side, and who comes between.

use crate::{
    buyers::text,
    instances::cluster,
    support::browser::Browser,
    timeline::{can_run, holds, nothing_went_wrong, press, screenshot, serious, tab, value},
};
use chromiumoxide::Page;
use oversell::lab::Lab;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

type Outcome = Result<(), String>;

const SAY: &str = "document.getElementById('say').textContent";
const PROJECTOR: [i64; 2] = [1280, 720];

/// Ten requests without a lock meet inside, and those of a lock do not: a lane for each, in the order in which they got in. Who
/// reads and then writes only what still stands has tries in vain; a single statement has none. Of many requests some are drawn,
/// and are said to be a sample.
pub(crate) async fn the_lanes_of_a_run_overlap_without_a_lock_and_not_with_one() -> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        for (slug, kind, overlaps, vain) in [
            ("none", "inside", true, false),
            ("redis-lock", "inside", false, false),
            ("version-cas", "shared", false, true),
            ("redis-watch", "shared", false, true),
            ("single-update", "shared", false, false),
        ] {
            let page = tab(browser, http, PROJECTOR, &format!("#/{slug}?threads=5&loops=2&hold_ms=100")).await?;
            run(&page).await?;
            let drawn = |kind: &str| format!("document.querySelectorAll('#run-lanes [data-kind={kind}]').length");
            holds(&page, "ten lanes", &format!("{} === 10", drawn(kind))).await?;
            holds(&page, "the end", &format!("/对不上|分毫不差/.test({SAY})")).await?;
            let met: usize = value(&page, &drawn("overlap")).await?;
            let tried: usize = value(&page, &drawn("vain")).await?;
            let in_order = format!("(() => {{ const at = [...document.querySelectorAll('#run-lanes [data-kind={kind}]')].map((b) => b.getBoundingClientRect()); \
                return at.every((b, i) => i === 0 || (b.left >= at[i - 1].left && b.top > at[i - 1].top)); }})()");
            page.evaluate("document.getElementById('run-lanes-part').scrollIntoView({ behavior: 'instant' })").await.map_err(text)?;
            screenshot(&page, &format!("run-lanes-{slug}-1280")).await?;
            if (met > 0, tried > 0) != (overlaps, vain) || !value::<bool>(&page, &in_order).await? {
                return Err(format!("{slug}: {met} overlaps, {tried} tries in vain, or not in the order of their entry"));
            }
            let serious = serious(&page).await?;
            if !serious.is_empty() {
                return Err(serious.join("; "));
            }
            nothing_went_wrong(&page).await?;
        }
        let page = tab(browser, http, PROJECTOR, "#/none?threads=50&loops=10").await?;
        run(&page).await?;
        holds(&page, "it is said to be a sample", "/500 个请求里只画 20 个/.test(document.getElementById('run-lanes-note').textContent)").await?;
        let folded = "document.getElementById('run-lanes-fold').open === false";
        holds(&page, "a sample is folded away", folded).await?;
        page.evaluate("document.querySelector('#run-lanes-fold > summary').click()").await.map_err(text)?;
        holds(&page, "it is drawn", "document.querySelectorAll('#run-lanes [data-kind=inside]').length === 20").await?;
        page.evaluate("document.getElementById('run-lanes-part').scrollIntoView({ behavior: 'instant' })").await.map_err(text)?;
        screenshot(&page, "run-lanes-sample-1280").await?;
        let phone = tab(browser, http, [360, 740], "#/none?threads=5&loops=2&hold_ms=100").await?;
        run(&phone).await?;
        holds(&phone, "lanes", "document.querySelectorAll('#run-lanes [data-kind=inside]').length === 10").await?;
        phone.evaluate("document.getElementById('run-lanes-part').scrollIntoView({ behavior: 'instant' })").await.map_err(text)?;
        screenshot(&phone, "run-lanes-360").await?;
        if value(&phone, "document.documentElement.scrollWidth > innerWidth").await? {
            return Err("too wide for a phone".into());
        }
        nothing_went_wrong(&page).await
    })
    .await
}

/// Two strategies on one instance and on three: a row for each, a picture in each cell; the series has the name that it is
/// given, and its file is JSON that has what is drawn.
pub(crate) async fn a_comparison_has_one_and_three_side_by_side_and_its_file_can_be_read() -> Outcome
{
    with_cluster(async |lab, browser| {
        let page = tab(browser, &lab.addresses().http, PROJECTOR, "#/compare?threads=20&loops=10").await?;
        holds(&page, "the list", "document.querySelectorAll('#pick [type=checkbox]').length > 30").await?;
        // What is downloaded, the test reads.
        let catch = "window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return '#'; }";
        page.evaluate(catch).await.map_err(text)?;
        // Each press makes the boxes anew.
        let only = "for (const { value } of [...document.querySelectorAll('#pick [type=checkbox]')]) { \
            const box = document.querySelector(`#pick [value='${value}']`); \
            if (box.checked !== ['none', 'select-for-update'].includes(value)) box.click(); }";
        page.evaluate(only).await.map_err(text)?;
        can_run(&page).await?;
        press(&page, "#run").await?;
        let pictures = "document.querySelectorAll('#multiples td .multiple').length";
        holds(&page, "two strategies on both", &format!("{pictures} === 4 && document.getElementById('run').textContent === '依次跑'")).await?;
        let red: Vec<bool> =
            value(&page, "[...document.querySelectorAll('#multiples tr')].map((row) => row.querySelector('td.red') != null)").await?;
        if red != [true, false] {
            return Err(format!("oversold: {red:?}"));
        }
        let name = "(() => { const f = document.getElementById('series-name'); f.value = '周一'; f.dispatchEvent(new Event('change', { bubbles: true })); })()";
        page.evaluate(name).await.map_err(text)?;
        page.evaluate("document.getElementById('series-json').click()").await.map_err(text)?;
        holds(&page, "the file", "window.saved.length === 1").await?;
        let file: String = value(&page, "window.saved[0]").await?;
        let file: Value = serde_json::from_str(&file).map_err(text)?;
        let rows: Vec<_> = file["rows"].as_array().into_iter().flatten().map(|row| (row["strategy"].as_str(), row["target"].as_str())).collect();
        let wanted = [("none", "one"), ("none", "three"), ("select-for-update", "one"), ("select-for-update", "three")];
        let wanted: Vec<_> = wanted.into_iter().map(|(strategy, target)| (Some(strategy), Some(target))).collect();
        if file["name"] != "周一" || rows != wanted {
            return Err(format!("the file: {file}"));
        }
        screenshot(&page, "compare-1280").await?;
        nothing_went_wrong(&page).await
    })
    .await
}

/// Whoever buys, resets or starts a run meanwhile is refused in words, or does it elsewhere: the verdict is what it would have
/// been.
pub(crate) async fn a_reset_and_a_second_run_in_mid_run_are_refused_and_change_no_verdict()
-> Outcome {
    with_cluster(async |lab, browser| {
        let (http, client) = (&lab.addresses().http, Client::new());
        let page = tab(browser, http, PROJECTOR, "#/select-for-update?threads=10&loops=20&hold_ms=150").await?;
        run(&page).await?;
        holds(&page, "reset and purchase are dimmed", "['reset', 'buy', 'buy-two'].every((id) => document.getElementById(id).getAttribute('aria-disabled') === 'true') && document.getElementById('shelf-note').textContent.includes('正在跑')").await?;
        page.evaluate("for (const id of ['reset', 'buy', 'buy-two']) document.getElementById(id).click()").await.map_err(text)?;
        // Who opens the page while it goes on is told of it at once, and not when it asks next.
        let other = tab(browser, http, PROJECTOR, "#/none?threads=5&loops=2").await?;
        holds(&other, "the other window", "document.getElementById('chapter').textContent !== ''").await?;
        holds(&other, "whose run is in the way", &format!("{SAY}.startsWith('另一场正在跑：select-for-update')")).await?;
        other.evaluate("document.getElementById('run').click()").await.map_err(text)?;

        let reset = client.put(format!("{http}/stock")).json(&json!({ "count": 7 })).send().await.map_err(text)?.status();
        let second = json!({ "strategy": "none", "threads": 1, "loops": 1 });
        let second = client.post(format!("{http}/runs")).header("accept", "application/json").json(&second).send().await.map_err(text)?;
        let (status, why): (_, Value) = (second.status(), second.json().await.map_err(text)?);
        if reset != StatusCode::OK || status != StatusCode::CONFLICT || why["run"]["strategy"] != "select-for-update" {
            return Err(format!("the reset of product 1: {reset}; the second run: {status} {why}"));
        }
        holds(&page, "the verdict", &format!("{SAY}.startsWith('分毫不差')")).await?;
        let sold: String = value(&page, "document.getElementById('sold').textContent").await?;
        let row: Value = client.get(format!("{http}/runs/current")).send().await.map_err(text)?.json().await.map_err(text)?;
        if sold != "200" || row["row"]["strategy"] != "select-for-update" {
            return Err(format!("sold {sold}; the last run: {row}"));
        }
        nothing_went_wrong(&page).await
    })
    .await
}

/// Whoever comes while a race is played sees it from its beginning, and drives it: the window that has started it after a
/// reload, and another one, which is told that it is another lesson's and led there.
pub(crate) async fn a_replay_under_way_is_joined_after_a_reload_and_from_another_window() -> Outcome
{
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        let page = tab(browser, http, PROJECTOR, "#/replay/2.2").await?;
        holds(&page, "it can be played", "document.getElementById('replay-run').getAttribute('aria-disabled') === 'false'").await?;
        page.evaluate("document.getElementById('replay-pace').value = 'step'").await.map_err(text)?;
        press(&page, "#replay-run").await?;
        let stands = "document.getElementById('replay-run').textContent === '下一步'";
        let told = "document.querySelectorAll('#replay-told li').length";
        holds(&page, "its first step", &format!("{stands} && {told} > 0")).await?;

        let other = tab(browser, http, PROJECTOR, "#/replay/1.3").await?;
        let elsewhere = "document.getElementById('replay-end').textContent.startsWith('正在演第 2.2 课') && !document.getElementById('replay-watch').hidden";
        holds(&other, "it is told of", elsewhere).await?;
        press(&other, "#replay-watch").await?;
        holds(&other, "it is shown", &format!("location.hash === '#/replay/2.2' && {stands} && {told} > 0")).await?;

        page.reload().await.map_err(text)?;
        holds(&page, "it is joined", &format!("{stands} && {told} > 0")).await?;
        let before: usize = value(&page, told).await?;
        press(&page, "#replay-run").await?;
        for window in [&page, &other] {
            holds(window, "the next step", &format!("{told} > {before}")).await?;
        }
        other.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))").await.map_err(text)?;
        for window in [&page, &other] {
            holds(window, "its end", "document.getElementById('replay-run').textContent === '重演'").await?;
            nothing_went_wrong(window).await?;
        }
        Ok(())
    })
    .await
}

/// Starts a run of what is on show.
async fn run(page: &Page) -> Outcome {
    can_run(page).await?;
    press(page, "#run").await?;
    holds(page, "it has begun", &format!("!{SAY}.includes('还没跑')")).await
}

async fn with_cluster(test: impl AsyncFnOnce(&Lab, &Browser) -> Outcome) -> Outcome {
    let lab = cluster(Vec::new()).await?;
    let browser = Browser::start().await?;
    let seen = test(&lab, &browser).await;
    let closed = browser.close().await;
    lab.stop().await;
    seen.and(closed)
}
