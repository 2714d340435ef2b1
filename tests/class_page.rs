//! The class's page in a real browser: thirty at the semaphore, readers and writers in all four orders, the latch; what is red
//! is too many, and one's own lane is marked.

use crate::{
    buyers::text,
    classroom::{ask, ensure, redis},
    program,
    support::browser::Browser,
    timeline::{holds, nothing_went_wrong, press, screenshot, serious, tab, value},
};
use chromiumoxide::Page;
use oversell::lab::{Lab, Options, Part};
use reqwest::Client;
use serde_json::json;

type Outcome = Result<(), String>;

/// What is drawn in every lane: kind, begin and end in pixels.
const BARS: &str = "[...document.querySelectorAll('#lanes .lane')].flatMap((lane) => \
    [...lane.querySelectorAll('[data-kind]')].map((bar) => ({ who: lane.dataset.who, kind: bar.dataset.kind, box: bar.getBoundingClientRect(), \
        shift: lane.parentElement.getBoundingClientRect().left })))";

/// A test with a lab and a browser of its own, and the page at its address.
async fn with_page(
    without: Vec<Part>,
    test: impl AsyncFnOnce(&Lab, &Browser, &str) -> Outcome,
) -> Outcome {
    let options = Options {
        without,
        redis_ports: vec![0],
        ..program()
    };
    let lab = Lab::start(options).await.map_err(text)?;
    let browser = Browser::start().await?;
    let base = lab.addresses().http.clone();
    let seen = test(&lab, &browser, &base).await;
    let closed = browser.close().await;
    lab.stop().await;
    seen.and(closed)
}

/// Opens the page, and waits until it hears the instances.
async fn open(
    browser: &Browser,
    base: &str,
    size: [i64; 2],
    address: &str,
) -> Result<Page, String> {
    let page = tab(browser, base, size, &format!("class.html{address}")).await?;
    holds(
        &page,
        "all three are heard",
        "document.querySelectorAll('#consoles section').length === 3 || /me|herd/.test(location.hash)",
    )
    .await?;
    Ok(page)
}

/// Sends these people from the page, for as long as they stay.
async fn send(page: &Page, visit: &str, names: &[String], hold_ms: u64) -> Outcome {
    let body = json!({ "visit": visit, "names": names, "hold_ms": hold_ms, "wait_ms": 60_000 });
    let sent = format!(
        "fetch('classroom/visits', {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, \
         body: JSON.stringify({body}) }}).then((answer) => answer.status)"
    );
    let status: u16 = value(page, &sent).await?;
    ensure(status == 202, || format!("{visit}: {status}"))
}

fn names(word: &str, many: usize) -> Vec<String> {
    (1..=many).map(|n| format!("{word} {n}")).collect()
}

/// The most bars of being inside that cover one place of the picture, by more than a hair.
fn most_inside_as_drawn() -> String {
    format!(
        "(() => {{ const inside = {BARS}.filter((bar) => bar.kind === 'inside').map(({{ box, shift }}) => [box.left - shift + 1.5, box.right - shift - 1.5]); \
         return Math.max(0, ...inside.map(([at]) => inside.filter(([from, to]) => from <= at && at < to).length)); }})()"
    )
}

async fn red(page: &Page) -> Result<usize, String> {
    value(
        page,
        "document.querySelectorAll('#lanes [data-kind=overlap]').length",
    )
    .await
}

async fn all_have_left(page: &Page, many: usize) -> Outcome {
    let over = format!(
        "document.querySelectorAll('#lanes .lane').length >= {many} && [...document.querySelectorAll('#lanes .lane')].every((lane) => lane.querySelector('[data-kind=inside]')) \
         && /里面 0 人/.test(document.getElementById('state').textContent)"
    );
    holds(page, "all have been inside, and have left", &over).await
}

