//! The verdict on a claim.

use oversell_lab::terminal::bilingual::Bilingual;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a lesson's claim was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It is so here.
    #[default]
    Reproduced,
    /// It is not so here.
    NotReproduced,
    /// The rounds do not agree whether it is so.
    Noise,
    /// It could not be tried here.
    Unavailable,
}

impl ClaimVerdict {
    /// `Reproduced` if the claim holds.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Reproduced } else { Self::NotReproduced }
    }

    /// The sign of the verdict.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Reproduced => "✓",
            Self::NotReproduced => "✗",
            Self::Noise => "≈",
            Self::Unavailable => "–",
        }
    }

    /// The word for people.
    pub const fn words(self) -> Bilingual {
        match self {
            Self::Reproduced => Bilingual::of("已复现", "reproduced"),
            Self::NotReproduced => Bilingual::of("未复现", "not reproduced"),
            Self::Noise => Bilingual::of("误差范围内", "noise"),
            Self::Unavailable => Bilingual::of("未验证", "unavailable"),
        }
    }
}
