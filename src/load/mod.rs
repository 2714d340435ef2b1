//! Load and verdicts.
pub mod bench;
pub mod compare;
pub mod run;

use serde::Serialize;

/// x
#[derive(Debug, Clone, Serialize)]
pub struct Row {}