/// Three permits and thirty people: never more than three inside as drawn, everybody has a lane, nothing is red. The twin: the
/// same with a fourth permit is red.
pub(crate) async fn thirty_at_the_semaphore_are_drawn_three_at_a_time_and_a_fourth_is_red()
-> Outcome {
    with_page(vec![Part::ZooKeeper, Part::MySql], async |lab, browser, base| {
        let page = open(browser, base, [1280, 720], "#/2.10.6").await?;
        send(&page, "/test/semaphore", &names("同学", 30), 500).await?;
        all_have_left(&page, 30).await?;
        screenshot(&page, "class-semaphore-30").await?;
        let (inside, red_ones): (usize, _) = (value(&page, &most_inside_as_drawn()).await?, red(&page).await?);
        ensure((inside, red_ones) == (3, 0), || format!("{inside} inside, {red_ones} red"))?;
        let who: usize =
            value(&page, "new Set([...document.querySelectorAll('#lanes .lane')].map((l) => l.dataset.who)).size")
                .await?;
        ensure(who == 30, || format!("{who} people"))?;
        // An answer that breaks off is none: the page asks again, and goes on with what it has seen.
        let breaks_off = "const whole = fetch; window.broken = 0; window.fetch = (at, how) => { if (!String(at).includes('classroom/objects')) return whole(at, how); \
            window.broken += 1; const body = new ReadableStream({ start: (to) => to.error(new TypeError('cut off')) }); \
            return Promise.resolve(new Response(body, { headers: { 'content-type': 'application/json' } })); };";
        page.evaluate(breaks_off).await.map_err(text)?;
        holds(&page, "it asks again", "window.broken > 1").await?;
        nothing_serious(&page).await?;

        redis(lab, "INCR", "semaphore").await?;
        let twin = open(browser, base, [1280, 720], "#/2.10.6").await?;
        send(&twin, "/test/semaphore", &names("后来的", 8), 60_000).await?;
        holds(
            &twin,
            "four are inside, which is too many",
            "document.getElementById('state').classList.contains('red')",
        )
        .await?;
        holds(&twin, "four are drawn inside", &format!("{} > 3", most_inside_as_drawn())).await?;
        let red_ones = red(&twin).await?;
        screenshot(&twin, "class-semaphore-four").await?;
        ensure(red_ones >= 4, || format!("the twin: {red_ones} red"))?;
        nothing_went_wrong(&twin).await
    })
    .await
}

/// A killed instance takes its permits with it: its lanes end and say so, and the permits that Redis lacks are counted.
pub(crate) async fn a_permit_that_is_lost_with_its_instance_is_told() -> Outcome {
    with_page(vec![Part::ZooKeeper, Part::MySql], async |lab, browser, base| {
        let page = open(browser, base, [1280, 720], "#/2.10.6").await?;
        send(&page, "/test/semaphore", &names("同学", 3), 60_000).await?;
        let state = |words: &str| format!("document.getElementById('state').textContent.includes('{words}')");
        holds(&page, "three are inside", &state("里面 3 人，空着 0 个，等着 0 人")).await?;
        // People are sent in turn, and each has printed a line where it is inside; the page hears of them through the first.
        let killed = &lab.addresses().instances[2].name;
        let there = format!("document.querySelectorAll('#consoles [data-instance=\"{killed}\"] li:not(.dim)').length");
        let there: usize = value(&page, &there).await?;
        ensure((1..=3).contains(&there), || format!("{there} are inside at {killed}"))?;
        lab.kill(killed).await.map_err(text)?;
        let lost = format!("里面 {} 人，空着 0 个，{there} 个随停掉的实例丢了", 3 - there);
        holds(&page, "who was there is lost", &state(&lost)).await?;
        let said = "[...document.querySelectorAll('#lanes [data-kind=end]')].map((end) => end.textContent)";
        let said: Vec<String> = value(&page, said).await?;
        ensure(said == vec!["实例停了"; there], || format!("said {said:?}"))?;
        screenshot(&page, "class-killed").await
    })
    .await
}

