//! What the page says, in a real browser: each view in one language, a deadlock in words, and in a form that everybody can read.

use crate::{
    buyers::text,
    page::{go, shows, with_cluster},
    support::browser::Browser,
    timeline::{holds, nothing_went_wrong, press, screenshot, serious, tab, value},
};
use chromiumoxide::Page;
use reqwest::Client;
use serde_json::{Value, json};

type Outcome = Result<(), String>;

const PROJECTOR: [i64; 2] = [1280, 720];
const PHONE: [i64; 2] = [360, 740];

/// What is read in the page, and is in the other language. Code, what a server prints and what says of itself that it is in
/// another language are left out. A word that is missing is `undefined`.
const OTHERS: &str = "(() => {
    const lang = document.documentElement.lang.slice(0, 2);
    const wrong = { en: /[\\u3400-\\u9fff]/, zh: /\\b[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}/ }[lang];
    const own = (e) => e.closest('[lang]').lang.slice(0, 2) === lang && !e.closest('pre, code, .ms, .tried');
    const said = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement;
        if (own(e) && e.checkVisibility() && e.tagName !== 'NOSCRIPT') said.push(walk.currentNode.data);
    }
    for (const e of document.querySelectorAll('[aria-label], [title], [placeholder]'))
        if (own(e)) said.push(e.ariaLabel, e.title, e.placeholder);
    return said.filter((text) => text && (wrong.test(text) || /\\bundefined\\b|\\[object/.test(text))).slice(0, 3);
})()";

/// Both languages have the same words; and each replay's own.
const KEYS: &str = "Promise.all([import('/js/words.js'), fetch('/replays').then((r) => r.json())])
    .then(([{ languages: { zh, en } }, { replays }]) => [
        ...Object.keys(zh).filter((key) => !(key in en)), ...Object.keys(en).filter((key) => !(key in zh)),
        ...replays.flatMap(({ lesson, ends, cured_ends }) => [ends, cured_ends].filter(({ saw, said }) => !saw !== !said.en || !said.en !== !said.zh || /[a-z]{2,}/.test(said.zh)).map(() => lesson)),
    ])";

pub(crate) async fn each_view_is_in_one_language_and_a_word_of_the_other_is_seen() -> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        let page = tab(browser, http, PROJECTOR, "#/1.3").await?;
        shows(&page, "1.3").await?;
        let missing: Vec<String> = value(&page, KEYS).await?;
        if !missing.is_empty() {
            return Err(format!("in one language only: {}", missing.join("; ")));
        }
        let ids = "[...document.querySelectorAll('#chapters a')].map((a) => a.dataset.id)";
        let ids: Vec<String> = value(&page, ids).await?;
        let mut faults = Vec::new();
        for language in ["en", "zh"] {
            press(&page, &format!("#{language}")).await?;
            for id in &ids {
                go(&page, id).await?;
                shows(&page, id).await?;
                let read =
                    "document.getElementById('how').hidden || document.getElementById('steps').children.length > 0";
                holds(&page, "how it is done", read).await?;
                faults.extend(others(&page).await?.into_iter().map(|text| format!("{id}, {language}: {text}")));
            }
            let replays = "[...document.querySelectorAll('#replay-all option')].map((option) => option.value)";
            for view in ["compare", "9.9", "verdicts", "replay/2.3"] {
                go(&page, view).await?;
                faults.extend(others(&page).await?.into_iter().map(|text| format!("{view}, {language}: {text}")));
            }
            for replay in value::<Vec<String>>(&page, replays).await? {
                go(&page, &format!("replay/{replay}")).await?;
                let there = format!("document.getElementById('replay-chapter').textContent === '{replay}'");
                holds(&page, &replay, &there).await?;
                faults.extend(others(&page).await?.into_iter().map(|text| format!("{replay}, {language}: {text}")));
            }
            for other in ["limits.html", "cache.html"] {
                page.goto(format!("{http}/{other}")).await.map_err(text)?;
                holds(&page, other, "document.querySelectorAll('main li').length > 3").await?;
                faults.extend(others(&page).await?.into_iter().map(|text| format!("{other}, {language}: {text}")));
            }
            page.goto(format!("{http}/#/1.3")).await.map_err(text)?;
            shows(&page, "1.3").await?;
        }
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        a_word_of_the_other_is_seen(&page).await
    })
    .await
}

async fn others(page: &Page) -> Result<Vec<String>, String> {
    value(page, OTHERS).await
}

