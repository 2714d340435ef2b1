//! The pages that are made from data: every claim, from the lessons; the fault matrix, from its last run; every strategy and every
//! step of the seckill, from their registries. `make docs` writes them; nothing fails because they are older than the program.

use super::{fault_matrix, table::Lang};
use oversell::{
    claims::{ALL, ClaimVerdict, Lesson, lessons, verdicts::LAST_RUN},
    registry::{Rank, RegistryEntry, Spec},
    seckill,
    stock::{self, Promise},
};
use oversell_lab::terminal::bilingual::Bilingual;
use serde_json::Value;
use std::{
    collections::HashSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// The page of all claims with their verdicts in the last full run: by document and heading, then the errata, then the claims
/// beyond the documents.
fn course_md(lang: Lang) -> String {
    let mut page = format!("{}\n{} {}\n", lang.of(HEAD), totals(lang), conditions(lang));
    let (apart, texts): (Vec<_>, Vec<_>) = (ALL.iter()).partition(|chapter| CHAPTERS_WITHOUT_DOCUMENT.contains(&chapter.id));
    let texts: Vec<_> = texts.iter().flat_map(|chapter| &chapter.lessons).collect();
    for (document, title) in DOCUMENTS {
        // Writing to a String cannot fail.
        let heading = format!("[{document}] {title}");
        writeln!(page, "\n## {}", heading.trim_end()).ok();
        let its: Vec<_> = texts.iter().filter(|lesson| lesson.place.starts_with(document)).collect();
        let mut headings: Vec<_> = its.iter().map(|lesson| split_headings(lesson).0).collect();
        let mut before = HashSet::new();
        headings.retain(|heading| before.insert(*heading));
        for heading in headings {
            let title = heading.trim_start_matches(document);
            writeln!(page, "\n###{title}\n").ok();
            for lesson in its.iter().filter(|lesson| split_headings(lesson).0 == heading) {
                page += &line_of(lesson, split_headings(lesson).1, lang);
            }
        }
    }
    for chapter in apart {
        writeln!(page, "\n## {}\n", lang.of(chapter.title)).ok();
        for lesson in &chapter.lessons {
            page += &line_of(lesson, Some(lesson.place), lang);
        }
    }
    page
}

/// The chapters that are of none of the five texts: they come last on the page.
const CHAPTERS_WITHOUT_DOCUMENT: [&str; 2] = ["errata", "beyond"];

/// The number and the title of each document; [003] has none.
const DOCUMENTS: [(&str, &str); 5] =
    [("000", "分布式锁"), ("001", "分布式锁"), ("002", "Redis分布式锁"), ("003", ""), ("004", "基于Redis实现分布式锁")];

const HEAD: Bilingual = Bilingual::of("# 每一条论断，和它在这里的结论

[English](course.md)

按文档和标题排列，标题一字不改。✓ 已复现，✗ 未复现，≈ 误差范围内，– 未验证。看到了什么，写在页面上（`#/verdicts`）和 `src/claims/last_run.json` 里；
`oversell course --lesson 1.4` 去试一条。结论取决于计时的，两次运行可能不同。由 `make docs` 在发布前写成。
", "# Every claim, and its verdict here

[中文](course.zh-CN.md)

By document and heading, word for word. ✓ reproduced, ✗ not reproduced, ≈ noise, – unavailable. What was seen stands on the page
(`#/verdicts`) and in `src/claims/last_run.json`; `oversell course --lesson 1.4` tries one. Where a verdict rests on timing, two runs
may differ. `make docs` writes this page before a release.
");

/// Splits the heading of a lesson into the main one and the others.
fn split_headings(lesson: &Lesson) -> (&'static str, Option<&'static str>) {
    match lesson.place.split_once("; ") {
        Some((first, others)) => (first, Some(others)),
        None => (lesson.place, None),
    }
}

/// The line of a lesson; `and` are its other headings.
fn line_of(lesson: &Lesson, and: Option<&str>, lang: Lang) -> String {
    let and = and.map(|place| format!(" ({place})")).unwrap_or_default();
    let found = LAST_RUN.result_of(lesson.id);
    let mark = found.map_or("?", |found| found.verdict.mark());
    let mut verdict = match found.map(|found| found.verdict) {
        Some(ClaimVerdict::Reproduced) => Vec::new(),
        Some(other) => vec![format!("**{}**", lang.of(other.words()))],
        None => vec![lang.of(Bilingual::of("还没有运行过", "not run yet")).to_owned()],
    };
    if lesson.timing {
        verdict.push(lang.of(Bilingual::of("取决于计时", "by timing")).to_owned());
    }
    let verdict = match &verdict[..] {
        [] => String::new(),
        words => format!(" — {}", words.join(lang.of(Bilingual::of("，", ", ")))),
    };
    let claim = lang.of(lesson.claim);
    format!("- {mark} **{}**{and} {claim}{verdict}\n", lesson.id)
}

/// The sentence with the number of claims per verdict, in the last full run.
fn totals(lang: Lang) -> String {
    let all = &LAST_RUN.lessons;
    let of = |verdict| {
        let so = all.iter().filter(|found| found.verdict == verdict);
        format!("{} {}", so.count(), lang.of(ClaimVerdict::words(verdict)))
    };
    let each = [ClaimVerdict::Reproduced, ClaimVerdict::NotReproduced, ClaimVerdict::Noise, ClaimVerdict::Unavailable];
    let claims = lang.of(Bilingual::of(" 条论断：", " claims: "));
    format!("{}{claims}{}", all.len(), each.map(of).join(" · "))
}

/// The day and the commit of the last full run, in brackets.
fn conditions(lang: Lang) -> String {
    let of = |name| {
        let value = LAST_RUN.conditions.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let (date, commit) = (of("date"), of("commit"));
    match lang {
        Lang::Zh => format!("（{date}，提交 {commit}）"),
        Lang::En => format!("({date}, commit {commit})"),
    }
}

/// The text of a README with the last full run in the line that begins with `begins`.
fn readme(lang: Lang, text: &str, begins: &str) -> String {
    assert_eq!(text.lines().filter(|line| line.starts_with(begins)).count(), 1, "lines of the last run: {begins}");
    let lines = text.lines().map(|line| match line.starts_with(begins) {
        true => format!("{begins}{} {} |\n", totals(lang), conditions(lang)),
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

/// The row of a strategy or step; its name links to its text.
fn row<F: Spec>(lang: Lang, folder: &str, entry: &RegistryEntry<F>, promise: Promise) -> String {
    let (slug, file) = (entry.slug, entry.slug.replace('-', "_"));
    let rank = lang.of(match entry.spec.rank() {
        Rank::Beyond(_) => Bilingual::of("（课程之外）", " *(beyond)*"),
        Rank::AsPrinted(_) => Bilingual::of("（原文的代码，勘误）", " *(as printed, with its flaw)*"),
        Rank::Course | Rank::After(_) => Bilingual::of("", ""),
    });
    let (title, breaks) = (lang.of(entry.title), lang.of(entry.breaks));
    format!("| [`{slug}`](../src/{folder}/{file}.md) | {} | {} | {title}{rank} | {breaks} |\n", entry.spec.chapter(), promise)
}

const STRATEGIES: Bilingual = Bilingual::of("# 全部策略

[English](strategies.md)

由 `make docs` 在发布前从登记表生成；`GET /strategies` 是同一份列表。名字指向它的说明：步骤、能承受什么、何时失效；代码是旁边的 `.rs` 文件。
要把这里的语句搬到 Hibernate、MyBatis、Prisma、Django、GORM 里，先看：[用你的框架时](frameworks.zh-CN.md)。

`unsafe` 始终会丢失更新 · `one-process` 只在一个实例内准确 · `lease` 在持有者不超过租约或会话、锁的服务器也没有停顿那么久时准确 · `safe` 无论持有者出什么故障都准确。

| 策略 | 课程 | 承诺 | 做法 | 何时失效 |
|---|---|---|---|---|
", "# Every strategy

[中文](strategies.zh-CN.md)

Made by `make docs` from the registries before a release; `GET /strategies` serves the same list. A
name leads to its text: its steps, what it survives, what breaks it; the code is the `.rs` beside it. Before you take a statement
of theirs to Hibernate, MyBatis, Prisma, Django or GORM: [in your framework](frameworks.md).

`unsafe` loses updates at all times · `one-process` is exact in one instance only · `lease` is exact while no holder outlives its
lease or session, and the lock's server stands still for no longer · `safe` is exact under every fault of a holder.

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

/// The path of a file of the repository.
pub(super) fn in_repository(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// The beginnings of the READMEs' lines about the last full run.
const LAST_RUN_LINES: [(&str, Lang, &str); 2] = [
    ("README.md", Lang::En, "| [course](docs/course.md) | every claim, and its verdict in the last full run: "),
    ("README.zh-CN.md", Lang::Zh, "| [course](docs/course.zh-CN.md) | 每一条论断，和上一次完整运行的结论："),
];

/// `make docs` runs it. Of the fault matrix there are pages only after `make faults`.
#[test]
#[ignore = "`make docs` runs it: it writes docs/, the READMEs and target/docs"]
fn make_docs_writes_the_pages() {
    let write = |file: &str, text: String| fs::write(in_repository(file), text).expect("it can be written");
    for (file, lang, begins) in LAST_RUN_LINES {
        let text = fs::read_to_string(in_repository(file)).expect("a README");
        write(file, readme(lang, &text, begins));
    }
    fs::create_dir_all(in_repository("target/docs")).expect("target can be written");
    for (lang, ending) in [(Lang::En, "md"), (Lang::Zh, "zh-CN.md")] {
        write(&format!("docs/course.{ending}"), course_md(lang));
        write(&format!("docs/strategies.{ending}"), strategies_md(lang));
        if let Some(page) = fault_matrix::page(lang) {
            write(&format!("target/docs/faults.{ending}"), page);
        }
    }
}

#[test]
fn each_claim_stands_on_its_page() {
    for lang in [Lang::En, Lang::Zh] {
        let course = course_md(lang);
        let is_there = |lesson: &&Lesson| {
            let begins = format!(" **{}**", lesson.id);
            let mut lines = course.lines().filter(|line| line.starts_with("- "));
            lines.any(|line| line.contains(&begins) && line.contains(lang.of(lesson.claim)))
        };
        let missing: Vec<_> = lessons().filter(|lesson| !is_there(lesson)).map(|lesson| lesson.id).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
