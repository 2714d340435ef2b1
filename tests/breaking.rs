//! Breaking servers and instances by hand, from the page and over HTTP.

use crate::{
    buyers::text,
    instances::cluster,
    support::{
        browser::Browser,
        ordered::{in_a_lab, in_a_lab_of},
    },
    timeline::{can_run, holds, nothing_went_wrong, press, screenshot, serious, tab, value},
};
use chromiumoxide::Page;
use oversell::{addresses::Addresses, lab::Part};
use reqwest::Client;
use serde_json::{Value, json};

type Outcome = Result<(), String>;

const SAY: &str = "document.getElementById('say').textContent";
const ONE_REDIS: &str = "--redis-ports=0";

/// The run waits for the instance that stands still, as the page says of it and of no server, and comes to its verdict once it
/// goes on; so does one of whose instances one was killed and started again.
pub(crate) async fn an_instance_is_paused_and_killed_by_its_button_in_mid_run_and_the_run_comes_to_its_verdict()
-> Outcome {
    in_a_lab(&[ONE_REDIS, "--ways"], async |at| {
        let browser = Browser::start().await?;
        let seen = by_its_button(at, &browser).await;
        seen.and(browser.close().await)
    })
    .await
}

async fn by_its_button(at: &Addresses, browser: &Browser) -> Outcome {
    let victim = at.instances[1].name.as_str();
    // It lasts for twenty seconds: it must still go on when it is paused.
    let page = tab(
        browser,
        &at.http,
        [1280, 720],
        "#/single-update?threads=20&loops=67&hold_ms=300",
    )
    .await?;
    let lit = format!("document.querySelector('#lights .up [data-key=\"{victim}\"]') != null");
    holds(&page, "the lights", &lit).await?;
    run(&page).await?;
    page.evaluate(format!(
        "document.querySelector('#lights [data-key=\"{victim}\"]').click()"
    ))
    .await
    .map_err(text)?;
    act(&page, &format!("pause {victim}")).await?;
    holds(
        &page,
        "it is said to wait for it",
        &format!("{SAY}.startsWith('停住了') && {SAY}.includes('在等 {victim}')"),
    )
    .await?;
    let words = "document.getElementById('notice').textContent";
    holds(
        &page,
        "the notice",
        &format!("{words}.includes('{victim} 没有回应')"),
    )
    .await?;
    let notice: String = value(&page, words).await?;
    if ["mysql", "redis", "zookeeper"]
        .iter()
        .any(|server| notice.contains(&format!("{server} 停了")))
    {
        return Err(format!("a server is blamed: {notice}"));
    }
    // Not for long: after a pause of many seconds some requests may have no answer, and then the verdict is another.
    act(&page, &format!("resume {victim}")).await?;
    holds(
        &page,
        "the verdict",
        &format!("{SAY}.startsWith('分毫不差')"),
    )
    .await?;

    // The one that sends the load stands still: so does the run, and the page says so of it.
    let sender = at.instances[0].name.as_str();
    run(&page).await?;
    page.evaluate(format!(
        "document.querySelector('#breaking-members [data-key=\"{sender}\"]').click()"
    ))
    .await
    .map_err(text)?;
    act(&page, &format!("pause {sender}")).await?;
    holds(
        &page,
        "the sender stands still",
        &format!("{SAY}.startsWith('停在') && {SAY}.includes('{sender} 没有回应')"),
    )
    .await?;
    holds(
        &page,
        "its state in words",
        "document.getElementById('breaking-acts').textContent.includes('像一次很长的 GC')",
    )
    .await?;
    screenshot(&page, "breaking-paused-1280").await?;
    let serious = serious(&page).await?;
    if !serious.is_empty() {
        return Err(serious.join("; "));
    }
    act(&page, &format!("resume {sender}")).await?;
    holds(
        &page,
        "it goes on",
        &format!("/^正在跑|分毫不差/.test({SAY})"),
    )
    .await?;
    page.evaluate(format!(
        "document.querySelector('#breaking-members [data-key=\"{victim}\"]').click()"
    ))
    .await
    .map_err(text)?;
    act(&page, &format!("kill {victim}")).await?;
    holds(
        &page,
        "it can be started",
        &format!("document.querySelector('#breaking-acts [data-key=\"start {victim}\"]') != null"),
    )
    .await?;
    act(&page, "all").await?;
    holds(
        &page,
        "it runs again",
        &format!("document.querySelector('#breaking-acts [data-key=\"pause {victim}\"]') != null"),
    )
    .await?;
    holds(
        &page,
        "the verdict",
        &format!("/分毫不差|不能算数/.test({SAY})"),
    )
    .await?;

    // A way is cut and mended; Escape closes, and leads back to the light.
    act(&page, &format!("cut {victim}-redis")).await?;
    holds(
        &page,
        "it is told",
        "document.getElementById('breaking-acts').textContent.includes('到 redis 断开了')",
    )
    .await?;
    act(&page, &format!("mend {victim}-redis")).await?;
    holds(
        &page,
        "it is mended",
        &format!(
            "document.querySelector('#breaking-acts [data-key=\"cut {victim}-redis\"]') != null"
        ),
    )
    .await?;
    let escape = "document.getElementById('breaking').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))";
    page.evaluate(escape).await.map_err(text)?;
    let closed = format!(
        "document.getElementById('breaking').hidden && document.activeElement.dataset.key === '{victim}'"
    );
    holds(&page, "it is closed", &closed).await?;

    let phone = tab(browser, &at.http, [360, 740], "#/1.3").await?;
    holds(&phone, "the lights", &lit).await?;
    phone
        .evaluate(format!(
            "document.querySelector('#lights [data-key=\"{victim}\"]').click()"
        ))
        .await
        .map_err(text)?;
    holds(
        &phone,
        "its buttons",
        &format!("document.querySelector('#breaking-acts [data-key=\"pause {victim}\"]') != null"),
    )
    .await?;
    screenshot(&phone, "breaking-360").await?;
    if value(&phone, "document.documentElement.scrollWidth > innerWidth").await? {
        return Err("too wide for a phone".into());
    }
    nothing_went_wrong(&phone).await?;
    nothing_went_wrong(&page).await
}

