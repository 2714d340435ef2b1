//! The timeline of a replay in a real browser: what is drawn of each event, that no word stands on another, and that
//! everybody can use it. The replays are recorded ones, so that each picture is known.

use crate::{
    buyers::{text, until, until_seen},
    support::{
        browser::Browser,
        recorded::{Stage, up_to},
    },
};
use chromiumoxide::{
    Page,
    cdp::browser_protocol::{
        emulation::SetDeviceMetricsOverrideParams, page::CaptureScreenshotFormat,
    },
    page::ScreenshotParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

type Outcome = Result<(), String>;

/// What a browser finds wrong while a page is used: errors, and what the page's policy forbids.
const LISTEN: &str = "window.wrong = []; const note = (e) => window.wrong.push(String(e.message ?? e.reason ?? \
    e.violatedDirective)); for (const name of ['error', 'unhandledrejection', 'securitypolicyviolation']) \
    addEventListener(name, note);";

/// A tab of this size with the replay in it.
async fn visit(
    browser: &Browser,
    stage: &Stage,
    size: [i64; 2],
    address: &str,
) -> Result<Page, String> {
    let page = tab(browser, &stage.url, size, address).await?;
    holds(
        &page,
        "the view is there",
        "!document.getElementById('replay').hidden",
    )
    .await?;
    Ok(page)
}

/// A tab of this size with this address in it.
async fn tab(
    browser: &Browser,
    base: &str,
    [width, height]: [i64; 2],
    address: &str,
) -> Result<Page, String> {
    let page = browser.private_page().await?;
    let size = SetDeviceMetricsOverrideParams::builder()
        .width(width)
        .height(height);
    let size = size.device_scale_factor(1.0).mobile(width < 600).build()?;
    page.execute(size).await.map_err(text)?;
    page.evaluate_on_new_document(LISTEN).await.map_err(text)?;
    page.goto(format!("{base}/{address}")).await.map_err(text)?;
    Ok(page)
}

/// What this expression comes to in the page; a promise is awaited.
async fn value<T: DeserializeOwned>(page: &Page, expression: &str) -> Result<T, String> {
    page.evaluate(expression)
        .await
        .map_err(text)?
        .into_value()
        .map_err(|error| format!("{expression}: {error}"))
}

async fn holds(page: &Page, what: &str, expression: &str) -> Outcome {
    until_seen(Duration::from_millis(50), what, || value(page, expression)).await
}

/// Presses what the selector finds as soon as a pointer could: it is in sight, and nothing lies over it. Look and press are
/// one turn of the page, so that it does not move between them.
async fn press(page: &Page, selector: &str) -> Outcome {
    let pressed = format!(
        "(() => {{
            const button = document.querySelector('{selector}');
            button?.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            const box = button?.getBoundingClientRect();
            const top = box && document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
            const reached = !!top && !button.disabled && button.contains(top);
            if (reached) button.click();
            return reached;
        }})()"
    );
    holds(page, &format!("a pointer reaches {selector}"), &pressed).await
}

/// Presses the button, and waits until the race has come to its end.
async fn play(page: &Page) -> Outcome {
    holds(
        page,
        "the last one is off the screen",
        "!/\\d/.test(document.getElementById('replay-end').textContent)",
    )
    .await?;
    press(page, "#replay-run").await?;
    holds(
        page,
        "the end",
        "/\\d/.test(document.getElementById('replay-end').textContent)",
    )
    .await
}

/// How many shapes of this kind are drawn.
async fn drawn(page: &Page, kind: &str) -> Result<usize, String> {
    value(
        page,
        &format!(
            "document.querySelectorAll('#replay-lanes [data-kind={kind}]:not(.later)').length"
        ),
    )
    .await
}