/// Puts this on show in an element of the test's own: into its own ones the page writes anew when it is told something.
fn appended(said: &str) -> String {
    format!(
        "(() => {{ const own = document.createElement('p'); own.id = 'own'; own.textContent = '{said}'; \
         document.querySelector('main').append(own); }})()"
    )
}

/// The twin.
async fn a_word_of_the_other_is_seen(page: &Page) -> Outcome {
    for (language, said) in [
        ("en", "没有跑"),
        ("zh", "not run in this place yet"),
        ("zh", "undefined"),
    ] {
        press(page, &format!("#{language}")).await?;
        page.evaluate(appended(said)).await.map_err(text)?;
        if others(page).await?.is_empty() {
            return Err(format!("{said} was not seen among {language}"));
        }
        page.evaluate("document.getElementById('own').remove()")
            .await
            .map_err(text)?;
    }
    Ok(())
}

/// As MySQL 8 writes it; what MariaDB writes is asked for below.
const OF_MYSQL: &str = r"*** (1) TRANSACTION:
TRANSACTION 1811, ACTIVE 0 sec starting index read
*** (1) HOLDS THE LOCK(S):
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `test`.`deadlock_00000001` trx id 1811 lock_mode X locks rec but not gap
Record lock, heap no 2 PHYSICAL RECORD: n_fields 5; compact format; info bits 0
 0: len 4; hex 8000000a; asc     ;;
*** (1) WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `test`.`deadlock_00000001` trx id 1811 lock_mode X locks rec but not gap waiting
Record lock, heap no 3 PHYSICAL RECORD: n_fields 5; compact format; info bits 0
 0: len 4; hex 80000014; asc     ;;
*** (2) TRANSACTION:
TRANSACTION 1812, ACTIVE 0 sec inserting
*** (2) WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `test`.`deadlock_00000001` trx id 1812 lock_mode X insert intention waiting
Record lock, heap no 1 PHYSICAL RECORD: n_fields 1; compact format; info bits 0
 0: len 8; hex 73757072656d756d; asc supremum;;
*** WE ROLL BACK TRANSACTION (2)
";

/// The cure is the twin: the same view shows no victim and no account of a deadlock.
pub(crate) async fn a_deadlock_is_played_and_told_in_words_and_its_cure_has_no_victim() -> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        let page = tab(browser, http, PROJECTOR, "#/003.deadlock.opposite-order").await?;
        shows(&page, "003.deadlock.opposite-order").await?;
        for (button, said, victims, waits, told) in
            [("deadlock-flaw", "死锁：", 1, 1, 3), ("deadlock-cure", "没有死锁", 0, 0, 0)] {
            press(&page, &format!("#{button}")).await?;
            let ended = format!("document.getElementById('deadlock-say').textContent.startsWith('{said}')");
            holds(&page, button, &ended).await?;
            let count = "['.statements .victim', '.statements .waits', '.account li'].map((s) => document.querySelectorAll(s).length)";
            let seen: [usize; 3] = value(&page, count).await?;
            if (seen[0], seen[2]) != (victims, told) || seen[1] < waits {
                return Err(format!("{button}: victims, waits, sentences {seen:?}"));
            }
            let others = others(&page).await?;
            if !others.is_empty() {
                return Err(others.join("; "));
            }
            screenshot(&page, button).await?;
        }
        let text = serde_json::to_string(OF_MYSQL).map_err(|e| e.to_string())?;
        let account: Value =
            value(&page, &format!("import('/js/innodb.js').then(({{ accountOf }}) => accountOf({text}))")).await?;
        let waits = |of: usize| &account["transactions"][of]["waits"][0];
        let told = (waits(0)["id"].as_i64(), waits(0)["kind"].as_str(), waits(1)["end"].as_bool(), account["rolledBack"].as_i64());
        if told != (Some(20), Some("row"), Some(true), Some(2)) {
            return Err(format!("{account}"));
        }
        nothing_went_wrong(&page).await
    })
    .await
}

/// The smallest type that is read, in px.
const SMALLEST: &str = "Math.min(...[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && !e.closest('.unseen, svg') && \
    [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => parseFloat(getComputedStyle(e).fontSize)))";

