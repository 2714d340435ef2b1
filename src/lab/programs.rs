//! Finding the system's programs, and one line that says what to do where one is missing.

use crate::{
    chinese::told,
    failure::{Failure, unusable_told},
};
use std::path::{Path, PathBuf};

/// A program, or a file by its full path, and the Debian package that has it.
pub(super) type Needed = (&'static str, &'static str);

/// What every process is started through.
pub(super) const SETPRIV: Needed = ("setpriv", "util-linux");

/// Servers live here, and an ordinary user's PATH does not lead here.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where the program is.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|p| p.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SBIN.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

/// The program's path, or its bare name, whose start will say what is wrong.
pub(super) fn path(program: &str) -> PathBuf {
    find(program).unwrap_or_else(|| PathBuf::from(program))
}

/// Checks that all are there.
pub(super) fn check(needed: impl IntoIterator<Item = Needed>) -> Result<(), Failure> {
    let mut missing: Vec<Needed> = needed
        .into_iter()
        .filter(|(program, _)| find(program).is_none())
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(|(program, package)| {
        told!(
            "{program}（Debian 软件包 {package}）",
            "{program} (Debian package {package})"
        )
    });
    let list: Vec<String> = list.collect();
    Err(unusable_told!(
        "没有安装：{}；`make demo` 会装上缺的，`oversell doctor` 检查还缺什么，`docker compose up` 一样都不需要",
        "not installed: {}; `make demo` installs what is missing, `oversell doctor` says what else is, and `docker compose up` needs none of it",
        list.join(", ")
    ))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package_and_the_way_out() {
        let error = check([("sh", "dash"), ("no-such-server", "no-such-package")])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "not installed: no-such-server (Debian package no-such-package); \
             `make demo` installs what is missing, `oversell doctor` says what else is, and `docker compose up` needs none of it"
        );
    }

    #[test]
    fn a_program_outside_of_path_is_found_in_sbin() {
        assert!(find("setpriv").is_some());
        assert!(find("/usr/bin/setpriv").is_some());
        assert!(find("/usr/bin").is_none(), "a folder is no program");
    }
}