/// Whether an arrow ends inside the wedge of another than the lane that it comes from.
async fn an_arrow_ends_in_anothers_wedge(page: &Page) -> Outcome {
    let hit = "(() => {
        const box = (e) => e.getBoundingClientRect();
        const arrow = document.querySelector('#replay-lanes .arrow.red:not(.later)');
        if (!arrow) return 'no arrow';
        const [x, y] = [(box(arrow).left + box(arrow).right) / 2, box(arrow).bottom];
        const wedges = [...document.querySelectorAll('#replay-lanes .wedge')];
        const hit = wedges.find((w) => box(w).left - 2 <= x && x <= box(w).right + 2 && box(w).top <= y && y <= box(w).bottom);
        if (!hit) return 'no wedge';
        const owners = [...document.querySelectorAll('#replay-lanes .owner')];
        return owners.find((o) => Math.abs(box(o).left - box(hit).left) < 12)?.textContent ?? 'no owner';
    })()";
    let owner: String = value(page, hit).await?;
    if owner == "B" {
        Ok(())
    } else {
        Err(format!("the arrow's wedge: {owner}"))
    }
}

/// §2.3, event by event: the lease ends between GET and DEL. Its cure shows neither overlap nor arrow, by the same checks.
pub(crate) async fn the_race_of_2_3_is_drawn_event_by_event_and_its_cure_without_overlap_or_arrow()
-> Outcome {
    with_browser(async |stage, browser| {
        let page = visit(browser, stage, [1280, 720], "#/replay/2.3").await?;
        let entered = |actor: &'static str| {
            up_to("2.3", move |e| e["actor"] == actor && e["event"] == "read")
        };
        let deleted = up_to("2.3", |e| e["value"] == "foreign")?;

        stage.tells(entered("A")?);
        press(&page, "#replay-run").await?;
        holds(
            &page,
            "A is inside",
            "document.querySelectorAll('#replay-lanes [data-kind=inside]').length === 1",
        )
        .await?;
        stage.tells(up_to("2.3", |e| e["event"] == "held" && e["owner"] == "B")?);
        holds(
            &page,
            "B is inside",
            "document.querySelectorAll('#replay-lanes [data-kind=inside]').length === 2",
        )
        .await?;
        // That the lock is B's is told after that B is inside.
        until("both have a wedge", || async {
            Ok(drawn(&page, "wedge").await? == 2)
        })
        .await?;
        for (kind, wanted) in [("overlap", 0), ("arrow", 0), ("stopped", 1), ("wedge", 2)] {
            let seen = drawn(&page, kind).await?;
            if seen != wanted {
                return Err(format!("with A and B: {seen} × {kind}"));
            }
        }
        stage.tells(deleted);
        holds(
            &page,
            "the arrow",
            "document.querySelector('#replay-lanes .arrow.red:not(.later)') != null",
        )
        .await?;
        an_arrow_ends_in_anothers_wedge(&page).await?;
        stage.tells(entered("C")?);
        holds(
            &page,
            "the overlap",
            "document.querySelectorAll('#replay-lanes [data-kind=overlap]').length === 2",
        )
        .await?;
        stage.tells_all();
        holds(
            &page,
            "the verdict",
            "document.getElementById('replay-end').textContent.startsWith('卖出 3，少了 2')",
        )
        .await?;
        an_arrow_ends_in_anothers_wedge(&page).await?;
        let lit: String = value(
            &page,
            "document.querySelector('#replay-source .lit').textContent",
        )
        .await?;
        if !lit.contains("Ok(false)") {
            return Err(format!("B finds that its lock is gone at: {lit}"));
        }

        // Back to before the deletion, and on again.
        page.evaluate("document.activeElement.blur()")
            .await
            .map_err(text)?;
        for (key, want) in [("ArrowLeft", false), ("ArrowRight", true)] {
            until(key, || async {
                send(&page, key).await?;
                Ok((drawn(&page, "arrow").await? == 1) == want)
            })
            .await?;
        }
        send(&page, "ArrowLeft").await?;
        send(&page, " ").await?;
        holds(
            &page,
            "it plays to its end",
            "document.getElementById('replay-at').textContent === '5.44 s'",
        )
        .await?;

        press_cured(&page).await?;
        play(&page).await?;
        if an_arrow_ends_in_anothers_wedge(&page).await.is_ok() {
            return Err("the cure has an arrow".into());
        }
        match drawn(&page, "overlap").await? {
            0 => nothing_went_wrong(&page).await,
            seen => Err(format!("the cure has {seen} overlaps")),
        }
    })
    .await
}