/// Where these two are inside, each from and to, in pixels: in one look, for the scale changes as time goes on.
fn stays(a: &str, b: &str) -> String {
    format!(
        "['{a}', '{b}'].map((who) => {BARS}.find((bar) => bar.who === who && ['inside', 'shared'].includes(bar.kind)).box).map(({{ left, right }}) => [left, right])"
    )
}

/// Read and write in two windows, in all four orders, on Redis and on ZooKeeper: readers are drawn together, all others one
/// after the other.
pub(crate) async fn two_windows_on_read_and_write_are_drawn_together_only_where_both_read()
-> Outcome {
    with_page(vec![Part::MySql], async |_, browser, base| {
        four_orders(browser, base, "2.10.5", "/test").await?;
        four_orders(browser, base, "3.7.3", "/test/zk").await
    })
    .await
}

async fn four_orders(browser: &Browser, base: &str, lesson: &str, path: &str) -> Outcome {
    // Who reads together is looked at while both are inside, and stays for as long as that may take: and so comes last.
    for (first, then) in [
        ("read", "write"),
        ("write", "read"),
        ("write", "write"),
        ("read", "read"),
    ] {
        let together = first == then && then == "read";
        let hold_ms = if together { 60_000 } else { 1500 };
        let address = format!("#/{lesson}");
        let (one, other) = (
            open(browser, base, [1280, 720], &address).await?,
            open(browser, base, [1280, 720], &address).await?,
        );
        let (a, b) = (format!("先{first}{then}"), format!("后{first}{then}"));
        send(
            &one,
            &format!("{path}/{first}"),
            std::slice::from_ref(&a),
            hold_ms,
        )
        .await?;
        holds(&other, "the first is inside", &inside(&a)).await?;
        send(
            &other,
            &format!("{path}/{then}"),
            std::slice::from_ref(&b),
            hold_ms,
        )
        .await?;
        // What two instances tell need not come in the order in which it happened.
        holds(
            &one,
            "the second is inside, too",
            &format!("{} && {}", inside(&a), inside(&b)),
        )
        .await?;
        if together {
            stands(&one, "在读 2 人，在写 0 人").await?;
            let drawn = format!(
                "(([[from, to], [next]]) => from < next && next < to - 8)({})",
                stays(&a, &b)
            );
            holds(&one, "they are drawn together", &drawn).await?;
        } else {
            stands(&one, "在读 0 人，在写 0 人").await?;
            let [(from, to), (next, _)]: [(f64, f64); 2] = value(&one, &stays(&a, &b)).await?;
            ensure(from < next && next >= to - 8.0, || {
                format!("{lesson}: {first}, {then}: {from} to {to}, then {next}")
            })?;
        }
        ensure(red(&one).await? == 0, || {
            format!("{lesson}: {first}, {then}: red")
        })?;
        screenshot(&one, &format!("class-{lesson}-{first}-{then}")).await?;
        nothing_serious(&one).await?;
    }
    Ok(())
}

fn inside(who: &str) -> String {
    format!(
        "[...document.querySelectorAll('#lanes .lane')].some((lane) => lane.dataset.who === '{who}' && lane.querySelector('[data-kind=inside], [data-kind=shared]'))"
    )
}

