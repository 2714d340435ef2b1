//! The output of commands, and its language.

pub mod bilingual;
pub(crate) mod chinese;
pub mod console;
pub mod failure;
pub(crate) mod stdout;
pub(crate) mod wrap;