async fn press_cured(page: &Page) -> Outcome {
    page.evaluate("document.querySelector('[name=cured][value=true]').click()")
        .await
        .map_err(text)?;
    holds(
        page,
        "the cure's address",
        "location.hash.endsWith('cured=true')",
    )
    .await
}

/// A key, as if it were typed.
async fn send(page: &Page, key: &str) -> Outcome {
    let event = format!("new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})");
    page.evaluate(format!("document.body.dispatchEvent({event})"))
        .await
        .map(drop)
        .map_err(text)
}

/// Each recorded race, flaw and cure: what may be red is red and nothing else, no word stands on another and none is cut off.
pub(crate) async fn every_race_is_drawn_red_where_it_breaks_and_no_word_stands_on_another()
-> Outcome {
    with_browser(async |stage, browser| {
        for (size, theme, lang) in
            [([1280, 720], "light", "zh"), ([1280, 720], "dark", "en"), ([390, 844], "light", "zh")]
        {
            let page = visit(browser, stage, size, "#/replay").await?;
            let choose = format!(
                "document.getElementById('{lang}').click(); document.documentElement.dataset.theme = '{theme}'"
            );
            page.evaluate(choose).await.map_err(text)?;
            for (lesson, cured) in stage.lessons.iter().flat_map(|lesson| [(lesson, false), (lesson, true)]) {
                let address = format!("#/replay/{lesson}?cured={cured}");
                page.evaluate(format!("location.hash = '{address}'")).await.map_err(text)?;
                let shown = format!("document.getElementById('replay-all').value === '{lesson}'");
                holds(&page, &address, &shown).await?;
                play(&page).await?;
                let name =
                    format!("replay-{lesson}-{}-{}-{theme}-{lang}", if cured { "cure" } else { "flaw" }, size[0]);
                screenshot(&page, &name).await?;
                let context = |why: String| format!("{address} at {size:?} in {lang}: {why}");
                red_where_it_breaks(&page, lesson, cured).await.map_err(context)?;
                no_word_on_another(&page).await.map_err(context)?;
                if size[0] == 1280 {
                    everything_in_sight(&page).await.map_err(context)?;
                }
            }
            nothing_went_wrong(&page).await?;
        }
        // The twin: a word that is pushed onto the one beside it is found.
        let page = visit(browser, stage, [1280, 720], "#/replay/2.3").await?;
        play(&page).await?;
        let push = "(() => { const [a, b] = document.querySelectorAll('#replay-lanes .label'); \
                    a.setAttribute('x', b.getAttribute('x')); a.setAttribute('y', b.getAttribute('y')); })()";
        page.evaluate(push).await.map_err(text)?;
        match no_word_on_another(&page).await {
            Err(_) => Ok(()),
            Ok(()) => Err("a word on another was not seen".into()),
        }
    })
    .await
}

/// Races whose flaw sells no piece twice: it waits for itself, or wakes too many.
const NOTHING_RED: [&str; 2] = ["2.5", "3.4"];

async fn red_where_it_breaks(page: &Page, lesson: &str, cured: bool) -> Outcome {
    let overlaps = drawn(page, "overlap").await?;
    // That the key names its owner, as 2.3 has it, does not keep two from being inside when the job outlives its lease.
    let broken = (!cured && !NOTHING_RED.contains(&lesson)) || (cured && lesson == "2.2");
    let arrows: usize = value(
        page,
        "document.querySelectorAll('#replay-lanes .arrow.red').length",
    )
    .await?;
    let foreign = usize::from(!cured && ["2.2", "2.3"].contains(&lesson));
    if (overlaps > 0) == broken && arrows == foreign {
        Ok(())
    } else {
        Err(format!("{overlaps} overlaps, {arrows} arrows"))
    }
}

