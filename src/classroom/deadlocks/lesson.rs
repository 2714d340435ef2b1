//! A lesson on deadlocks: two scripts for two transactions, without the cure and with it.
//!
//! Next: `opposite_order.rs`, the first; then `two_transactions.rs`.

pub use crate::section::mysql::{DEADLOCK, LOCK_WAIT_TIMEOUT};
use oversell_lab::terminal::bilingual::Bilingual;
use serde::Serialize;
use utoipa::ToSchema;

/// One of the two transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum Side {
    A,
    B,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

pub(crate) const BEGIN: &str = "START TRANSACTION";
pub(super) const COMMIT: &str = "COMMIT";

/// One way in which transactions stand in each other's way, and its cure.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadlockLesson {
    /// Its name in the address.
    #[schema(example = "opposite-order")]
    pub slug: &'static str,
    pub title: Bilingual,
    pub breaks: Bilingual,
    pub cure: Bilingual,
    /// The server's error without the cure.
    #[schema(example = 1213)]
    pub error: u16,
    /// How long a statement waits for a row lock before error 1205, in seconds.
    #[schema(example = 10)]
    pub wait_s: u8,
    /// An index that is the cure.
    #[serde(skip)]
    pub(super) index: Option<&'static str>,
    /// Stands for work that takes longer than the other transaction may wait.
    #[serde(skip)]
    pub(crate) long: Option<&'static str>,
    /// A statement whose plan is shown, before and after the index.
    #[serde(skip)]
    pub explain: Option<&'static str>,
    #[serde(skip)]
    pub(super) uncured: &'static [Statement],
    #[serde(skip)]
    pub(super) cured: &'static [Statement],
}

/// One statement, and which of the two transactions sends it. The table is called `goods` here; a play puts in its own name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statement {
    A(&'static str),
    B(&'static str),
}

impl Statement {
    /// The sender and the text of the statement.
    fn parts(self) -> (Side, &'static str) {
        match self {
            Self::A(sql) => (Side::A, sql),
            Self::B(sql) => (Side::B, sql),
        }
    }
}

impl DeadlockLesson {
    /// The statements in their order, each with its sender.
    pub(crate) fn script(&self, cured: bool) -> impl Iterator<Item = (Side, &'static str)> + use<> {
        let script = if cured { self.cured } else { self.uncured };
        script.iter().map(|step| step.parts())
    }
}
