//! `--help` in Chinese, under a Chinese locale: the words of `chinese.toml` in the place of the English ones.

use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;

/// What is said of one command.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Words {
    about: String,
    after: String,
    args: BTreeMap<String, String>,
}

type All = BTreeMap<String, Words>;

/// The name of the words that commands share.
const SHARED: &str = "*";

/// Whether the environment asks for Chinese, as POSIX reads it.
pub(crate) fn is_asked_for() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| locale.starts_with("zh"))
}

/// The same command, whose help is in Chinese.
pub(crate) fn of(command: Command) -> Command {
    // Its own file, which a test reads.
    let all = words().unwrap_or_default();
    let path = command.get_name().to_owned();
    translated(command, &path, &all)
}

fn words() -> Result<All, toml::de::Error> {
    toml::from_str(include_str!("chinese.toml"))
}

fn translated(command: Command, path: &str, all: &All) -> Command {
    const TEMPLATE: &str = "{about-with-newline}\n用法：{usage}\n\n{all-args}\n{after-help}\n";
    let empty = Words::default();
    let words = all.get(path).unwrap_or(&empty);
    let names: Vec<_> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let mut command = command
        .about(words.about.clone())
        .long_about(None::<&str>)
        .after_help(words.after.clone())
        .help_template(TEMPLATE)
        .subcommand_help_heading("命令")
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .mut_args(|arg| {
            let heading = if arg.is_positional() {
                "参数"
            } else {
                "选项"
            };
            let help = said(path, arg.get_id().as_str(), all)
                .unwrap_or_default()
                .to_owned();
            arg.help_heading(heading).help(help).long_help(None::<&str>)
        })
        .arg(flag("help", 'h', ArgAction::Help, "打印帮助"));
    if command.get_version().is_some() {
        let version = flag("version", 'V', ArgAction::Version, "打印版本");
        command = command.disable_version_flag(true).arg(version);
    }
    for name in names {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(&name, |it| translated(it, &path, all));
    }
    command
}

fn flag(name: &'static str, short: char, action: ArgAction, help: &'static str) -> Arg {
    Arg::new(name)
        .short(short)
        .long(name)
        .action(action)
        .help(help)
        .help_heading("选项")
}

/// What an argument is for, by its command's words or by those that commands share.
fn said<'a>(path: &str, arg: &str, all: &'a All) -> Option<&'a str> {
    let of = |path: &str| all.get(path)?.args.get(arg).map(String::as_str);
    of(path).or_else(|| of(SHARED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    /// Each command and each argument, of which something is said in English.
    fn each(command: &Command, path: &str, seen: &mut Vec<(String, Option<String>)>) {
        seen.push((path.to_owned(), None));
        for arg in command.get_arguments() {
            seen.push((path.to_owned(), Some(arg.get_id().to_string())));
        }
        for below in command.get_subcommands() {
            each(below, &format!("{path} {}", below.get_name()), seen);
        }
    }

    #[test]
    fn every_command_and_every_argument_has_chinese_words_and_no_other() {
        let all = words().expect("chinese.toml");
        let mut seen = Vec::new();
        each(&cli::command(), "oversell", &mut seen);
        for (path, arg) in &seen {
            match arg {
                None => {
                    let words = all.get(path).unwrap_or_else(|| panic!("{path}"));
                    assert!(!words.about.is_empty(), "{path}");
                }
                Some(arg) => assert!(said(path, arg, &all).is_some(), "{path}: {arg}"),
            }
        }
        for (path, words) in &all {
            let is_there = |arg: &String| {
                seen.iter()
                    .any(|(at, it)| (path == SHARED || at == path) && it.as_ref() == Some(arg))
            };
            assert!(
                path == SHARED || seen.contains(&(path.clone(), None)),
                "{path}"
            );
            for arg in words.args.keys() {
                assert!(is_there(arg), "{path} has no {arg}");
            }
        }
    }

    #[test]
    fn the_help_of_each_command_has_no_english_heading() {
        let mut command = of(cli::command());
        command.build();
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            for english in [
                "Usage:",
                "Options:",
                "Commands:",
                "Arguments:",
                "Print help",
            ] {
                assert!(!help.contains(english), "{}: {help}", command.get_name());
            }
            assert!(help.contains("用法："), "{help}");
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut command);
    }
}