async fn no_word_on_another(page: &Page) -> Outcome {
    let met = "(() => {
        const words = [...document.querySelectorAll('#replay-lanes text')].filter((t) => t.textContent.trim() && !t.classList.contains('later'));
        const boxes = words.map((t) => ({ t: t.textContent, b: t.getBBox() }));
        const right = document.querySelector('#replay-lanes svg').width.baseVal.value;
        const met = [];
        boxes.forEach((a, i) => {
            if (a.b.x < -1 || a.b.x + a.b.width > right + 2) met.push(`${a.t} is cut off`);
            boxes.slice(i + 1).forEach((c) => {
                // The letters, without the line's leading.
                const across = Math.min(a.b.x + a.b.width, c.b.x + c.b.width) - Math.max(a.b.x, c.b.x);
                const down = Math.min(a.b.y + a.b.height, c.b.y + c.b.height) - Math.max(a.b.y, c.b.y);
                if (across > 2 && down > 8) met.push(`${a.t} on ${c.t}`);
            });
        });
        return met;
    })()";
    let met: Vec<String> = value(page, met).await?;
    if met.is_empty() {
        Ok(())
    } else {
        Err(met.join("; "))
    }
}

/// At 1280 × 720 lanes and verdict are seen without scrolling, in type of at least 20 px.
async fn everything_in_sight(page: &Page) -> Outcome {
    let sight = "[document.getElementById('replay-end').getBoundingClientRect().bottom <= innerHeight, \
        document.documentElement.scrollWidth <= innerWidth, \
        [...document.querySelectorAll('#replay-lanes .label, #replay-lanes .who')].every((t) => parseFloat(getComputedStyle(t).fontSize) >= 20)]";
    let sight: [bool; 3] = value(page, sight).await?;
    if sight == [true; 3] {
        Ok(())
    } else {
        Err(format!(
            "verdict in sight, nothing too wide, 20 px: {sight:?}"
        ))
    }
}

/// No error, nothing that the page's policy forbids, and no other host asked.
async fn nothing_went_wrong(page: &Page) -> Outcome {
    let wrong: Vec<String> = value(page, "window.wrong").await?;
    let elsewhere = "performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith(location.origin))";
    let elsewhere: Vec<String> = value(page, elsewhere).await?;
    if wrong.is_empty() && elsewhere.is_empty() {
        Ok(())
    } else {
        Err(format!("wrong {wrong:?}, asked for {elsewhere:?}"))
    }
}

