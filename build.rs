//! A file that is added to these folders is compiled into the program: cargo must look at them. And a release build
//! knows the commit that it was built from, for the conditions of its figures.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=static");
    // Not in a debug build: nobody takes its figures, and each commit would build it anew.
    let commit = if env::var("PROFILE").is_ok_and(|profile| profile == "release") { commit() } else { None };
    println!("cargo:rustc-env=OVERSELL_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn commit() -> Option<String> {
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for looked_at in [head.as_str(), "src", "lock/src"] {
        if Path::new(looked_at).exists() {
            println!("cargo:rerun-if-changed={looked_at}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12"])
}

fn git(args: &[&str]) -> Option<String> {
    let said = Command::new("git").args(args).output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8(said.stdout).ok()?.trim().to_owned())
}
