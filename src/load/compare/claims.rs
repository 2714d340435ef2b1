//! The order that the course gives its strategies, beside the one that was measured.

use crate::bilingual::Bilingual;
use crate::load::{Row, rate::Spread, row::ONE, terminal::rate};
use serde::Serialize;

/// What the course says of two strategies' speed.
struct Claim {
    chapter: &'static str,
    claim: Bilingual,
    /// From the fastest to the slowest.
    order: &'static [&'static str],
    says: Says,
}

#[derive(Clone, Copy, PartialEq)]
enum Says {
    /// Each is faster than the next.
    Faster,
    /// They are about as fast: none twice as fast as the next.
    Alike,
}

const CLAIMS: [Claim; 4] = [
    Claim {
        chapter: "1.7.4",
        claim: Bilingual {
            zh: "一条 SQL > 悲观锁 > JVM 锁 > 乐观锁",
            en: "one SQL > pessimistic > JVM lock > optimistic",
        },
        order: &["single-update", "select-for-update", "mutex", "version-cas"],
        says: Says::Faster,
    },
    Claim {
        chapter: "2.10.1",
        claim: Bilingual {
            zh: "Redisson 和手写的差不多",
            en: "Redisson is about as fast as the lock written by hand",
        },
        order: &["redis-lock", "redis-watchdog"],
        says: Says::Alike,
    },
    Claim {
        chapter: "3.3",
        claim: Bilingual {
            zh: "比 MySQL 锁略好",
            en: "a little faster than MySQL's lock",
        },
        order: &["zk-ephemeral", "table-lock"],
        says: Says::Faster,
    },
    Claim {
        chapter: "3.4.1",
        claim: Bilingual {
            zh: "比 3.3 慢",
            en: "slower than 3.3",
        },
        order: &["zk-ephemeral", "zk-sequential"],
        says: Says::Faster,
    },
];

/// How a claim came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CameOut {
    /// It was so.
    So,
    /// The spreads overlap: it may be chance.
    WithinNoise,
    /// It was otherwise.
    Otherwise,
}

/// Two neighbours in the course's order.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Compared {
    pub(super) chapter: &'static str,
    pub(super) claim: Bilingual,
    pub(super) faster: &'static str,
    pub(super) slower: &'static str,
    /// Pieces sold per second.
    pub(super) seen: [Spread; 2],
    pub(super) came_out: CameOut,
}

/// Each claim of which both sides were run, on one instance where that was.
pub(super) fn of(rows: &[Row]) -> Vec<Compared> {
    let target = if rows.iter().any(|row| row.target == ONE) {
        ONE
    } else {
        rows.first().map_or(ONE, |r| &r.target)
    };
    let spread = |slug: &str| {
        let row = rows
            .iter()
            .find(|row| row.strategy == slug && row.target == target)?;
        Some(
            row.rate
                .as_ref()
                .map_or_else(|| Spread::of([row.sold_per_sec]), |rate| rate.sold_per_sec),
        )
    };
    let compared = |claim: &Claim, pair: &[&'static str]| {
        let seen = [spread(pair[0])?, spread(pair[1])?];
        let Claim {
            chapter,
            claim: ref words,
            says,
            ..
        } = *claim;
        let came_out = says.came_out(seen);
        Some(Compared {
            chapter,
            claim: *words,
            faster: pair[0],
            slower: pair[1],
            seen,
            came_out,
        })
    };
    CLAIMS
        .iter()
        .flat_map(|claim| {
            claim
                .order
                .windows(2)
                .filter_map(move |pair| compared(claim, pair))
        })
        .collect()
}

impl Says {
    fn came_out(self, [first, second]: [Spread; 2]) -> CameOut {
        let (low, high) = (
            first.median.min(second.median),
            first.median.max(second.median),
        );
        match self {
            Self::Alike if high <= 2.0 * low => CameOut::So,
            Self::Faster if first.overlaps(&second) => CameOut::WithinNoise,
            Self::Faster if first.median > second.median => CameOut::So,
            Self::Alike | Self::Faster => CameOut::Otherwise,
        }
    }
}

impl CameOut {
    pub(super) const fn words(self) -> Bilingual {
        match self {
            Self::So => Bilingual {
                zh: "是这样",
                en: "came out so",
            },
            Self::WithinNoise => Bilingual {
                zh: "差别在误差之内",
                en: "within noise",
            },
            Self::Otherwise => Bilingual {
                zh: "不是这样",
                en: "came out otherwise",
            },
        }
    }
}

impl Compared {
    /// `§1.7.4 …: single-update 13,100/s, mutex 3,460/s: came out so`.
    pub(super) fn line(&self) -> String {
        let Self {
            chapter,
            claim,
            faster,
            slower,
            seen: [one, other],
            came_out,
        } = self;
        let (one, other) = (rate(one.median), rate(other.median));
        format!(
            "§{chapter} {}: {faster} {one}/s, {slower} {other}/s: {}",
            claim.en,
            came_out.words().en
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load::compare::tests::row, stock};

    fn rated(slug: &str, rates: [f64; 3]) -> Row {
        let row = row(slug, ONE, 100, 100);
        let rate = crate::load::rate::Rate {
            sold_per_sec: Spread::of(rates),
            ..super::super::tests::rate()
        };
        Row {
            rate: Some(rate),
            ..row
        }
    }

    #[test]
    fn every_strategy_that_a_claim_names_is_in_the_registry() {
        for slug in CLAIMS.iter().flat_map(|claim| claim.order) {
            assert!(stock::find(slug).is_some(), "{slug}");
        }
    }

    #[test]
    fn an_order_is_so_otherwise_or_within_the_spread() {
        let rows = [
            rated("single-update", [90.0, 100.0, 110.0]),
            rated("select-for-update", [50.0, 60.0, 70.0]),
            rated("mutex", [40.0, 55.0, 58.0]),
            rated("version-cas", [80.0, 81.0, 82.0]),
        ];
        let came_out: Vec<_> = of(&rows).iter().map(|compared| compared.came_out).collect();
        assert_eq!(
            came_out,
            [CameOut::So, CameOut::WithinNoise, CameOut::Otherwise]
        );
    }

    #[test]
    fn two_that_are_about_as_fast_may_differ_by_less_than_twice() {
        let came_out = |other| {
            of(&[
                rated("redis-lock", [99.0; 3]),
                rated("redis-watchdog", [other; 3]),
            ])[0]
                .came_out
        };
        assert_eq!(
            [200.0, 190.0, 40.0].map(came_out),
            [CameOut::Otherwise, CameOut::So, CameOut::Otherwise]
        );
    }

    #[test]
    fn a_claim_whose_strategies_were_not_run_is_left_out() {
        assert!(of(&[rated("mutex", [1.0; 3]), rated("redis-lock", [1.0; 3])]).is_empty());
    }
}