/// What axe-core finds that is serious or worse.
async fn serious(page: &Page) -> Result<Vec<String>, String> {
    let axe = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("scripts/lint/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&axe)
        .map_err(|e| format!("{}: {e}: `make test` installs it", axe.display()))?;
    page.evaluate(format!("{axe}; null")).await.map_err(text)?;
    let found: Value = value(page, "axe.run(document).then((found) => found.violations)").await?;
    let found = found.as_array().ok_or("axe said nothing")?;
    let bad = found
        .iter()
        .filter(|v| v["impact"] == "serious" || v["impact"] == "critical");
    Ok(bad
        .map(|v| format!("{}: {}", v["id"], v["nodes"][0]["html"]))
        .collect())
}

/// A button that has lost its name is found by the same axe that finds nothing.
pub(crate) async fn axe_finds_nothing_serious_in_a_replay_and_finds_a_button_without_a_name()
-> Outcome {
    with_browser(async |stage, browser| {
        for (size, theme) in [
            ([1280, 720], "light"),
            ([1280, 720], "dark"),
            ([390, 844], "dark"),
        ] {
            let page = visit(browser, stage, size, "#/replay/2.3").await?;
            page.evaluate(format!(
                "document.documentElement.dataset.theme = '{theme}'"
            ))
            .await
            .map_err(text)?;
            play(&page).await?;
            nothing_went_wrong(&page).await?;
            let serious = serious(&page).await?;
            if !serious.is_empty() {
                return Err(format!("{size:?}, {theme}: {}", serious.join("; ")));
            }
        }
        let page = visit(browser, stage, [1280, 720], "#/replay/2.3").await?;
        page.evaluate(
            "const b = document.getElementById('replay-run'); b.replaceChildren(); b.id = 'lost'",
        )
        .await
        .map_err(text)?;
        match serious(&page).await?.is_empty() {
            false => Ok(()),
            true => Err("axe did not miss the button's name".into()),
        }
    })
    .await
}

/// Once both have been played, and not before, one press shows flaw and cure one above the other, at one scale.
pub(crate) async fn flaw_and_cure_stand_one_above_the_other_at_one_scale_once_both_were_played()
-> Outcome {
    with_browser(async |stage, browser| {
        let together = "!document.getElementById('both').hidden && document.getElementById('replay-lanes').hidden";
        for (lesson, arrows) in [("2.2", 1), ("2.3", 1), ("003.pause", 0)] {
            let page = visit(browser, stage, [1280, 720], &format!("#/replay/{lesson}")).await?;
            play(&page).await?;
            press(&page, "#replay-both").await?;
            if value(&page, together).await? {
                return Err("the cure has not been played".into());
            }
            press_cured(&page).await?;
            play(&page).await?;
            press(&page, "#replay-both").await?;
            holds(&page, "both", together).await?;
            let seen = "['flaw', 'cure'].map((one) => document.querySelectorAll(`#both-${one} .arrow.red`).length)";
            let scale = "['flaw', 'cure'].map((one) => [...document.querySelectorAll(`#both-${one} .axis text`)].map((t) => t.getAttribute('x') + t.textContent).join(' '))";
            let (seen, scale): ([usize; 2], [String; 2]) = (value(&page, seen).await?, value(&page, scale).await?);
            screenshot(&page, &format!("replay-both-{lesson}-1280")).await?;
            if seen != [arrows, 0] || scale[0] != scale[1] || scale[0].is_empty() {
                return Err(format!("{lesson}: arrows {seen:?}, scales {scale:?}"));
            }
            let serious = serious(&page).await?;
            if !serious.is_empty() {
                return Err(serious.join("; "));
            }
            send(&page, "ArrowLeft").await?;
            // Where it stands on the screen changes while it is scrolled.
            page.evaluate("document.getElementById('replay-both').click()").await.map_err(text)?;
            holds(&page, "one again", "document.getElementById('both').hidden").await?;
            nothing_went_wrong(&page).await?;
        }
        Ok(())
    })
    .await
}

/// Two who buy at once by `none` are drawn inside together, in red; by a lock one after the other.
pub(crate) async fn two_who_buy_at_once_are_drawn_together_without_a_lock_and_apart_with_one()
-> Outcome {
    with_browser(async |stage, browser| {
        let page = browser.private_page().await?;
        page.evaluate_on_new_document(LISTEN).await.map_err(text)?;
        page.goto(format!("{}/#/1.3", stage.url))
            .await
            .map_err(text)?;
        for (lesson, together) in [("1.3", 2), ("2.10.1", 0)] {
            page.evaluate(format!("location.hash = '#/{lesson}'"))
                .await
                .map_err(text)?;
            let shown = format!(
                "document.querySelector('#chapters [aria-current]')?.dataset.id === '{lesson}'"
            );
            holds(&page, lesson, &shown).await?;
            press(&page, "#buy-two").await?;
            let count = |kind: &str| {
                format!("document.querySelectorAll('#answers [data-kind={kind}]').length")
            };
            holds(
                &page,
                "both are drawn",
                &format!("{} === 2", count("inside")),
            )
            .await?;
            let seen: usize = value(&page, &count("overlap")).await?;
            if seen != together {
                return Err(format!("{lesson}: {seen} overlaps"));
            }
            page.reload().await.map_err(text)?;
        }
        nothing_went_wrong(&page).await
    })
    .await
}

async fn screenshot(page: &Page, name: &str) -> Outcome {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screens");
    std::fs::create_dir_all(&folder).map_err(text)?;
    let png = ScreenshotParams::builder()
        .format(CaptureScreenshotFormat::Png)
        .build();
    page.save_screenshot(png, folder.join(format!("{name}.png")))
        .await
        .map(drop)
        .map_err(text)
}

/// A test with a page and a browser of its own.
async fn with_browser(test: impl AsyncFnOnce(&Stage, &Browser) -> Outcome) -> Outcome {
    let stage = Stage::start().await?;
    let browser = Browser::start().await?;
    let seen = test(&stage, &browser).await;
    let closed = browser.close().await;
    stage.stop().await;
    seen.and(closed)
}