/// The monitor waits until six have left; a phone comes by itself, sees its own lane marked, and fits.
pub(crate) async fn the_monitor_waits_for_six_and_a_phone_sees_its_own_lane() -> Outcome {
    with_page(vec![Part::ZooKeeper, Part::MySql], async |_, browser, base| {
        let page = open(browser, base, [1280, 720], "#/2.10.7").await?;
        let act = |name: &str| format!("document.querySelector('[data-act={name}]').click()");
        page.evaluate(act("latch")).await.map_err(text)?;
        let waits = "document.querySelector('#lanes .lane[data-who=班长] [data-kind=waits]') != null && !document.querySelector('#lanes .lane[data-who=班长] [data-kind=dot]')";
        holds(&page, "the monitor waits", waits).await?;
        for left in (0..6).rev() {
            ensure(value(&page, waits).await?, || format!("the monitor goes with {} in the room", left + 1))?;
            page.evaluate(act("countdown")).await.map_err(text)?;
            let said = if left == 0 { "六位都出来了".to_owned() } else { format!("还有 {left} 位没出来") };
            holds(&page, &said, &format!("document.getElementById('state').textContent.includes('{said}')")).await?;
        }
        holds(&page, "the monitor's bar ends", "document.querySelector('#lanes .lane[data-who=班长] [data-kind=dot]') != null").await?;
        screenshot(&page, "class-latch").await?;
        nothing_serious(&page).await?;

        let phone = open(browser, base, [360, 740], "#/2.10.6?me").await?;
        phone.evaluate(act("semaphore")).await.map_err(text)?;
        holds(&phone, "a name is wanted", "document.getElementById('notice').textContent.includes('名字')").await?;
        let name = "document.getElementById('who').value = '<b>小明</b>'; document.getElementById('who').dispatchEvent(new Event('input'))";
        phone.evaluate(name).await.map_err(text)?;
        // Two stay; the third hangs up, which lets the phone in, only when it was seen to wait.
        send(&phone, "/test/semaphore", &names("同学", 2), 60_000).await?;
        let third = tokio::spawn(ask(&Client::new(), format!("{base}/test/semaphore?hold_ms=60000&who=同学")));
        holds(&phone, "three are inside", "/里面 3 人/.test(document.getElementById('state').textContent)").await?;
        phone.evaluate(act("semaphore")).await.map_err(text)?;
        let own = "document.querySelector('#lanes .lane.mine')?.dataset.who === '<b>小明</b>' && document.querySelectorAll('#lanes .lane.mine').length === 1";
        holds(&phone, "the own lane is marked", own).await?;
        holds(&phone, "it waits", "document.getElementById('mine').textContent.includes('在等')").await?;
        third.abort();
        holds(&phone, "it is inside", "document.getElementById('mine').textContent.includes('在里面')").await?;
        screenshot(&phone, "class-phone").await?;
        let fits: bool = value(&phone, "document.documentElement.scrollWidth <= innerWidth").await?;
        ensure(fits, || "it is too wide for a phone".into())?;
        nothing_serious(&phone).await?;

        // In every lesson, in English and in the dark; and the code for phones.
        for address in ["#/2.10.2", "#/2.10.5", "#/2.10.6", "#/2.10.7", "#/3.4.2.herd", "#/3.7.6", "#/3.7.6.barrier", "#/3.7.6?me"] {
            let page = open(browser, base, if address.ends_with("me") { [360, 740] } else { [1280, 720] }, address).await?;
            page.evaluate("document.documentElement.dataset.theme = 'dark'; document.getElementById('en').click()").await.map_err(text)?;
            holds(&page, "it has its title", "document.getElementById('title').textContent.length > 0").await?;
            nothing_serious(&page).await.map_err(|why| format!("{address}: {why}"))?;
        }
        let page = open(browser, base, [1280, 720], "#/2.10.6").await?;
        press(&page, "#phone").await?;
        holds(&page, "the address is asked for", "!document.getElementById('scan-ask').hidden").await?;
        let typed = "document.getElementById('address').value = '192.168.1.5:8080'; document.getElementById('address').dispatchEvent(new Event('input'))";
        page.evaluate(typed).await.map_err(text)?;
        holds(&page, "the code is there", "document.getElementById('code').naturalWidth > 0").await?;
        screenshot(&page, "class-scan").await?;
        nothing_serious(&page).await
    })
    .await
}

/// Waits until these words say how it stands; where they never do, the page's own say why.
async fn stands(page: &Page, words: &str) -> Outcome {
    let so = format!("document.getElementById('state').textContent.includes('{words}')");
    let Err(never) = holds(page, words, &so).await else {
        return Ok(());
    };
    let said: String = value(page, "document.querySelector('main').innerText").await?;
    Err(format!("{never}; the page says: {said}"))
}

