//! How the templates of the reports write numbers: as the terminal does. The macro makes items that are `pub`.

use super::terminal;
use askama::{Result, Values};

/// A whole number with a separator between each three digits.
#[askama::filter_fn]
pub fn with_commas(n: &i64, _: &dyn Values) -> Result<String> {
    Ok(terminal::with_commas(*n))
}

/// A rate per second, rounded to three digits.
#[askama::filter_fn]
pub fn rate(per_second: &f64, _: &dyn Values) -> Result<String> {
    Ok(terminal::rate(*per_second))
}

/// A latency in ms, with about three digits.
#[askama::filter_fn]
pub fn ms(ms: &f64, _: &dyn Values) -> Result<String> {
    Ok(terminal::ms(*ms))
}
