//! The help and the errors of the command line, in Chinese if the terminal gets it: `zh.toml` has the texts by their English.
//!
//! 1. Help is translated text by text. Of an example only what is said of it is a text; the command stays.
//! 2. What is wrong on the command line is said by its kind, with what clap suggests.

use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use oversell_lab::terminal::{chinese::is_wanted, wrap::wrap_lines};
use std::{collections::BTreeMap, sync::LazyLock};

/// The Chinese texts, by their English.
static CHINESE_TEXTS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("zh.toml")).expect("pairs of texts"));

/// Limit of the width of help, on a terminal or not.
const HELP_WIDTH: usize = 100;

/// Puts a command and its subcommands into the language of the terminal, wrapped to `columns`.
pub(super) fn localize(command: Command, columns: Option<usize>) -> Command {
    let width = columns.unwrap_or(HELP_WIDTH).min(HELP_WIDTH);
    let mut command = command.term_width(width);
    command.build();
    if is_wanted() {
        command = translate_command(command);
    }
    wrap_text_after_options(command, width)
}

/// Wraps the text below the options, of the command and of its subcommands.
fn wrap_text_after_options(mut command: Command, width: usize) -> Command {
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(fit_text(&after, width));
    }
    command.mut_subcommands(|below| wrap_text_after_options(below, width))
}

/// The text below the options: paragraphs are wrapped, and the words of a long example stand below it.
fn fit_text(text: &str, width: usize) -> String {
    let text = translate_each(text, str::to_owned);
    let lines = text.lines().map(|line| match split_example(line) {
        Some((example, said)) if textwrap::core::display_width(line) > width => {
            let said = wrap_lines(&format!("      {said}"), width);
            format!("{}\n{said}", example.trim_end())
        }
        _ if line.starts_with(' ') => line.to_owned(),
        _ => wrap_lines(line, width),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Translates all help texts of the command, of its options and of its subcommands.
fn translate_command(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(ToString::to_string) {
        command = command.about(translate_text(&about));
    }
    if let Some(about) = command.get_long_about().map(ToString::to_string) {
        command = command.long_about(translate_text(&about));
    }
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(translate_text(&after));
    }
    let template = help_template(&command);
    command.help_template(template).mut_args(translate_option).mut_subcommands(translate_command)
}

/// The template of a help, with a Chinese heading for each part.
fn help_template(command: &Command) -> String {
    let mut template = "{about-with-newline}\n用法：{usage}\n\n".to_owned();
    if command.has_subcommands() {
        template += "命令：\n{subcommands}\n\n";
    }
    if command.get_positionals().next().is_some() {
        template += "参数：\n{positionals}\n\n";
    }
    template + "选项：\n{options}{after-help}"
}

/// Translates an option's help, and adds its default and possible values to it.
fn translate_option(option: Arg) -> Arg {
    let help = option.get_help().map(|help| translate_text(&help.to_string()));
    let mut help = help.unwrap_or_default();
    let default = option.get_default_values().iter();
    let default: Vec<_> = default.map(|value| value.to_string_lossy()).collect();
    let values = option.get_possible_values();
    if option.get_action().takes_values() && !option.is_hide_possible_values_set() && !values.is_empty() {
        let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        help += &format!("［可取 {}］", values.join("、"));
    }
    if option.get_action().takes_values() && !default.is_empty() {
        help += &format!("［默认 {}］", default.join(","));
    }
    // The help of an option has one form here; only `--help` itself has a long one, in clap's words.
    option.long_help(help.clone()).help(help).hide_default_value(true).hide_possible_values(true)
}

/// Translates a help text part by part; a part without a translation stays.
fn translate_text(text: &str) -> String {
    translate_each(text, |part| CHINESE_TEXTS.get(part).map_or(part, String::as_str).to_owned())
}

/// Replaces each text of a help: a paragraph is one text, and so are the words behind an example, after two spaces.
fn translate_each(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.push(line);
            continue;
        }
        match std::mem::take(&mut paragraph)[..] {
            [] => {}
            ref all => lines.push(replace(&all.join(" "))),
        }
        lines.push(match split_example(line) {
            Some((example, said)) => format!("{example}{}", replace(said)),
            None => line.to_owned(),
        });
    }
    lines.join("\n").trim_end().to_owned()
}

