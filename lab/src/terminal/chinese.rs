//! The language of the terminal: Chinese, if the locale is.
//!
//! The locale is `LC_ALL`, else `LC_MESSAGES`, else `LANG`; unless it is `C`, the list in `LANGUAGE` goes before it, as gettext
//! has it. Only the program asks for it: whoever uses the library is answered in English.
//!
//! A message that a command makes itself has both languages where it is made: [`localized!`].

use std::sync::OnceLock;

static WANTED: OnceLock<bool> = OnceLock::new();

/// Whether the terminal gets Chinese; false until [`choose_by_locale`] is called.
pub fn is_wanted() -> bool {
    WANTED.get().is_some_and(|it| *it)
}

/// Chooses the language by the locale at the first call; returns whether it is Chinese.
pub fn choose_by_locale() -> bool {
    *WANTED.get_or_init(|| is_chinese(|name| std::env::var(name).ok()))
}

/// Whether these variables of the environment choose Chinese.
fn is_chinese(variable: impl Fn(&str) -> Option<String>) -> bool {
    let said = |name| variable(name).filter(|it| !it.is_empty());
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(said).unwrap_or_default();
    let translates = !matches!(locale.split('.').next(), Some("" | "C" | "POSIX"));
    let languages = said("LANGUAGE").filter(|_| translates).unwrap_or(locale);
    let known = |it: &&str| it.starts_with("zh") || it.starts_with("en");
    languages.split(':').find(known).is_some_and(|it| it.starts_with("zh"))
}

/// A text in the language of the terminal, as `format!` writes it: Chinese, then English.
#[macro_export]
macro_rules! localized {
    ($zh:literal, $en:literal $(, $value:expr)* $(,)?) => {
        if $crate::terminal::chinese::is_wanted() {
            format!($zh $(, $value)*)
        } else {
            format!($en $(, $value)*)
        }
    };
}
pub use localized;

/// Pads a label to `columns`; a Chinese character takes two. A wider label stays as it is.
pub fn pad_to_width(label: &str, columns: usize) -> String {
    let has = textwrap::core::display_width(label);
    label.to_owned() + &" ".repeat(columns.saturating_sub(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_that_says_something_decides() {
        for (variables, chinese) in [
            (&[("LC_ALL", "zh_CN.UTF-8"), ("LANG", "en_US.UTF-8")][..], true),
            (&[("LC_ALL", ""), ("LC_MESSAGES", "zh_TW"), ("LANG", "C")], true),
            (&[("LC_ALL", "C"), ("LANG", "zh_CN.UTF-8")], false),
            (&[("LC_MESSAGES", "en_US.UTF-8"), ("LANG", "zh_CN")], false),
            (&[("LANG", "zh_CN"), ("LANGUAGE", "en:zh")], false),
            (&[("LANG", "en_US"), ("LANGUAGE", "fr:zh_CN:en")], true),
            (&[("LANG", "C.UTF-8"), ("LANGUAGE", "zh_CN")], false),
            (&[("LANGUAGE", "zh_CN")], false),
            (&[], false),
        ] {
            let of = |name: &str| {
                let set = variables.iter().find(|(known, _)| *known == name)?;
                Some(set.1.to_owned())
            };
            assert_eq!(is_chinese(of), chinese, "{variables:?}");
        }
    }

    #[test]
    fn a_label_takes_its_columns_in_either_language() {
        assert_eq!(pad_to_width("phones", 8), "phones  ");
        assert_eq!(pad_to_width("手机", 8), "手机    ");
        assert_eq!(pad_to_width("longer than it", 8), "longer than it");
    }
}