/// ZooKeeper's lessons: who waits at the barrier goes on together, who meets enters and leaves together, five of ten have a
/// lease, and of the herd all are woken each time, or one.
pub(crate) async fn who_waits_at_a_barrier_goes_on_together_and_a_herd_is_drawn() -> Outcome {
    with_page(vec![Part::MySql], async |_, browser, base| {
        let act = |name: &str| format!("document.querySelector('[data-act={name}]').click()");
        let count = |kind: &str| format!("document.querySelectorAll('#lanes [data-kind={kind}]').length");
        let page = open(browser, base, [1280, 720], "#/3.7.6.barrier").await?;
        stands(&page, "栅栏开着").await?;
        page.evaluate(act("set")).await.map_err(text)?;
        stands(&page, "栅栏关着").await?;
        page.evaluate(act("wait-5")).await.map_err(text)?;
        stands(&page, "等着 5 人").await?;
        let through: usize = value(&page, &count("dot")).await?;
        ensure(through == 1, || format!("the barrier was set, and {} went through", through as i64 - 1))?;
        page.evaluate(act("remove")).await.map_err(text)?;
        holds(&page, "five went through", &format!("{} === 7", count("dot"))).await?;
        screenshot(&page, "class-barrier").await?;
        nothing_serious(&page).await?;

        let page = open(browser, base, [1280, 720], "#/3.7.6").await?;
        page.evaluate(act("enter")).await.map_err(text)?;
        stands(&page, "里面 0 人，等人到齐的 1 人").await?;
        for n in 2..=3 {
            page.evaluate(act("enter")).await.map_err(text)?;
            let words = if n == 3 { "里面 3 人，等人到齐的 0 人" } else { "里面 0 人，等人到齐的 2 人" };
            stands(&page, words).await?;
        }
        page.evaluate(act("leave")).await.map_err(text)?;
        stands(&page, "里面 0 人，等人到齐的 0 人").await?;
        let seen: [usize; 2] = value(&page, &format!("[{}, {}]", count("inside"), count("overlap"))).await?;
        ensure(seen == [3, 0], || format!("inside and red: {seen:?}"))?;
        screenshot(&page, "class-meeting").await?;
        nothing_serious(&page).await?;

        let page = open(browser, base, [1280, 720], "#/3.7.5").await?;
        send(&page, "/test/zk/semaphore", &names("同学", 10), 2500).await?;
        all_have_left(&page, 10).await?;
        let (most, red_ones): (usize, _) = (value(&page, &most_inside_as_drawn()).await?, red(&page).await?);
        ensure((most, red_ones) == (5, 0), || format!("{most} inside, {red_ones} red"))?;
        screenshot(&page, "class-leases").await?;
        nothing_serious(&page).await?;

        let page = open(browser, base, [1280, 720], "#/3.4.2.herd").await?;
        // Its words come with what it does.
        holds(&page, "its button", "document.getElementById('herd-run')?.textContent.length > 0").await?;
        press(&page, "#herd-run").await?;
        let rows = "[...document.querySelectorAll('.herd svg')].map((row) => [...row.querySelectorAll('rect')].slice(0, 3).map((bar) => Number(bar.dataset.n)))";
        // Fifty sessions take their time where the machine is busy.
        holds(&page, "both rows of the herd", &format!("{rows}.length === 2")).await?;
        let seen: Vec<Vec<u64>> = value(&page, rows).await?;
        ensure(seen == [[50, 49, 48], [1, 1, 1]], || format!("woken {seen:?}"))?;
        screenshot(&page, "class-herd").await?;
        nothing_serious(&page).await
    })
    .await
}

async fn nothing_serious(page: &Page) -> Outcome {
    nothing_went_wrong(page).await?;
    let serious = serious(page).await?;
    ensure(serious.is_empty(), || serious.join("; "))
}