/// Splits the line of an example into its command and the words after two spaces; `None` without words, or before a `>`.
fn split_example(line: &str) -> Option<(&str, &str)> {
    let command = line.len() - line.trim_start().len();
    let gap = command + line[command..].find("  ")?;
    let said = line[gap..].trim_start();
    (!said.starts_with('>')).then(|| (&line[..line.len() - said.len()], said))
}

/// The error in Chinese; `None` for help.
pub(super) fn chinese_error(error: &Error) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join("、"),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let (option, value) = (said(ContextKind::InvalidArg), said(ContextKind::InvalidValue));
    let mut words = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return None;
        }
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
        words += &format!("：{}", translate_reason(&why.to_string()));
    }
    let suggested = [ContextKind::SuggestedValue, ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand].map(said).concat();
    let known = said(ContextKind::ValidValue);
    if !suggested.is_empty() {
        words += &format!("；是不是要用 '{suggested}'？");
    } else if !known.is_empty() {
        words += &format!("；可取 {known}");
    }
    Some(format!("{words}\n用 --help 查看说明"))
}

/// Why a value is refused, in the words of clap, the standard library and humantime.
fn translate_reason(why: &str) -> String {
    if let Some((value, range)) = why.split_once(" is not in ")
        && let Some((least, most)) = range.split_once("..")
    {
        let most = match most.strip_prefix('=') {
            Some(most) => format!("，不大于 {most}"),
            None if most.is_empty() => String::new(),
            None => format!("，小于 {most}"),
        };
        return match least.is_empty() {
            true => format!("{value} 要{}", most.trim_start_matches('，')),
            false => format!("{value} 要不小于 {least}{most}"),
        };
    }
    let known = match why {
        "invalid digit found in string" => "不是数字",
        "cannot parse integer from empty string" | "value was empty" => "是空的",
        "number too large to fit in target type" => "太大",
        "number too small to fit in target type" => "太小",
        _ if why.starts_with("expected number") => "要以数字开头，如 3s",
        _ if why.contains("time unit") => "要带时间单位，如 3s、200ms",
        _ => why,
    };
    known.to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All texts of a command and of what is below it.
    fn texts(command: &Command, all: &mut BTreeSet<String>) {
        let mut add = |text: &dyn ToString| {
            translate_each(&text.to_string(), |part| {
                all.insert(part.to_owned());
                String::new()
            });
        };
        let after = command.get_after_help();
        for text in [command.get_about(), command.get_long_about(), after].into_iter().flatten() {
            add(text);
        }
        for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
            add(option.get_help().expect("an option says what it is for"));
        }
        for below in command.get_subcommands() {
            texts(below, all);
        }
    }

    /// Texts without Chinese, and Chinese without a text.
    fn difference(mut command: Command) -> (BTreeSet<String>, BTreeSet<String>) {
        command.build();
        let mut all = BTreeSet::new();
        texts(&command, &mut all);
        let known: BTreeSet<_> = CHINESE_TEXTS.keys().cloned().collect();
        (&all - &known, &known - &all)
    }

    /// No command and no option lacks its Chinese, and no Chinese is left over.
    pub(in crate::cli) fn assert_is_whole(command: Command) {
        let (missing, left) = difference(command);
        assert!(missing.is_empty(), "without Chinese: {missing:#?}");
        assert!(left.is_empty(), "Chinese of no text: {left:#?}");
        for (english, chinese) in &*CHINESE_TEXTS {
            let is_code = english == "kill -9";
            assert!(is_code || chinese.chars().any(|c| c > '\u{2e80}'), "{chinese}");
        }
    }

    /// A text without its Chinese is found, and so is Chinese of no text.
    #[test]
    fn missing_and_unused_chinese_texts_are_found() {
        let odd = Command::new("x").about("No such text").after_help("Examples:\n  x y   nor this");
        let (missing, left) = difference(odd);
        for text in ["No such text", "nor this"] {
            assert!(missing.contains(text), "{missing:?}");
        }
        assert!(left.contains("Users"), "{left:?}");
    }
}
