//! Lists the files that register themselves. A release build also knows its commit, for the conditions of its figures.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    register("races", "src/replay/races", "&crate::replay::Race", |module, _| format!("&{module}::RACE"));
    register("windows", "src/classroom/windows", "&crate::classroom::window::WindowLesson", |module, _| {
        format!("&{module}::LESSON")
    });
    register_with_text("strategies", "src/stock/strategies", "STRATEGY", "crate::stock::StrategySpec");
    register_with_text("steps", "src/seckill/steps", "STEP", "crate::seckill::StepSpec");
    // Not in a debug build: no figures are taken from it, and each commit would rebuild it.
    let commit = if env::var("PROFILE").is_ok_and(|profile| profile == "release") { commit() } else { None };
    println!("cargo:rustc-env=OVERSELL_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Writes `NAME.rs`: it declares each `.rs` file of `folder` but `mod.rs` as a module, and has a list `FILES`, sorted by file
/// name, of the expressions of type `kind` that `entry` makes of module and path. So a new file needs no entry in any list.
/// The room includes it by `include!(concat!(env!("OUT_DIR"), "/NAME.rs"))`.
fn register(name: &str, folder: &str, kind: &str, entry: impl Fn(&str, &Path) -> String) {
    println!("cargo:rerun-if-changed={folder}");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let files = fs::read_dir(root.join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut files: Vec<_> = files
        .map(|file| file.expect("a file of the folder").path())
        .filter(|file| file.extension().is_some_and(|e| e == "rs") && !file.ends_with("mod.rs"))
        .collect();
    files.sort();
    let (mut modules, mut list) = (String::new(), String::new());
    for file in &files {
        let module = file.file_stem().and_then(|stem| stem.to_str()).expect("a name of a module");
        modules += &format!("#[path = {file:?}]\npub(super) mod {module};\n");
        list += &format!("    {},\n", entry(module, file));
    }
    let text = format!("{modules}\npub(super) const FILES: &[{kind}] = &[\n{list}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join(format!("{name}.rs")), text).expect("OUT_DIR can be written");
}

/// As [`register`], for files that have a text beside them: `none.rs` and `none.md` are the entry `none`.
fn register_with_text(name: &str, folder: &str, item: &str, spec: &str) {
    let kind = format!("crate::registry::File<{spec}>");
    register(name, folder, &kind, |module, file| {
        let (slug, text) = (module.replace('_', "-"), file.with_extension("md"));
        format!(
            "crate::registry::File {{ slug: {slug:?}, spec: {module}::{item}, \
             text: include_str!({text:?}), source: include_str!({file:?}) }}"
        )
    });
}

/// The commit, with `-dirty` if files differ from it; `None` without git or a repository. A new commit runs this file again.
fn commit() -> Option<String> {
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&head).exists() {
        println!("cargo:rerun-if-changed={head}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12"])
}

/// What git prints, without space around; `None` if it fails.
fn git(args: &[&str]) -> Option<String> {
    let said = Command::new("git").args(args).output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8(said.stdout).ok()?.trim().to_owned())
}
