//! The output of commands, and its language.

pub mod bilingual;
pub mod chinese;
pub mod failure;
pub mod stdout;
pub mod wrap;
