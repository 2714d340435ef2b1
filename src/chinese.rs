//! The command line in Chinese, where the locale is: `zh.toml` has its texts, each beside its English.
//!
//! 1. The locale is `LC_ALL`, else `LC_MESSAGES`, else `LANG`.
//! 2. Help is translated text by text. Of an example only what is said of it is a text; the command stays.
//! 3. What is wrong on the command line is said by its kind, with what clap suggests.
//!
//! A message that a command makes itself has both languages where it is made: [`told`].

use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{collections::BTreeMap, sync::LazyLock};

/// From each English text to the Chinese one.
static TEXTS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("zh.toml")).expect("pairs of texts"));

const TEMPLATE: &str = "{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// Whether this process speaks Chinese to its terminal.
pub(crate) fn is_wanted() -> bool {
    static WANTED: LazyLock<bool> = LazyLock::new(|| {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].map(std::env::var);
        // What tests demand is said in English.
        !cfg!(test) && is_chinese(locale.into_iter().flatten())
    });
    *WANTED
}

/// Whether the first of these that says something says Chinese.
fn is_chinese(mut locale: impl Iterator<Item = String>) -> bool {
    let first = locale.find(|it| !it.is_empty());
    first.is_some_and(|it| it.starts_with("zh"))
}

/// A text in the language of the terminal, as `format!` writes it: Chinese, then English.
macro_rules! told {
    ($zh:literal, $en:literal $(, $value:expr)* $(,)?) => {
        if $crate::chinese::is_wanted() {
            format!($zh $(, $value)*)
        } else {
            format!($en $(, $value)*)
        }
    };
}
pub(crate) use told;

/// This command with all that is below it, in Chinese.
pub(crate) fn spoken(mut command: Command) -> Command {
    command.build();
    in_chinese(command)
}

fn in_chinese(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(ToString::to_string) {
        command = command.about(translated(&about));
    }
    if let Some(about) = command.get_long_about().map(ToString::to_string) {
        command = command.long_about(translated(&about));
    }
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(translated(&after));
    }
    command
        .help_template(TEMPLATE)
        .subcommand_help_heading("命令")
        .mut_args(option)
        .mut_subcommands(in_chinese)
}

fn option(option: Arg) -> Arg {
    let heading = if option.is_positional() {
        "参数"
    } else {
        "选项"
    };
    let mut help = option
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    help = translated(&help);
    let default = option.get_default_values().iter();
    let default: Vec<_> = default.map(|value| value.to_string_lossy()).collect();
    let values = option.get_possible_values();
    if option.get_action().takes_values()
        && !option.is_hide_possible_values_set()
        && !values.is_empty()
    {
        let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        help += &format!("［可取 {}］", values.join("、"));
    }
    if option.get_action().takes_values() && !default.is_empty() {
        help += &format!("［默认 {}］", default.join(","));
    }
    option
        .help(help)
        .help_heading(heading)
        .hide_default_value(true)
        .hide_possible_values(true)
}

/// A help text in which each part that is a text of its own is translated. One that has no Chinese stays.
fn translated(text: &str) -> String {
    each(text, |part| {
        TEXTS.get(part).map_or(part, String::as_str).to_owned()
    })
}

/// Writes a help text with each text of its own replaced: a paragraph, whose lines are one text, and what is said of an example behind
/// two spaces.
fn each(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.push(line);
            continue;
        }
        match std::mem::take(&mut paragraph)[..] {
            [] => {}
            ["Examples:"] => lines.push("示例：".to_owned()),
            ref all => lines.push(replace(&all.join(" "))),
        }
        let example = line.trim_start();
        lines.push(match example.split_once("  ") {
            Some((command, said)) if !said.trim_start().starts_with('>') => {
                format!("  {command}   {}", replace(said.trim_start()))
            }
            _ => line.to_owned(),
        });
    }
    lines.join("\n").trim_end().to_owned()
}

/// What is wrong on the command line, in Chinese; `None` where it is help that was asked for.
pub(crate) fn wrong(error: &Error) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join("、"),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let (option, value) = (
        said(ContextKind::InvalidArg),
        said(ContextKind::InvalidValue),
    );
    let mut words = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => format!("没有 '{option}' 这个选项"),
        ErrorKind::InvalidSubcommand => {
            format!("没有 '{}' 这个命令", said(ContextKind::InvalidSubcommand))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("'{option}' 需要一个值"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("'{option}' 的值 '{value}' 不对")
        }
        ErrorKind::ArgumentConflict => {
            format!("'{option}' 不能和 '{}' 一起用", said(ContextKind::PriorArg))
        }
        ErrorKind::MissingRequiredArgument => format!("缺少 {option}"),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        _ => format!("'{option}' 用得不对"),
    };
    if let Some(why) = std::error::Error::source(error) {
        words += &format!("：{why}");
    }
    let suggested = [
        ContextKind::SuggestedValue,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
    ]
    .map(said)
    .concat();
    let known = said(ContextKind::ValidValue);
    if !suggested.is_empty() {
        words += &format!("；是不是要用 '{suggested}'？");
    } else if !known.is_empty() {
        words += &format!("；可取 {known}");
    }
    Some(format!("{words}\n用 --help 查看说明"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All texts of a command and of what is below it.
    fn texts(command: &Command, all: &mut BTreeSet<String>) {
        let mut add = |text: &dyn ToString| {
            each(&text.to_string(), |part| {
                all.insert(part.to_owned());
                String::new()
            });
        };
        let after = command.get_after_help();
        for text in [command.get_about(), command.get_long_about(), after]
            .into_iter()
            .flatten()
        {
            add(text);
        }
        for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
            add(option.get_help().expect("an option says what it is for"));
        }
        for below in command.get_subcommands() {
            texts(below, all);
        }
    }

    /// No command and no option lacks its Chinese, and no Chinese is left over.
    pub(crate) fn assert_is_whole(mut command: Command) {
        command.build();
        let mut all = BTreeSet::new();
        texts(&command, &mut all);
        let known: BTreeSet<_> = TEXTS.keys().cloned().collect();
        let none = Vec::<&String>::new();
        assert_eq!(
            all.difference(&known).collect::<Vec<_>>(),
            none,
            "without Chinese"
        );
        assert_eq!(
            known.difference(&all).collect::<Vec<_>>(),
            none,
            "of no option"
        );
        for (english, chinese) in &*TEXTS {
            let is_code = english == "kill -9";
            assert!(
                is_code || chinese.chars().any(|c| c > '\u{2e80}'),
                "{chinese}"
            );
        }
    }

    #[test]
    fn the_first_locale_that_says_something_decides() {
        for (locale, chinese) in [
            (["zh_CN.UTF-8", "en_US.UTF-8"], true),
            (["", "zh_TW"], true),
            (["C", "zh_CN.UTF-8"], false),
            (["", ""], false),
        ] {
            assert_eq!(
                is_chinese(locale.map(str::to_owned).into_iter()),
                chinese,
                "{locale:?}"
            );
        }
    }

    #[test]
    fn an_example_keeps_its_command() {
        let said = translated(
            "Examples:\n  oversell lab\n  oversell bench --rounds 9   calmer medians\n\nUnknown.",
        );
        assert_eq!(
            said,
            "示例：\n  oversell lab\n  oversell bench --rounds 9   中位数更稳\n\nUnknown."
        );
    }
}
