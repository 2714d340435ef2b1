//! A text in both languages that is made while the program runs, such as an observation with its figures.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A text in both languages, of at most 2000 characters where a request brings it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Chinese.
    #[garde(length(chars, max = 2000))]
    pub zh: String,
    /// English.
    #[garde(length(chars, max = 2000))]
    pub en: String,
}

/// A text in both languages, with the same arguments: `words!("{n} 件", "{n} pieces")`.
#[macro_export]
macro_rules! words {
    ($zh:literal, $en:literal $($with:tt)*) => {
        $crate::claims::Words::new(format!($zh $($with)*), format!($en $($with)*))
    };
}
pub use words;

impl Words {
    pub fn new(zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self { zh: zh.into(), en: en.into() }
    }

    /// The text in the language of the terminal.
    pub fn localized(self) -> String {
        if oversell_lab::terminal::chinese::is_wanted() { self.zh } else { self.en }
    }

    /// Joins several texts with a separator for each language.
    pub fn join(all: &[Self], [zh, en]: [&str; 2]) -> Self {
        let of = |text: fn(&Self) -> &str, by| all.iter().map(text).collect::<Vec<_>>().join(by);
        Self::new(of(|w| &w.zh, zh), of(|w| &w.en, en))
    }

    /// One text for both languages, such as a server's own message.
    pub fn untranslated(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { zh: text.clone(), en: text }
    }
}
