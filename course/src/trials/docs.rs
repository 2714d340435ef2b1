//! The pages of `docs/` that are made from data: every claim, from the lessons; the fault matrix, from its last run; every strategy
//! and every step of the seckill, from their registries.

use super::{fault_matrix, last_run::LAST_RUN, table::Lang};
use oversell::{
    claims::{ALL, ClaimVerdict, Lesson},
    registry::{Rank, RegistryEntry, Spec},
    seckill,
    stock::{self, Promise},
};
use oversell_lab::terminal::bilingual::Bilingual;
use serde_json::Value;
use std::{collections::HashSet, env, fmt::Write, fs};

/// The page of all claims with the results of the last full run: by document and heading, then the errata, then the claims beyond
/// the documents.
fn course_md(lang: Lang) -> String {
    let of = |name| {
        LAST_RUN
            .conditions
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let run = match lang {
        Lang::Zh => format!("{} 运行，提交 `{}`。", of("date"), of("commit")),
        Lang::En => format!("Run on {}, of commit `{}`.", of("date"), of("commit")),
    };
    let mut page = format!("{}\n{}\n\n{run}\n", lang.of(HEAD), totals(lang));
    let (apart, texts): (Vec<_>, Vec<_>) =
        (ALL.iter()).partition(|chapter| CHAPTERS_WITHOUT_DOCUMENT.contains(&chapter.id));
    let texts: Vec<_> = texts.iter().flat_map(|chapter| &chapter.lessons).collect();
    for (document, title) in DOCUMENTS {
        // Writing to a String cannot fail.
        let heading = format!("[{document}] {title}");
        writeln!(page, "\n## {}", heading.trim_end()).ok();
        let its: Vec<_> = texts
            .iter()
            .filter(|lesson| lesson.heading.starts_with(document))
            .collect();
        let mut headings: Vec<_> = its.iter().map(|lesson| split_headings(lesson).0).collect();
        let mut before = HashSet::new();
        headings.retain(|heading| before.insert(*heading));
        for heading in headings {
            let title = heading.trim_start_matches(document);
            writeln!(page, "\n###{title}\n\n{}", lang.of(COLUMNS)).ok();
            for lesson in its
                .iter()
                .filter(|lesson| split_headings(lesson).0 == heading)
            {
                page += &row_of(lesson, split_headings(lesson).1, lang);
            }
        }
    }
    for chapter in apart {
        writeln!(
            page,
            "\n## {}\n\n{}",
            lang.of(chapter.title),
            lang.of(COLUMNS)
        )
        .ok();
        for lesson in &chapter.lessons {
            page += &row_of(lesson, Some(lesson.heading), lang);
        }
    }
    page
}

/// The chapters that are of none of the five texts: they come last on the page.
const CHAPTERS_WITHOUT_DOCUMENT: [&str; 2] = ["errata", "beyond"];

/// The number and the title of each document; [003] has none.
const DOCUMENTS: [(&str, &str); 5] = [
    ("000", "分布式锁"),
    ("001", "分布式锁"),
    ("002", "Redis分布式锁"),
    ("003", ""),
    ("004", "基于Redis实现分布式锁"),
];

const HEAD: Bilingual = Bilingual::of("# 每一条论断，和在这里看到的

[English](course.md)

由 `make docs` 从 `src/claims/lessons/` 和上一次完整运行的结果 `src/trials/last_run.json`（`make course`）生成，按文档和标题排列，标题一字不改。
`oversell course` 逐条去试；结论取决于计时的，两次运行可能不同。实验、策略或锁改过的课由 `make changed` 重新运行，
它的日期和提交写在那个文件里；没有重新运行的，`make check` 会列出来。
", "# Every claim, and what was seen of it here

[中文](course.zh-CN.md)

Made by `make docs` from `src/claims/lessons/` and from what the last full run has found, `src/trials/last_run.json` (`make
course`), by document and heading, word for word. `oversell course` tries each claim. Where a verdict rests on timing, two runs
may differ. A lesson whose experiment, strategies or locks have changed is run again by `make changed`, and that file has its own
date and commit; `make check` names those that were not.
");

const COLUMNS: Bilingual = Bilingual::of(
    "| 课 | 论断 | 看到 | 结论 |\n|---|---|---|---|",
    "| lesson | claim | seen | verdict |\n|---|---|---|---|",
);

/// Splits the heading of a lesson into the main one and the others.
fn split_headings(lesson: &Lesson) -> (&'static str, Option<&'static str>) {
    match lesson.heading.split_once("; ") {
        Some((first, others)) => (first, Some(others)),
        None => (lesson.heading, None),
    }
}

/// The row of a lesson; `and` are its other headings.
fn row_of(lesson: &Lesson, and: Option<&str>, lang: Lang) -> String {
    let (seen, verdict) = seen_and_verdict(lesson, lang);
    let and = and.map(|place| format!(" ({place})")).unwrap_or_default();
    let [claim, seen] = [lang.of(lesson.claim), seen].map(|text| text.replace('|', "\\|"));
    format!("| {}{and} | {claim} | {seen} | {verdict} |\n", lesson.id)
}

/// The cells for what the last full run has seen of a lesson, and for its verdict.
fn seen_and_verdict(lesson: &Lesson, lang: Lang) -> (&'static str, String) {
    let Some(found) = LAST_RUN.result_of(lesson.id) else {
        let none = Bilingual::of("还没有运行过", "not run yet");
        return ("", lang.of(none).to_owned());
    };
    let words = lang.of(found.verdict.words());
    let words = match found.verdict {
        ClaimVerdict::Reproduced => words.to_owned(),
        _ => format!("**{words}**"),
    };
    let timing = lang.of(Bilingual::of("（结果取决于计时）", ", by timing"));
    let verdict = if lesson.timing { words + timing } else { words };
    (lang.words(&found.seen), verdict)
}

/// The sentence with the number of claims per verdict, in the last full run.
fn totals(lang: Lang) -> String {
    let all = &LAST_RUN.lessons;
    let of = |verdict| {
        let so = all.iter().filter(|found| found.verdict == verdict);
        format!("{} {}", so.count(), lang.of(ClaimVerdict::words(verdict)))
    };
    let each = [
        ClaimVerdict::Reproduced,
        ClaimVerdict::NotReproduced,
        ClaimVerdict::Noise,
        ClaimVerdict::Unavailable,
    ];
    let claims = lang.of(Bilingual::of(" 条论断：", " claims: "));
    format!("{}{claims}{}", all.len(), each.map(of).join(" · "))
}

/// The text of a README with the current totals in the line that begins with `begins`.
fn readme(lang: Lang, file: &str, begins: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().map(|line| match line.starts_with(begins) {
        true => format!("{begins}{} |\n", totals(lang)),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// The page of all strategies and of all steps of the seckill.
fn strategies_md(lang: Lang) -> String {
    let mut page = lang.of(STRATEGIES).to_owned();
    for strategy in stock::ALL.iter() {
        page += &row(lang, "stock/strategies", strategy, strategy.spec.promise);
    }
    page += lang.of(STEPS);
    for step in seckill::ALL.iter() {
        page += &row(lang, "seckill/steps", step, step.spec.promise);
    }
    page
}

/// The row of a strategy or step: its name links to the code, its title to the text.
fn row<F: Spec>(lang: Lang, folder: &str, entry: &RegistryEntry<F>, promise: Promise) -> String {
    let (slug, file) = (entry.slug, entry.slug.replace('-', "_"));
    let rank = lang.of(match entry.spec.rank() {
        Rank::Beyond(_) => Bilingual::of("（课程之外）", " *(beyond)*"),
        Rank::AsPrinted(_) => {
            Bilingual::of("（原文的代码，勘误）", " *(as printed, with its flaw)*")
        }
        Rank::Course | Rank::After(_) => Bilingual::of("", ""),
    });
    let (title, breaks) = (lang.of(entry.title), lang.of(entry.breaks));
    format!(
        "| [`{slug}`](../src/{folder}/{file}.rs) | {} | {} | [{title}](../src/{folder}/{file}.md){rank} | {breaks} |\n",
        entry.spec.chapter(),
        promise
    )
}

const STRATEGIES: Bilingual = Bilingual::of("# 全部策略

[English](strategies.md)

由 `make docs` 从登记表生成；`GET /strategies` 是同一份列表。每种策略一个文件，旁边的文字写着步骤、能承受什么、何时失效。

`unsafe` 始终会丢失更新 · `one-process` 只在一个实例内准确 · `lease` 在没有持有者超过租约或会话时准确 · `safe` 无论持有者出什么故障都准确。

| 策略 | 课程 | 承诺 | 做法 | 何时失效 |
|---|---|---|---|---|
", "# Every strategy

[中文](strategies.zh-CN.md)

Made by `make docs` from the registries; `GET /strategies` serves the same list. Each strategy is one file; the
text beside it says its steps, what it survives and what breaks it.

`unsafe` loses updates at all times · `one-process` is exact in one instance only · `lease` is exact while no holder outlives its
lease or session · `safe` is exact under every fault of a holder.

| strategy | course | promise | how | what breaks it |
|---|---|---|---|---|
");

const STEPS: Bilingual = Bilingual::of(
    "
## 秒杀的每一步

[002] 的下单步骤，`?strategy=` 选择其一；见 [seckill](seckill.zh-CN.md)。

| 步骤 | [002] 的小节 | 承诺 | 做法 | 何时失效 |
|---|---|---|---|---|
",
    "
## The steps of the seckill

The steps of [002]; `?strategy=` chooses one. See [seckill](seckill.md).

| step | section of [002] | promise | how | what breaks it |
|---|---|---|---|---|
",
);

/// The generated pages, by path.
fn pages() -> [(&'static str, String); 8] {
    let [en, zh] = ["README.md", "README.zh-CN.md"];
    [
        (
            en,
            readme(
                Lang::En,
                en,
                "| [course](docs/course.md) | every claim, and what the last full run has seen of it: ",
            ),
        ),
        (
            zh,
            readme(
                Lang::Zh,
                zh,
                "| [course](docs/course.zh-CN.md) | 每一条论断，和上一次完整运行看到的：",
            ),
        ),
        ("docs/course.md", course_md(Lang::En)),
        ("docs/course.zh-CN.md", course_md(Lang::Zh)),
        ("docs/faults.md", fault_matrix::page(Lang::En)),
        ("docs/faults.zh-CN.md", fault_matrix::page(Lang::Zh)),
        ("docs/strategies.md", strategies_md(Lang::En)),
        ("docs/strategies.zh-CN.md", strategies_md(Lang::Zh)),
    ]
}

/// The file differs from the text that it should have.
fn is_stale(page: &str, text: &str) -> bool {
    fs::read_to_string(page).ok().as_deref() != Some(text)
}

/// `make docs` writes the pages.
#[test]
fn no_generated_page_is_stale() {
    for (page, text) in pages() {
        if env::var_os("OVERSELL_WRITE_DOCS").is_some() {
            fs::write(page, &text).expect("docs/ can be written");
        }
        assert!(
            !is_stale(page, &text),
            "{page} is stale: `make docs` writes it"
        );
        // The twins: one character more, and no page at all.
        assert!(
            is_stale(page, &format!("{text}.")),
            "{page} with another text"
        );
        assert!(is_stale("docs/none.md", &text), "a page that is not there");
    }
}
