//! Load and verdicts.
pub mod bench;
pub mod compare;
