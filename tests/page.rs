//! The page in a real browser: every lesson at its number, wrong inputs, a run to its verdict, and purchases by hand.

use crate::{
    buyers::{text, until},
    instances::cluster,
    support::browser::Browser,
    timeline::{can_run, holds, nothing_went_wrong, press, screenshot, serious, tab, value},
};
use chromiumoxide::Page;
use oversell::{lab::Lab, stock};
use reqwest::{Client, StatusCode};
use serde_json::Value;

type Outcome = Result<(), String>;

const PROJECTOR: [i64; 2] = [1280, 720];
const PHONE: [i64; 2] = [360, 740];

/// Whether the lesson of this id has each of its lines at its number, in the fold of its terminal, with what it prints, and
/// the words that it is to be typed again where it is.
fn lines(id: &str) -> String {
    format!(
        "window.course.chapters.flatMap((c) => c.lessons).find((l) => l.id === '{id}').by_hand
            .every(({{ terminal, run, expect, again }}, i) => {{
                const li = document.querySelector(`#terminals li[value='${{i + 1}}']`);
                const pres = [...li?.querySelectorAll('pre') ?? []].map((pre) => pre.textContent);
                return li?.closest('details').firstElementChild.textContent.endsWith(` ${{terminal}}`)
                    && pres[0] === run && (pres[1] ?? '') === expect && (li.querySelector('p') != null) === again;
            }})"
    )
}

/// Each lesson of `GET /course` and each strategy is found by its address and stands in sight of the list, with its lines to
/// type; what is no lesson is told. Nobody is kept from reading by the size of the screen, and axe finds nothing serious in any view.
pub(crate) async fn every_lesson_stands_at_its_number_and_a_number_that_is_none_is_told() -> Outcome
{
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        let course: Value = Client::new().get(format!("{http}/course")).send().await.map_err(text)?.json().await.map_err(text)?;
        let lessons = course["chapters"].as_array().into_iter().flatten().flat_map(|c| c["lessons"].as_array().into_iter().flatten());
        let ids: Vec<String> = lessons.filter_map(|lesson| lesson["id"].as_str().map(str::to_owned)).collect();
        let page = tab(browser, http, PROJECTOR, "#/1.3").await?;
        shows(&page, "1.3").await?;
        let asked = "fetch('/course').then((r) => r.json()).then((course) => { window.course = course; return true })";
        value::<bool>(&page, asked).await?;
        for id in &ids {
            go(&page, id).await?;
            shows(&page, id).await?;
            in_sight(&page).await.map_err(|why| format!("{id}: {why}"))?;
            holds(&page, &format!("the lines of {id}"), &lines(id)).await?;
        }
        // The twin: a line that says something else is seen, in the turn in which it is written: the page may write its own anew.
        go(&page, "2.3").await?;
        holds(&page, "the lines of 2.3", &lines("2.3")).await?;
        let other = format!("(document.querySelector('#terminals pre').textContent += ' ', {})", lines("2.3"));
        if value(&page, &other).await? {
            return Err("a line that says something else was not seen".into());
        }
        for slug in stock::ALL.iter().map(|strategy| strategy.slug) {
            go(&page, slug).await?;
            holds(&page, slug, &format!("document.getElementById('needs').textContent.startsWith('{slug} ·')")).await?;
        }
        for none in ["9.9", "7.7"] {
            go(&page, none).await?;
            let told = format!(
                "document.getElementById('unknown-text').checkVisibility() && document.getElementById('unknown-text').textContent.includes('{none}')"
            );
            holds(&page, &format!("{none} is told to be none"), &told).await?;
        }

        for (size, view) in [(PROJECTOR, "1.5"), (PROJECTOR, "compare"), (PROJECTOR, "9.9"), (PHONE, "2.3"), (PHONE, "compare")] {
            let page = tab(browser, http, size, &format!("#/{view}")).await?;
            holds(&page, "the list", "document.querySelectorAll('#chapters a').length > 30").await?;
            let wide: bool = value(&page, "document.documentElement.scrollWidth > innerWidth").await?;
            let serious = serious(&page).await?;
            if wide || !serious.is_empty() {
                return Err(format!("{view} at {size:?}: too wide {wide}; {}", serious.join("; ")));
            }
            screenshot(&page, &format!("page-{view}-{}", size[0])).await?;
            nothing_went_wrong(&page).await?;
        }
        Ok(())
    })
    .await
}

