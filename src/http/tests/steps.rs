//! What a lesson's file says of itself in English, the page says in Chinese too: as many steps, and the same code.

use super::*;
use crate::{seckill, stock};
use serde::Deserialize;
use std::collections::BTreeMap;

const CHINESE: &str = include_str!("../../../static/js/steps-zh.js");

#[derive(Deserialize)]
struct Opening {
    steps: Vec<String>,
    survives: String,
    breaks: String,
}

type Openings = BTreeMap<String, BTreeMap<String, Opening>>;

/// Every file that the page shows: where it is from, its slug and its text.
fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let strategies = stock::ALL
        .iter()
        .map(|strategy| ("stock", strategy.slug, strategy.source));
    strategies.chain(
        seckill::ALL
            .iter()
            .map(|step| ("seckill", step.slug, step.source)),
    )
}

fn openings() -> Openings {
    let (_, object) = CHINESE
        .split_once("export const openings = ")
        .expect("the openings");
    serde_json::from_str(object.trim_end().trim_end_matches(';')).expect("JSON")
}

/// What is wrong with the Chinese of these files.
fn faults(openings: &Openings) -> Vec<String> {
    let of = |from: &str, slug: &str| openings.get(from).and_then(|all| all.get(slug));
    let mut faults: Vec<_> = files()
        .flat_map(|(from, slug, source)| match of(from, slug) {
            None => vec![format!("{slug}: none")],
            Some(opening) => faults_of(slug, source, opening),
        })
        .collect();
    for (from, all) in openings {
        let left = all
            .keys()
            .filter(|slug| !files().any(|(of, known, _)| of == from && known == *slug));
        faults.extend(left.map(|slug| format!("{slug}: of no file")));
    }
    faults
}

fn faults_of(
    slug: &str,
    source: &str,
    Opening {
        steps,
        survives,
        breaks,
    }: &Opening,
) -> Vec<String> {
    let head: Vec<_> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect();
    let is_step = |line: &&&str| {
        line.split_once(". ")
            .is_some_and(|(number, _)| number.parse::<u8>().is_ok())
    };
    let (head, numbered) = (head.join(" "), head.iter().filter(is_step).count());
    let mut faults = Vec::new();
    if steps.len() != numbered {
        faults.push(format!("{slug}: {} steps of {numbered}", steps.len()));
    }
    for text in steps.iter().chain([survives, breaks]) {
        let code = text.split('`').skip(1).step_by(2);
        faults.extend(
            code.filter(|code| !head.contains(code))
                .map(|code| format!("{slug}: `{code}`")),
        );
    }
    for text in [survives, breaks] {
        if !text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)) {
            faults.push(format!("{slug}: not in Chinese: {text}"));
        }
    }
    faults
}

#[test]
fn each_file_has_as_many_steps_in_chinese_and_the_same_code() {
    let all = openings();
    assert_eq!(faults(&all), Vec::<String>::new());
}

#[test]
fn a_step_that_is_missing_and_code_that_is_another_are_seen() {
    let mut all = openings();
    let stock = all.get_mut("stock").expect("strategies");
    stock.get_mut("none").expect("none").steps.pop();
    stock
        .get_mut("mutex")
        .expect("mutex")
        .breaks
        .push_str("`SETNX`");
    let version = stock.remove("version-cas").expect("version-cas");
    stock.insert("gone".into(), version);
    let seen = faults(&all);
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test]
async fn the_readmes_that_the_page_leads_to_are_there_and_no_other_file_of_the_project_is() {
    let service = service(&[]);
    for (path, status) in [
        ("/README.md", 200),
        ("/README.zh-CN.md", 200),
        ("/Cargo.toml", 404),
    ] {
        assert_eq!(
            send(&service, "GET", path, &[], "").await.status,
            status,
            "{path}"
        );
    }
}