/// At 1280 × 720, 20 px can be read from the last row. Without its key the page shows more, and smaller: the twin.
pub(crate) async fn for_the_last_row_nothing_is_small_and_without_the_projector_key_it_is()
-> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        for id in [
            "1.3",
            "2.3.gap",
            "2.10.6",
            "003.deadlock.gap",
            "compare",
            "verdicts",
        ] {
            let page = tab(browser, http, PROJECTOR, &format!("#/{id}")).await?;
            holds(
                &page,
                id,
                "document.querySelectorAll('#chapters a').length > 30",
            )
            .await?;
            if value::<f64>(&page, SMALLEST).await? >= 20.0 {
                return Err(format!("{id}: nothing small without the key"));
            }
            press(&page, "#projector").await?;
            let smallest: f64 = value(&page, SMALLEST).await?;
            let wide: bool =
                value(&page, "document.documentElement.scrollWidth > innerWidth").await?;
            if smallest < 20.0 || wide {
                return Err(format!(
                    "{id}: {smallest} px, wider than the screen: {wide}"
                ));
            }
            screenshot(&page, &format!("projector-{id}")).await?;
        }
        Ok(())
    })
    .await
}

/// A lesson of each kind, dark and on a phone: axe finds nothing serious, and nothing is wider than the screen. Ink that is
/// too pale, and a line that is too long, are found by the same.
pub(crate) async fn dark_and_on_a_phone_everybody_can_read_and_who_cannot_is_seen() -> Outcome {
    with_cluster(async |lab, browser| {
        let http = &lab.addresses().http;
        for size in [PROJECTOR, PHONE] {
            for id in [
                "1.3",
                "2.3.gap",
                "2.4.4.2",
                "2.10.6",
                "002.late-unlock",
                "003.limits",
                "003.deadlock.gap",
            ] {
                let page = tab(browser, http, size, &format!("#/{id}")).await?;
                shows(&page, id).await?;
                page.evaluate("document.documentElement.dataset.theme = 'dark'")
                    .await
                    .map_err(text)?;
                if id.contains("deadlock") {
                    press(&page, "#deadlock-flaw").await?;
                    holds(
                        &page,
                        id,
                        "document.querySelectorAll('.statements tbody tr').length > 6",
                    )
                    .await?;
                }
                page.evaluate(
                    "for (const fold of document.querySelectorAll('details')) fold.open = true",
                )
                .await
                .map_err(text)?;
                let found = unreadable(&page).await?;
                if !found.is_empty() {
                    return Err(format!("{id} at {size:?}: {}", found.join("; ")));
                }
                screenshot(&page, &format!("dark-{id}-{}", size[0])).await?;
                nothing_went_wrong(&page).await?;
                page.close().await.map_err(text)?;
            }
        }
        for size in [PROJECTOR, PHONE] {
            all_verdicts(browser, http, size).await?;
        }
        let page = tab(browser, http, PHONE, "#/2.3.gap").await?;
        shows(&page, "2.3.gap").await?;
        for worse in [
            "document.documentElement.style.setProperty('--dim', '#d0d0d0')".to_owned(),
            appended(&"x".repeat(200)),
        ] {
            page.evaluate(worse.as_str()).await.map_err(text)?;
            if unreadable(&page).await?.is_empty() {
                return Err(format!("not seen: {worse}"));
            }
            page.evaluate("document.documentElement.style.removeProperty('--dim')")
                .await
                .map_err(text)?;
        }
        Ok(())
    })
    .await
}

/// What the last run has found, and what it has not run.
async fn all_verdicts(browser: &Browser, http: &str, size: [i64; 2]) -> Outcome {
    let seen = json!({"zh": "看到了", "en": "it was seen"});
    let kept = json!({"conditions": {}, "lessons": [{"id": "1.3", "verdict": "reproduced", "seen": seen}]});
    let put = Client::new()
        .put(format!("{http}/course/verdicts"))
        .json(&kept)
        .send()
        .await
        .map_err(text)?;
    if !put.status().is_success() {
        return Err(format!("verdicts: {}", put.status()));
    }
    let page = tab(browser, http, size, "#/verdicts").await?;
    let told = "document.querySelectorAll('#verdicts tr').length > 100 && document.querySelectorAll('#verdicts .reproduced').length === 1";
    holds(&page, "the verdicts", told).await?;
    let found = unreadable(&page).await?;
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("verdicts at {size:?}: {}", found.join("; ")))
    }
}

async fn unreadable(page: &Page) -> Result<Vec<String>, String> {
    let mut found = serious(page).await?;
    if value(page, "document.documentElement.scrollWidth > innerWidth").await? {
        found.push("wider than the screen".into());
    }
    Ok(found)
}
