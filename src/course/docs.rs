//! `docs/course.md` and `docs/course.zh-CN.md`: every claim of the documents, made from the lessons.

use super::{ALL, Lesson, Verdict};
use crate::bilingual::Bilingual;
use std::fmt::Write;

/// The page in one language: `zh`, or else English.
#[must_use]
pub fn course_md(zh: bool) -> String {
    let of = |text: Bilingual| if zh { text.zh } else { text.en };
    let mut page = of(HEAD).to_owned();
    for chapter in ALL.iter() {
        let columns = of(Bilingual {
            zh: "| 课 | 位置 | 说法 | 在这里 |",
            en: "| lesson | place | claim | here |",
        });
        // Writing to a String cannot fail.
        writeln!(
            page,
            "\n## {}\n\n{columns}\n|---|---|---|---|",
            of(chapter.title)
        )
        .ok();
        for lesson in &chapter.lessons {
            let (id, place) = (lesson.id, lesson.place);
            let claim = of(lesson.claim).replace('|', "\\|");
            writeln!(
                page,
                "| {id} | {place} | {claim} | {} |",
                comes_to(lesson, zh)
            )
            .ok();
        }
    }
    page
}

const HEAD: Bilingual = Bilingual {
    zh: "# 每一条说法，在这里的结论

[English](course.md)

由 `make docs` 从 `src/course/lessons/` 生成。`oversell course` 逐条去试；结论取决于计时的，两次运行可能不同。
",
    en: "# Every claim, and what it comes to here

[中文](course.zh-CN.md)

Made by `make docs` from `src/course/lessons/`. `oversell course` tries each claim. Where a verdict rests on timing, two runs may differ.
",
};

fn comes_to(lesson: &Lesson, zh: bool) -> String {
    let of = |text: Bilingual| if zh { text.zh } else { text.en };
    if lesson.why_not().is_some() {
        return of(Bilingual {
            zh: "未验证",
            en: "not run",
        })
        .to_owned();
    }
    let words = of(lesson.expected.words());
    let words = if lesson.expected == Verdict::Reproduced {
        words.to_owned()
    } else {
        format!("**{words}**")
    };
    let timing = of(Bilingual {
        zh: "（结果取决于计时）",
        en: ", by timing",
    });
    if lesson.timing { words + timing } else { words }
}
