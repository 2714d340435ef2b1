//! One thing has one Chinese word: a word that was replaced does not come back.

use super::NOTHING;
use std::{fs, path::Path};

/// Where Chinese text stands; of `docs` and the README only the Chinese half.
const SEARCHED_PATHS: [&str; 6] = [
    "src",
    "static",
    "docs",
    "templates",
    "jmeter",
    "README.zh-CN.md",
];

/// Each word that was replaced, and the word that stands in its place.
const REPLACED_WORDS: [(&str, &str); 19] = [
    ("重现", "复现"),
    ("说法", "论断"),
    ("在误差之内", "误差范围内"),
    ("换成解法", "采用解法后"),
    ("少了 ", "库存减少"),
    ("同时在里面", "同时在临界区"),
    ("落空", "更新失败（影响 0 行）"),
    ("续满", "重置为完整的租约"),
    ("接着走", "继续执行"),
    ("走不动", "阻塞"),
    ("卖重", "重复售出"),
    ("没有回音", "没有应答"),
    ("搭法", "部署方案"),
    ("哨兵", "Sentinel"),
    ("副本", "从节点"),
    ("跟随者", "Follower"),
    ("领导者", "Leader"),
    ("栅栏令牌", "防护令牌"),
    ("管理令牌", "管理口令"),
];

#[test]
fn no_replaced_chinese_word_comes_back() {
    let mut files = Vec::new();
    for place in SEARCHED_PATHS {
        collect_texts(Path::new(place), &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    let found: Vec<_> = files
        .iter()
        .flat_map(|(name, text)| find_replaced_words(name, text))
        .collect();
    assert_eq!(found, NOTHING);
}

/// The twin.
#[test]
fn a_replaced_chinese_word_is_seen() {
    assert_eq!(
        find_replaced_words("a.md", "重演。\n没有重现：由哨兵提升。").len(),
        2
    );
    assert_eq!(
        find_replaced_words("a.md", "未复现：由 Sentinel 提升。"),
        NOTHING
    );
}

/// The replaced words in this text, with their line.
fn find_replaced_words(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(n, line)| {
            let words = REPLACED_WORDS
                .iter()
                .filter(|(word, _)| line.contains(word));
            words.map(move |(word, better)| format!("{name}:{}: {word}; write {better}", n + 1))
        })
        .collect()
}

/// Adds each text at this place or below it, with its name, except this list.
fn collect_texts(place: &Path, found: &mut Vec<(String, String)>) {
    let name = place.to_str().expect("a name in UTF-8");
    if place.is_dir() {
        for entry in fs::read_dir(place).expect("a folder") {
            collect_texts(&entry.expect("an entry").path(), found);
        }
        return;
    }
    if name.starts_with("docs") && !name.ends_with(".zh-CN.md") || name == file!() {
        return;
    }
    // A picture is no text.
    if let Ok(text) = fs::read_to_string(place) {
        found.push((name.to_owned(), text));
    }
}
