//! The most requests that were inside the critical section at once, from when each of them was inside.
//!
//! Each instance reads its own clock, so on several machines the figure is as good as their clocks agree; on one there is one
//! clock.

/// A stay inside the critical section: from and to, in microseconds of one clock.
pub(super) type Stay = (u64, u64);

/// The most stays at any time. `None` without a stay: the strategy has no critical section, or the answers do not say.
pub(super) fn most_at_once(stays: &[Stay]) -> Option<u64> {
    // At the same time leaving comes before entering: -1 is less than +1.
    let mut steps: Vec<_> = stays.iter().flat_map(|(from, to)| [(*from, 1), (*to, -1)]).collect();
    steps.sort_unstable();
    let mut inside = 0_i64;
    let most = steps.into_iter().map(|(_, step)| {
        inside += step;
        inside
    });
    most.max().and_then(|most| u64::try_from(most).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_stays() {
        for (what, stays, most) in [
            ("nobody", &[][..], None),
            ("one", &[(5, 9)], Some(1)),
            ("one after the other", &[(5, 9), (9, 12), (1, 5)], Some(1)),
            ("one within another", &[(5, 20), (7, 9), (10, 12)], Some(2)),
            ("three, of whom two at a time", &[(1, 5), (4, 8), (7, 9)], Some(2)),
            ("all together", &[(1, 9), (2, 8), (3, 7)], Some(3)),
        ] {
            assert_eq!(most_at_once(stays), most, "{what}");
        }
    }
}
