//! The pages of `docs/` that are made from data: every claim, from the lessons; every strategy and every step of the seckill,
//! from their registries.

use super::{ALL, Lesson, Verdict, table::Lang};
use crate::{
    bilingual::Bilingual,
    registry::{Declared, Rank, Registered},
    seckill,
    stock::{self, Promise},
};
use std::{env, fmt::Write, fs};

/// Every claim, in Chinese or in English.
fn course_md(lang: Lang) -> String {
    let mut page = lang.of(HEAD).to_owned();
    for chapter in ALL.iter() {
        let columns = lang.of(Bilingual::of(
            "| 课 | 位置 | 说法 | 在这里 |",
            "| lesson | place | claim | here |",
        ));
        // Writing to a String cannot fail.
        writeln!(
            page,
            "\n## {}\n\n{columns}\n|---|---|---|---|",
            lang.of(chapter.title)
        )
        .ok();
        for lesson in &chapter.lessons {
            let (id, place) = (lesson.id, lesson.place);
            let claim = lang.of(lesson.claim).replace('|', "\\|");
            writeln!(
                page,
                "| {id} | {place} | {claim} | {} |",
                comes_to(lesson, lang)
            )
            .ok();
        }
    }
    page
}

const HEAD: Bilingual = Bilingual::of("# 每一条说法，在这里的结论

[English](course.md)

由 `make docs` 从 `src/course/lessons/` 生成。`oversell course` 逐条去试；结论取决于计时的，两次运行可能不同。
", "# Every claim, and what it comes to here

[中文](course.zh-CN.md)

Made by `make docs` from `src/course/lessons/`. `oversell course` tries each claim. Where a verdict rests on timing, two runs may differ.
");

fn comes_to(lesson: &Lesson, lang: Lang) -> String {
    if lesson.why_not().is_some() {
        return lang.of(Bilingual::of("未验证", "not run")).to_owned();
    }
    let words = lang.of(lesson.expected.words());
    let words = if lesson.expected == Verdict::Reproduced {
        words.to_owned()
    } else {
        format!("**{words}**")
    };
    let timing = lang.of(Bilingual::of("（结果取决于计时）", ", by timing"));
    if lesson.timing { words + timing } else { words }
}

/// Every strategy and every step of the seckill, in Chinese or in English.
fn strategies_md(lang: Lang) -> String {
    let mut page = lang.of(STRATEGIES).to_owned();
    for strategy in stock::ALL.iter() {
        page += &row(lang, "stock/strategies", strategy, strategy.promise);
    }
    page += lang.of(STEPS);
    for step in seckill::ALL.iter() {
        page += &row(lang, "seckill/steps", step, step.promise);
    }
    page
}

/// Its name leads to its code, and what it is to its text.
fn row<F: Declared>(lang: Lang, folder: &str, entry: &Registered<F>, promise: Promise) -> String {
    let (slug, file) = (entry.slug, entry.slug.replace('-', "_"));
    let rank = lang.of(match entry.facts.rank() {
        Rank::Beyond(_) => Bilingual::of("（课程之外）", " *(beyond)*"),
        Rank::AsPrinted(_) => {
            Bilingual::of("（原文的代码，勘误）", " *(as printed, with its flaw)*")
        }
        Rank::Course | Rank::After(_) => Bilingual::of("", ""),
    });
    let (title, breaks) = (lang.of(entry.title), lang.of(entry.breaks));
    format!(
        "| [`{slug}`](../src/{folder}/{file}.rs) | {} | {} | [{title}](../src/{folder}/{file}.md){rank} | {breaks} |\n",
        entry.facts.chapter(),
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

/// Each page: its path, and its text.
fn pages() -> [(&'static str, String); 4] {
    [
        ("docs/course.md", course_md(Lang::En)),
        ("docs/course.zh-CN.md", course_md(Lang::Zh)),
        ("docs/strategies.md", strategies_md(Lang::En)),
        ("docs/strategies.zh-CN.md", strategies_md(Lang::Zh)),
    ]
}

fn is_stale(page: &str, text: &str) -> bool {
    fs::read_to_string(page).ok().as_deref() != Some(text)
}

/// `make docs` writes them.
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