/// Starts a run of what is on show, and waits until it goes on.
async fn run(page: &Page) -> Outcome {
    can_run(page).await?;
    press(page, "#run").await?;
    holds(page, "it runs", &format!("/^正在跑：[1-9]/.test({SAY})")).await
}

/// Presses the button that does this, once it is there.
async fn act(page: &Page, key: &str) -> Outcome {
    let button = format!(
        "document.querySelector('#breaking-acts [data-key=\"{key}\"][aria-disabled=false]')"
    );
    holds(page, key, &format!("{button} != null")).await?;
    page.evaluate(format!("{button}.click()"))
        .await
        .map(drop)
        .map_err(text)
}

/// From the class's page, too: the administrator's token is asked for once, where it is wanted; the instance that stands still is
/// told from those that answer. A phone breaks nothing.
pub(crate) async fn the_class_sees_an_instance_stand_still_that_the_administrator_has_paused()
-> Outcome {
    in_a_lab_of(
        &[("OVERSELL__ADMIN__TOKEN", "open-sesame")],
        &[ONE_REDIS],
        async |at| {
            let browser = Browser::start().await?;
            let seen = with_the_token(at, &browser).await;
            seen.and(browser.close().await)
        },
    )
    .await
}

async fn with_the_token(at: &Addresses, browser: &Browser) -> Outcome {
    let victim = at.instances[1].name.as_str();
    let page = tab(browser, &at.http, [1280, 720], "class.html#/2.10.6").await?;
    let light = format!("document.querySelector('#lights .up [data-key=\"{victim}\"]')");
    holds(&page, "the lights", &format!("{light} != null")).await?;
    page.evaluate(format!("{light}.click()"))
        .await
        .map_err(text)?;
    act(&page, &format!("pause {victim}")).await?;
    let said = "document.getElementById('breaking-said').textContent";
    holds(
        &page,
        "the token is asked for",
        &format!("{said} === '这一步要管理口令。' && document.activeElement.id === 'token'"),
    )
    .await?;
    screenshot(&page, "class-token-1280").await?;
    let type_in = |token: &str| {
        format!(
            "(() => {{ const f = document.getElementById('token'); f.value = '{token}'; f.dispatchEvent(new Event('change')); }})()"
        )
    };
    page.evaluate(type_in("wrong")).await.map_err(text)?;
    holds(
        &page,
        "it is asked for again",
        "document.getElementById('token')?.value === ''",
    )
    .await?;
    page.evaluate(type_in("open-sesame")).await.map_err(text)?;
    holds(
        &page,
        "it is paused",
        &format!(
            "{said}.startsWith('{victim}：暂停了') && document.getElementById('token') == null"
        ),
    )
    .await?;
    let console =
        format!("document.querySelector('#consoles [data-instance=\"{victim}\"] h2').textContent");
    holds(
        &page,
        "its console says so",
        &format!("{console} === '{victim} 停了'"),
    )
    .await?;
    let others = "[...document.querySelectorAll('#consoles h2')].filter((h) => h.textContent.includes('停了')).length";
    holds(
        &page,
        "and no other one's",
        &format!("{others} === 1 && document.getElementById('trouble').textContent.includes('{victim} 没有回应')"),
    )
    .await?;
    screenshot(&page, "class-paused-1280").await?;
    let serious = serious(&page).await?;
    if !serious.is_empty() {
        return Err(serious.join("; "));
    }
    act(&page, "all").await?;
    holds(
        &page,
        "it goes on",
        &format!("{console} === '{victim}' && document.getElementById('trouble').hidden"),
    )
    .await?;

    let phone = tab(browser, &at.http, [360, 740], "class.html#/2.10.6?me").await?;
    holds(
        &phone,
        "its button",
        "document.querySelector('#actions [data-act]') != null",
    )
    .await?;
    if value(&phone, "!document.getElementById('lights').hidden").await? {
        return Err("a phone has lights to press".into());
    }
    nothing_went_wrong(&phone).await?;
    nothing_went_wrong(&page).await
}