/// A number that breaks a rule stays as it was typed, with the rule in words, and nothing is run; the same press with a
/// number that breaks none starts a run, which comes to its verdict. Its result is told from that of other settings.
pub(crate) async fn a_wrong_number_is_kept_and_not_run_and_a_right_one_comes_to_its_verdict()
-> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        let page = tab(browser, http, PROJECTOR, "#/1.3?threads=20&loops=5&hold_ms=5").await?;
        shows(&page, "1.3").await?;
        for (field, wrong) in [("threads", "0"), ("threads", "1e9"), ("loops", "999999999999"), ("hold_ms", "60001"), ("count", "all")] {
            let right: String = value(&page, &format!("document.querySelector('[name={field}]').value")).await?;
            fill(&page, field, wrong).await?;
            let kept = format!(
                "document.querySelector('[name={field}]').value === '{wrong}' && document.getElementById('{field}-wrong').textContent !== ''"
            );
            page.evaluate("document.getElementById('run').click()").await.map_err(text)?;
            holds(&page, &format!("{field} = {wrong} is refused where it stands"), &kept).await?;
            fill(&page, field, &right).await?;
        }
        let current = Client::new().get(format!("{http}/runs/current")).send().await.map_err(text)?;
        if current.status() != StatusCode::NO_CONTENT {
            return Err(format!("a wrong number was run: {}", current.text().await.map_err(text)?));
        }

        can_run(&page).await?;
        press(&page, "#run").await?;
        holds(&page, "the verdict", "document.getElementById('say').textContent.startsWith('对不上')").await?;
        let stale = "document.getElementById('figures').classList.contains('stale')";
        if value(&page, stale).await? {
            return Err("the result of these very settings counts as another's".into());
        }
        fill(&page, "loops", "6").await?;
        holds(&page, "the result is told to be of other settings", stale).await?;
        nothing_went_wrong(&page).await
    })
    .await
}

/// §1.5 by hand: at one instance its mutex lets one in after the other; at three both leave the same number behind.
pub(crate) async fn two_who_buy_at_one_instance_are_exact_where_two_at_three_are_not() -> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        for (target, twice) in [("one", 0), ("three", 1)] {
            let page = tab(browser, http, PROJECTOR, &format!("#/1.5?target={target}&hold_ms=500")).await?;
            shows(&page, "1.5").await?;
            until("both have bought", || async {
                page.evaluate("document.getElementById('buy-two').click()").await.map_err(text)?;
                holds(&page, "both are answered", "document.getElementById('answers').getAttribute('aria-busy') === 'false' && document.querySelectorAll('#answers li').length > 0").await?;
                // nginx takes turns: of two requests that leave together, others may come between.
                let seen: usize = value(&page, "document.querySelectorAll('#answers .twice').length").await?;
                Ok(seen >= twice)
            })
            .await?;
            let seen: usize = value(&page, "document.querySelectorAll('#answers .twice').length").await?;
            if target == "one" && seen > 0 {
                return Err("two at one instance left the same number behind".into());
            }
            nothing_went_wrong(&page).await?;
        }
        Ok(())
    })
    .await
}

/// §3.4.2: with all at the directory each release wakes all who wait, and with each at the node before one. The cure is the twin.
pub(crate) async fn the_herd_is_a_bar_for_each_release_and_with_its_cure_it_is_flat() -> Outcome {
    with_cluster(async |lab, browser| {
        let page = tab(browser, &lab.addresses().http, PROJECTOR, "#/replay/3.4").await?;
        for (cured, sum) in [(false, 1275), (true, 50)] {
            page.evaluate(format!("location.hash = '#/replay/3.4?cured={cured}'")).await.map_err(text)?;
            holds(&page, "which one", &format!("document.querySelector('[name=cured][value={cured}]').checked"))
                .await?;
            press(&page, "#replay-run").await?;
            holds(&page, "the end", "/\\d/.test(document.getElementById('replay-end').textContent)").await?;
            let woken: Vec<usize> = value(
                &page,
                "[...document.querySelectorAll('#woken-bars rect')].map((bar) => Number(bar.getAttribute('height')))",
            )
            .await?;
            let falls = woken.first() > woken.get(25);
            if (woken.len(), woken.iter().sum::<usize>(), falls) != (51, sum, !cured) {
                return Err(format!("cured {cured}: {woken:?}"));
            }
            screenshot(&page, &format!("herd-{cured}")).await?;
        }
        nothing_went_wrong(&page).await
    })
    .await
}

pub(crate) async fn go(page: &Page, name: &str) -> Outcome {
    page.evaluate(format!("location.hash = '#/{name}'"))
        .await
        .map(drop)
        .map_err(text)
}

pub(crate) async fn shows(page: &Page, id: &str) -> Outcome {
    holds(page, id, &format!("document.getElementById('chapter').checkVisibility() && document.getElementById('chapter').textContent === '{id}'")).await
}

/// Whether the entry of the lesson on show is in sight of the list.
async fn in_sight(page: &Page) -> Outcome {
    let sight = "(() => {
        const [list, entry] = ['#lessons', '#chapters [aria-current]'].map((s) => document.querySelector(s).getBoundingClientRect());
        return list.top <= entry.top && entry.bottom <= list.bottom;
    })()";
    if value(page, sight).await? {
        Ok(())
    } else {
        Err("its entry is out of sight".into())
    }
}

/// Types this into a field, and leaves it.
async fn fill(page: &Page, field: &str, typed: &str) -> Outcome {
    let script = format!(
        "(() => {{ const f = document.querySelector('[name={field}]'); f.value = '{typed}';
            for (const name of ['input', 'change']) f.dispatchEvent(new Event(name, {{ bubbles: true }})); }})()"
    );
    page.evaluate(script).await.map(drop).map_err(text)
}

pub(crate) async fn with_cluster(test: impl AsyncFnOnce(&Lab, &Browser) -> Outcome) -> Outcome {
    let lab = cluster(Vec::new()).await?;
    let browser = Browser::start().await?;
    let seen = test(&lab, &browser).await;
    let closed = browser.close().await;
    lab.stop().await;
    seen.and(closed)
}
