//! One word, one thing: a word of a crate's glossary is the name of at most one type.

use super::{NOTHING, Source, sources};
use std::collections::BTreeMap;

/// The crates: the file with the glossary, and the folder in which its words hold.
const CRATES: [(&str, &str); 2] = [("lock/src/lib.rs", "lock/src"), ("src/lib.rs", "src")];

#[test]
fn no_second_type_has_a_glossary_word_as_its_name() {
    for (head, folder) in CRATES {
        let files = sources(folder);
        let head = files.iter().find(|file| file.name == head);
        let words = glossary(&head.expect("a crate's head").text);
        assert!(words.len() > 10, "{folder} has no glossary: {words:?}");
        assert_eq!(words_of_several_types(&words, &files), NOTHING, "{folder}");
    }
}

/// The twins.
#[test]
fn a_second_type_of_a_glossary_word_is_seen() {
    let words = glossary(
        "//! | word | meaning |\n//! |---|---|\n//! | hold count | a number |\n//! | line | waiters |\n",
    );
    assert_eq!(words, ["hold count", "line"]);
    let count = |one: &str, other: &str| {
        let files = [Source::new("src/a.rs", one), Source::new("src/b.rs", other)];
        words_of_several_types(&words, &files).len()
    };
    for (one, other) in [
        ("struct Line;", "enum Line {}"),
        ("pub struct Line<T>(T);", "pub(crate) trait Line {}"),
        ("type HoldCount = u32;", "mod inner { struct HoldCount; }"),
    ] {
        assert_eq!(count(one, other), 1, "{one} {other}");
    }
    for (one, other) in [
        ("struct Line;", "struct Lines;"),
        ("struct Line;", "fn f(_: crate::a::Line) {}"),
        ("struct Line;", "impl Iterator for L { type Line = u8; }"),
        ("struct Line;", "#[cfg(test)] mod tests { struct Line; }"),
    ] {
        assert_eq!(count(one, other), 0, "{one} {other}");
    }
}

/// The words of the table in a crate's documentation whose head is `| word | meaning |`.
fn glossary(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| *line != "//! | word | meaning |")
        .skip(2)
        .map_while(|line| line.strip_prefix("//! | ")?.split(" | ").next())
        .map(str::to_owned)
        .collect()
}

/// The words that more than one type has as its name, and where those types are.
fn words_of_several_types(words: &[String], files: &[Source]) -> Vec<String> {
    let mut types = BTreeMap::<String, Vec<&str>>::new();
    for file in files {
        let code = syn::parse_file(&file.text).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        for name in declared_types(&code.items) {
            types.entry(name).or_default().push(&file.name);
        }
    }
    let named = words.iter().map(|word| camel_case(word));
    let named = named.filter_map(|name| Some((types.get(&name)?, name)));
    let doubled = named.filter(|(files, _)| files.len() > 1);
    doubled
        .map(|(files, name)| format!("{name} is declared in {}", files.join(" and in ")))
        .collect()
}

/// The names of the types that these items declare, without those of tests.
fn declared_types(items: &[syn::Item]) -> Vec<String> {
    let is_test = |module: &syn::ItemMod| module.ident == "tests";
    items
        .iter()
        .flat_map(|item| match item {
            syn::Item::Struct(item) => vec![item.ident.to_string()],
            syn::Item::Enum(item) => vec![item.ident.to_string()],
            syn::Item::Trait(item) => vec![item.ident.to_string()],
            syn::Item::Type(item) => vec![item.ident.to_string()],
            syn::Item::Mod(module) if !is_test(module) => {
                let inner = module.content.as_ref();
                inner.map_or_else(Vec::new, |(_, items)| declared_types(items))
            }
            _ => Vec::new(),
        })
        .collect()
}

fn camel_case(words: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.split([' ', '-']).map(capital).collect()
}
