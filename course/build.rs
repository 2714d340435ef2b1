//! Lists the files on which verdicts rest.

use std::{env, fs, path::PathBuf};

fn main() {
    list_sources();
}

/// The folders on whose files verdicts of the course rest. The image is built without some; a missing one is skipped.
const SOURCES: [&str; 11] = [
    "interop/curator/src",
    "interop/java",
    "interop/printed/src",
    "interop/redisson/src",
    "interop/spring/src",
    "lock/src",
    "src/replay/lua",
    "src/replay/races",
    "src/seckill",
    "src/stock",
    "course/src/trials/experiments",
];

/// Writes `sources.rs`: `FILES` has the path and the text of each file below `SOURCES`, without `.md` files and `tests.rs`.
fn list_sources() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    env::set_current_dir(&root).expect("the workspace");
    let mut open = SOURCES.map(PathBuf::from).to_vec();
    open.retain(|folder| folder.exists());
    for folder in &open {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            open.extend(entries.map(|entry| entry.expect("a file of the folder").path()));
        } else if path.extension().is_some_and(|e| e != "md") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files.sort();
    let entry = |file: &PathBuf| format!("    ({file:?}, include_str!({:?})),\n", root.join(file));
    let list: String = files.iter().map(entry).collect();
    let text = format!("const FILES: &[(&str, &str)] = &[\n{list}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("sources.rs"), text).expect("OUT_DIR can be written");
}
