//! Reads texts out of the lessons' files.

use oversell_lab::terminal::bilingual::leak;
use serde::{Deserialize, Deserializer};

/// Reads a text that is kept until the program ends.
pub(super) fn leaked_text<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    String::deserialize(from).map(leak)
}

/// Always fails, so that a file cannot set a field that the program computes.
pub(super) fn refuse_computed_field<'de, D: Deserializer<'de>>(_: D) -> Result<bool, D::Error> {
    Err(serde::de::Error::custom("it is computed from the experiment: remove this line"))
}

/// Reads a list of texts that are kept until the program ends.
pub(super) fn leaked_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<&'static str>, D::Error> {
    Vec::<String>::deserialize(from).map(|texts| texts.into_iter().map(leak).collect())
}
