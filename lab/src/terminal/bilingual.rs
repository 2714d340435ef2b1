//! Text for people, in both languages of the project.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// The same text in Chinese and in English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Bilingual {
    pub zh: &'static str,
    pub en: &'static str,
}

impl Bilingual {
    pub const fn of(zh: &'static str, en: &'static str) -> Self {
        Self { zh, en }
    }

    /// In the language of the terminal.
    pub fn localized(self) -> &'static str {
        if crate::terminal::chinese::is_wanted() { self.zh } else { self.en }
    }
}

/// From data that is parsed once: its text is kept for as long as the program runs.
impl<'de> Deserialize<'de> for Bilingual {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Both {
            zh: String,
            en: String,
        }
        let Both { zh, en } = Both::deserialize(from)?;
        Ok(Self { zh: leak(zh), en: leak(en) })
    }
}

/// Keeps a text for as long as the program runs: for data that is parsed once.
pub fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}
