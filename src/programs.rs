//! Finds the programs of the system; an error names the missing ones and says how to get them.

use crate::terminal::{
    chinese::told,
    failure::{Failure, unusable_told},
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A program, or a file by its full path, and the Debian package that has it.
pub(crate) type Needed = (&'static str, &'static str);

/// Starts every process.
pub(crate) const SETPRIV: Needed = ("setpriv", "util-linux");

/// The folders of servers, which are not on the PATH of an ordinary user.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The variable of the environment that names another program in the place of the system's own.
const VARIABLES: [(&str, &str); 3] = [
    ("redis-server", "OVERSELL_REDIS_SERVER"),
    ("mariadbd", "OVERSELL_MYSQL_SERVER"),
    ("nginx", "OVERSELL_NGINX"),
];

/// Where the program is: where the environment names one in its place, that one.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    match chosen(program) {
        Some((_, other)) => on_path(&other),
        None => on_path(program),
    }
}

/// The program of a server: the one that `option` names, else the one of the environment, else the system's.
pub(crate) fn server(option: (&str, Option<&Path>), program: &str) -> Result<PathBuf, Failure> {
    let by_option = |path: &Path| (option.0, path.display().to_string());
    let Some((by, other)) = option.1.map(by_option).or_else(|| chosen(program)) else {
        return Ok(path(program));
    };
    let found = on_path(&other).filter(|file| is_program(file));
    found.ok_or_else(|| {
        unusable_told!(
            "{by}：{other} 不是可以运行的程序",
            "{by}: {other} is no program that can be run"
        )
    })
}

/// The variable that names a program in the place of this one, and what it names.
fn chosen(program: &str) -> Option<(&'static str, String)> {
    let (_, variable) = VARIABLES.iter().find(|(name, _)| *name == program)?;
    let value = std::env::var(variable).ok()?;
    (!value.is_empty()).then_some((variable, value))
}

fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let file = std::path::absolute(program).ok();
        return file.filter(|p| p.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SBIN.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

/// The path of a program, or its bare name, whose start will say what is wrong. Of a server it is the one that the labs of this process
/// take, unless their options name another.
#[must_use]
pub fn path(program: &str) -> PathBuf {
    find(program).unwrap_or_else(|| PathBuf::from(program))
}

/// The needs of a server without its program: the path is then a bare name.
pub(crate) fn missing(program: &Path, needed: &'static [Needed]) -> &'static [Needed] {
    if program.is_absolute() { &[] } else { needed }
}

/// Checks that all are there.
pub(crate) fn check(needed: impl IntoIterator<Item = Needed>) -> Result<(), Failure> {
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

/// The output of a program with this option, on stdout and stderr; none if it does not start.
pub(crate) fn says(program: &Path, option: &str) -> Option<String> {
    let said = Command::new(program).arg(option).output().ok()?;
    let text = [said.stdout, said.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The first number of a text, with its dots.
pub(crate) fn number(text: &str) -> String {
    let begin = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    begin
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect()
}

pub(crate) fn is_program(file: &Path) -> bool {
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
    fn a_server_that_an_option_names_is_refused_where_it_is_none() {
        let named = |path: &str| server(("--redis-server", Some(Path::new(path))), "redis-server");
        assert_eq!(named("/bin/sh").unwrap(), Path::new("/bin/sh"));
        assert!(named("sh").unwrap().is_absolute(), "a bare name is sought");
        for none in ["/bin", "/etc/passwd", "/no/such/redis-server"] {
            let refused = named(none).unwrap_err().to_string();
            let expected = format!("--redis-server: {none} is no program that can be run");
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn a_version_is_the_first_number_with_its_dots() {
        assert_eq!(number("10.11.11-MariaDB-0+deb12u1"), "10.11.11");
        assert_eq!(number("version: 3.9.3-x"), "3.9.3");
        assert_eq!(number(""), "");
    }

    #[test]
    fn a_program_outside_of_path_is_found_in_sbin() {
        assert!(find("setpriv").is_some());
        assert!(find("/usr/bin/setpriv").is_some());
        assert!(find("/usr/bin").is_none(), "a folder is no program");
    }
}