/// Where no lab takes orders the lights open the words that say so, and what to type where the servers are in containers.
pub(crate) async fn a_page_whose_servers_no_lab_has_started_says_how_to_break_them() -> Outcome {
    let lab = cluster(vec![Part::Redis, Part::ZooKeeper]).await?;
    let browser = Browser::start().await?;
    let seen = async {
        let page = tab(&browser, &lab.addresses().http, [1280, 720], "#/1.3").await?;
        let light = "document.querySelector('#lights [data-key=mysql]')";
        holds(&page, "the lights", &format!("{light} != null")).await?;
        page.evaluate(format!("{light}.click()"))
            .await
            .map_err(text)?;
        let said =
            "document.getElementById('breaking-acts').textContent.includes('docker compose pause')";
        holds(
            &page,
            "why not",
            &format!("{said} && {light}.getAttribute('aria-expanded') === 'true'"),
        )
        .await?;
        let acts: usize = value(
            &page,
            "document.querySelectorAll('#breaking button').length",
        )
        .await?;
        screenshot(&page, "breaking-nobodys-1280").await?;
        if acts != 1 {
            return Err(format!(
                "{acts} buttons: there is to be the one that closes"
            ));
        }
        nothing_went_wrong(&page).await
    };
    let seen = seen.await;
    let closed = browser.close().await;
    lab.stop().await;
    seen.and(closed)
}

/// By field and rule, or in the words of the lab; while a replay breaks servers, and not while one does not.
pub(crate) async fn an_order_that_cannot_be_carried_out_is_refused_in_words() -> Outcome {
    in_a_lab(&["--redis-ports=0,0,0,0,0"], async |at| {
        let [near, far] = [0, 1].map(|n| at.instances[n].clone());
        let client = Client::new();
        let order = async |action: &str, member: &str| {
            let fault = json!({ "action": action, "member": member });
            let answer = client
                .post(format!("{}/lab/faults", near.url))
                .header("accept", "application/json")
                .json(&fault);
            let answer = answer.send().await.map_err(text)?;
            Ok::<_, String>((
                answer.status().as_u16(),
                answer.json::<Value>().await.map_err(text)?,
            ))
        };
        for (action, member, status, words) in [
            (
                "pause",
                "8888",
                400,
                "member: must be one of mysql, zookeeper, redis",
            ),
            ("break", "redis", 400, "action"),
            ("pause", near.name.as_str(), 400, "is asked itself"),
            ("pause", "nginx", 400, "member: must be one of"),
            ("start", "redis-2", 409, "redis-2 runs already"),
            ("cut", "redis", 409, "`oversell lab --ways`"),
            ("promote", "redis-2", 409, "can be promoted"),
        ] {
            let (seen, said) = order(action, member).await?;
            if seen != status
                || !said["detail"]
                    .as_str()
                    .is_some_and(|detail| detail.contains(words))
            {
                return Err(format!("{action} {member}: {seen} {said}"));
            }
        }
        let paused = order("pause", &far.name).await?;
        let state = |lab: &Value, name: &str| {
            let members = lab["members"].as_array().into_iter().flatten();
            members
                .filter(|m| m["name"] == name)
                .map(|m| m["state"].as_str().unwrap_or_default().to_owned())
                .next()
        };
        if paused.0 != 200 || state(&paused.1, &far.name).as_deref() != Some("paused") {
            return Err(format!("{paused:?}"));
        }
        order("resume", &far.name).await?;

        for (lesson, refused) in [("2.10.4", true), ("1.3", false)] {
            let started = client
                .post(format!("{}/replays/{lesson}?pace=step", far.url))
                .send()
                .await
                .map_err(text)?;
            let started: Value = started.json().await.map_err(text)?;
            let (status, said) = order("pause", "redis-2").await?;
            order("resume", "redis-2").await?;
            let id = started["id"]
                .as_str()
                .ok_or_else(|| format!("{lesson}: {started}"))?;
            client
                .delete(format!("{}/replays/{id}", far.url))
                .send()
                .await
                .map_err(text)?;
            client
                .get(format!("{}/replays/{id}/events", far.url))
                .send()
                .await
                .map_err(text)?
                .text()
                .await
                .map_err(text)?;
            if (status == 409) != refused {
                return Err(format!("while {lesson} is played: {status} {said}"));
            }
        }
        Ok(())
    })
    .await
}
