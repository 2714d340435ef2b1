//! How a claim is tried: the kinds of experiment, with their data.
//!
//! What fits no kind is [`Run::Custom`]: an experiment of its own, in `trials/experiments/`.

use super::toml::leaked_text;
use crate::seckill::check::OrdersVerdict;
use oversell_lab::terminal::bilingual::Bilingual;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a claim is tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Run {
    /// All of these in turn; the claim holds if each does.
    All(Vec<Run>),
    /// The race of this lesson and its cure end as the registry of replays says.
    Replay,
    /// A load sells exactly on each of these targets.
    #[serde(rename_all = "kebab-case")]
    Exact {
        #[serde(deserialize_with = "leaked_text")]
        strategy: &'static str,
        on: Vec<Target>,
        /// Connections; default 100.
        threads: Option<usize>,
        /// Requests of each; default 50, or 10 in the quick form.
        loops: Option<usize>,
    },
    /// The course's load, 100 × 50, oversells by far: a tenth of its sales or more.
    Oversells {
        #[serde(deserialize_with = "leaked_text")]
        strategy: &'static str,
        on: Target,
    },
    /// Two rates, measured in pairs.
    Compared {
        /// The strategy that the claim is about.
        first: RateSide,
        /// The strategy with which it is compared.
        second: RateSide,
        says: RatioClaim,
        /// Why it may not hold here.
        otherwise: Option<Bilingual>,
    },
    /// With 100 connections this strategy retries at least 1.5 times as often per piece as with 10.
    #[serde(deserialize_with = "leaked_text")]
    RetriesGrow(&'static str),
    /// With 2 connections fewer than half of this strategy's attempts fail, with 100 more than half.
    #[serde(deserialize_with = "leaked_text")]
    FewThenMostFail(&'static str),
    /// A crowd orders a voucher, and the checker reaches this verdict.
    #[serde(rename_all = "kebab-case")]
    Crowd {
        /// The step of the seckill.
        #[serde(deserialize_with = "leaked_text")]
        step: &'static str,
        on: Target,
        /// How often each user orders.
        orders_each: u64,
        /// The checker's verdict.
        comes_to: OrdersVerdict,
        /// Whether some must be refused because their user has another order under way.
        #[serde(default)]
        refuses_beside: bool,
    },
    /// Two requests to this route, on two instances, are served one after the other.
    #[serde(deserialize_with = "leaked_text")]
    ExclusiveRoute(&'static str),
    /// Each typed line prints what it should: `redis-cli`, `mysql`, `curl` and faults of the lab.
    Typed,
    /// An experiment in `trials/experiments/`.
    Custom,
    /// It is not tried, for this reason.
    NotRun(Bilingual),
}

impl Run {
    /// The experiments of [`Run::All`]; for any other kind, the experiment itself.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::All(runs) => runs,
            run => std::slice::from_ref(run),
        }
    }

    /// Returns whether a load shows the claim: it sells exactly, oversells, mostly fails, or its rates or retries are compared.
    pub(super) const fn loads(&self) -> bool {
        matches!(self, Self::Exact { .. } | Self::Oversells { .. } | Self::FewThenMostFail(_)) || self.compares_rates()
    }

    /// Returns whether rates or retries of two loads are compared.
    pub(super) const fn compares_rates(&self) -> bool {
        matches!(self, Self::Compared { .. } | Self::RetriesGrow(_))
    }

    /// The reason why the claim is not tried on our service; `None` if it is.
    pub(super) const fn why_not(&self) -> Option<Bilingual> {
        match self {
            Self::NotRun(why) => Some(*why),
            _ => None,
        }
    }
}

/// The change under which a lesson's claim must fail, where the kind of its experiment implies none or another is wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub enum Twin {
    /// Describes the twin of a custom experiment.
    Is(Bilingual),
    /// Replaces the line of this number, from 1; an empty text removes it.
    Typed(usize, String),
    /// Another experiment, which must fail.
    Run(Run),
}

/// Where to send the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    #[default]
    One,
    /// Three instances, through nginx.
    Three,
}

/// One side of a comparison of rates.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSide {
    #[serde(deserialize_with = "leaked_text")]
    pub strategy: &'static str,
    #[serde(default)]
    pub target: Target,
    /// The number of connections.
    #[serde(default = "default_threads")]
    pub threads: usize,
}

/// The connections of a side that names no number.
const fn default_threads() -> usize {
    100
}

impl Target {
    /// The name of the target for people.
    pub const fn words(self) -> Bilingual {
        match self {
            Self::One => Bilingual::of("一个实例", "one instance"),
            Self::Three => Bilingual::of("三个实例", "three instances"),
        }
    }
}

/// A claim about the ratio of two rates, the first divided by the second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioClaim {
    /// Much faster: at least twice as fast.
    MuchFaster,
    /// Faster: at least 1.15 times as fast.
    Faster,
    /// A little faster: 1 to 1.5 times as fast.
    ALittleFaster,
    /// About as fast: 0.8 to 1.25 times as fast.
    AboutAsFast,
    /// Near: half as fast to twice as fast.
    Near,
    /// Between these two ratios.
    Between(f64, f64),
}

impl RatioClaim {
    /// The least and the greatest ratio; infinity without an upper bound.
    pub const fn bounds(self) -> (f64, f64) {
        match self {
            Self::MuchFaster => (2.0, f64::INFINITY),
            Self::Faster => (1.15, f64::INFINITY),
            Self::ALittleFaster => (1.0, 1.5),
            Self::AboutAsFast => (0.8, 1.25),
            Self::Near => (0.5, 2.0),
            Self::Between(least, most) => (least, most),
        }
    }
}

/// Two rates that a claim compares, and the bounds of their ratio.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Rates {
    /// The side that the claim is about: strategy, target and number of connections.
    #[schema(value_type = Object)]
    pub first: RateSide,
    /// The side with which it is compared.
    #[schema(value_type = Object)]
    pub second: RateSide,
    /// The first is at least this many times as fast.
    #[schema(example = 1.15)]
    pub least: f64,
    /// The first is at most this many times as fast; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

impl Rates {
    /// The rates of both sides with the bounds of the claim; `most` is `None` if the ratio has no upper bound.
    pub(super) fn of(first: RateSide, second: RateSide, says: RatioClaim) -> Self {
        let (least, most) = says.bounds();
        let most = most.is_finite().then_some(most);
        Self { first, second, least, most }
    }
}
