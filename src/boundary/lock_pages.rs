//! Whoever chooses a lock reads its page: every lock's page says what the lock survives, what breaks it, what it costs and
//! what it writes, and has an example.

use super::{NOTHING, sources};
use syn::{Expr, ExprLit, Item, Lit, Meta, Visibility};

/// The folders and files of the library that declare locks and what is of their kind.
const SEARCHED_PATHS: [&str; 5] = [
    "lock/src/redis/",
    "lock/src/zk/",
    "lock/src/mysql/",
    "lock/src/local/",
    "lock/src/multi.rs",
];

/// The public types in [`SEARCHED_PATHS`] that need no page.
const TYPES_THAT_ARE_NO_LOCKS: [&str; 16] = [
    "ByType",
    "Conn",
    "Connection",
    "MutexGuard",
    "MySqlOptions",
    "MySqlPool",
    "Outcome",
    "Permit",
    "PoolExhausted",
    "RedisClient",
    "RedisOptions",
    "RedlockClient",
    "RowDescription",
    "Versioned",
    "ZkClient",
    "ZkOptions",
];

const HEADINGS: [&str; 5] = [
    "# Survives",
    "# What breaks it",
    "# Cost",
    "# Format",
    "# Example",
];

/// The locks whose page needs neither `# Cost` nor `# Format`: halves, of which the page of their whole says it, and what has
/// no server.
const TYPES_WITHOUT_COST: [&str; 5] = [
    "Mutexes",
    "RedisReadLock",
    "RedisWriteLock",
    "ZkReadLock",
    "ZkWriteLock",
];

#[test]
fn every_lock_says_what_whoever_chooses_it_asks() {
    let files = sources("lock/src").into_iter();
    let files = files.filter(|file| {
        SEARCHED_PATHS
            .iter()
            .any(|place| file.name.starts_with(place))
    });
    let pages: Vec<_> = files.flat_map(|file| pages(&file.text)).collect();
    for lock in ["RedisLock", "ZkLock", "TableLock", "MultiLock"] {
        assert!(pages.iter().any(|(name, _)| name == lock), "no {lock}");
    }
    let lacking = pages
        .iter()
        .filter_map(|(name, page)| missing_part(name, page));
    assert_eq!(lacking.collect::<Vec<_>>(), NOTHING);
}

/// The twins.
#[test]
fn a_lock_without_one_of_the_headings_is_seen() {
    let lacking = |code: &str| {
        let pages = pages(code).into_iter();
        pages
            .filter_map(|(name, page)| missing_part(&name, &page))
            .count()
    };
    let page = |headings: &[&str]| {
        let sections = headings
            .iter()
            .map(|heading| format!("/// {heading}\n///\n/// All.\n///\n"));
        sections.collect::<String>()
    };
    for missing in 0..HEADINGS.len() {
        let mut headings = HEADINGS.to_vec();
        headings.remove(missing);
        let code = format!("{}pub struct Lock;", page(&headings));
        assert_eq!(lacking(&code), 1, "{code}");
    }
    let empty = format!(
        "/// # Survives\n///\n{}pub struct Lock;",
        page(&HEADINGS[1..])
    );
    assert_eq!(lacking(&empty), 1, "a heading without a text");
    let sound = page(&HEADINGS);
    let sound = format!("{sound}pub struct Lock;\npub(super) struct Claim;\npub struct Permit;");
    assert_eq!(lacking(&sound), 0);
    let half = page(&["# Survives", "# What breaks it", "# Example"]);
    assert_eq!(lacking(&format!("{half}pub struct ZkReadLock;")), 0);
}

/// The public types of a file that may be locks, and their documentation.
fn pages(code: &str) -> Vec<(String, Vec<String>)> {
    let file = syn::parse_file(code).expect("Rust");
    let structs = file.items.into_iter().filter_map(|item| match item {
        Item::Struct(item) if matches!(item.vis, Visibility::Public(_)) => Some(item),
        _ => None,
    });
    let locks = structs.filter(|item| {
        !TYPES_THAT_ARE_NO_LOCKS
            .iter()
            .any(|other| item.ident == other)
    });
    locks
        .map(|item| {
            let lines = item.attrs.iter().filter_map(|attribute| {
                let Meta::NameValue(doc) = &attribute.meta else {
                    return None;
                };
                match &doc.value {
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(line),
                        ..
                    }) if doc.path.is_ident("doc") => Some(line.value().trim().to_owned()),
                    _ => None,
                }
            });
            (item.ident.to_string(), lines.collect())
        })
        .collect()
}

/// What a page lacks: a heading, or a text below it.
fn missing_part(name: &str, page: &[String]) -> Option<String> {
    let has_text = |heading: &&&str| {
        let below = page.iter().skip_while(|line| line != *heading).skip(1);
        let first = below.into_iter().find(|line| !line.is_empty());
        first.is_some_and(|line| !line.starts_with('#'))
    };
    let needed = |heading: &&&str| {
        !TYPES_WITHOUT_COST.contains(&name) || !["# Cost", "# Format"].contains(*heading)
    };
    let missing = HEADINGS
        .iter()
        .filter(needed)
        .find(|heading| !has_text(heading))?;
    Some(format!("{name} lacks {missing}"))
}
