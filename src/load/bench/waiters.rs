//! A lock under contention: against one client that has it to itself, and from few who wait to many.

use super::{
    CONNECTIONS, MANY,
    figure::{Figure, Unit, median},
};
use crate::load::stats::Stats;

/// How many wait at once, from few to many, and how many requests each of them sends.
pub(super) const WAITERS: [(usize, usize); 3] = [(10, 500), (CONNECTIONS, 50), (MANY, 10)];
/// Which of them is held against the one client.
const COMMON: usize = 1;

/// One lock's figures, one for each round.
#[derive(Debug)]
pub(super) struct Contended {
    /// The strategy.
    pub(super) slug: &'static str,
    /// What of the one client's rate is wanted.
    wanted: f64,
    against: &'static str,
    alone: Vec<f64>,
    /// For each of [`WAITERS`].
    rates: [Vec<f64>; WAITERS.len()],
    /// The longest wait over the mean one.
    longest: Vec<f64>,
    /// The 99 % line over the median.
    tail: Vec<f64>,
}

impl Contended {
    /// No round yet of a strategy that is held `against` one client, of whose rate so much is `wanted`.
    pub(super) fn new(slug: &'static str, against: &'static str, wanted: f64) -> Self {
        let (alone, longest, tail) = (Vec::new(), Vec::new(), Vec::new());
        Self { slug, wanted, against, alone, rates: Default::default(), longest, tail }
    }

    /// Notes a round: the rate of the one client, and how each of [`WAITERS`] fared.
    pub(super) fn note(&mut self, alone: f64, waited: &[Stats; WAITERS.len()]) {
        self.alone.push(alone);
        for (rates, stats) in self.rates.iter_mut().zip(waited) {
            rates.push(stats.throughput);
        }
        let common = &waited[COMMON];
        self.longest.push(common.max / common.average);
        self.tail.push(common.p99_line / common.median);
    }

    /// Sections per second of [`CONNECTIONS`], one for each round.
    pub(super) fn rates(&self) -> &[f64] {
        &self.rates[COMMON]
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let slug = self.slug;
        let mut medians = self.rates.each_ref().map(|rates| median(rates));
        medians.sort_by(f64::total_cmp);
        let [slowest, .., fastest] = medians;
        vec![
            Figure::ratio(slug, self.rates(), self.against, &self.alone, self.wanted),
            Figure::ratio(
                &format!("{slug}, slowest of 10, 100 and 1,000 waiters"),
                &[slowest],
                "the fastest of them",
                &[fastest],
                0.8,
            ),
            Figure::at_most(&format!("{slug}, longest wait over the mean"), median(&self.longest), Unit::Times, 20.0),
            Figure::at_most(&format!("{slug}, p99 over the median"), median(&self.tail), Unit::Times, 10.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(throughput: f64) -> Stats {
        Stats { throughput, average: 2.0, max: 8.0, median: 1.0, p99_line: 5.0, ..Stats::default() }
    }

    fn ratios(alone: f64, rates: [f64; 3]) -> Vec<(Option<f64>, Option<bool>)> {
        let mut lock = Contended::new("x", "one client", 0.8);
        lock.note(alone, &rates.map(stats));
        lock.figures().iter().map(|figure| (figure.ratio, figure.reached)).collect()
    }

    #[test]
    fn a_hundred_waiters_are_held_against_one_client_and_the_slowest_against_the_fastest() {
        assert_eq!(ratios(100.0, [90.0, 80.0, 100.0])[..2], [(Some(0.8), Some(true)), (Some(0.8), Some(true))]);
        assert_eq!(ratios(100.0, [90.0, 79.0, 100.0])[..2], [(Some(0.79), Some(false)), (Some(0.79), Some(false))]);
        assert_eq!(ratios(100.0, [100.0, 100.0, 50.0])[..2], [(Some(1.0), Some(true)), (Some(0.5), Some(false))]);
    }

    #[test]
    fn waits_are_judged_by_the_longest_and_the_99_percent_line() {
        let mut lock = Contended::new("x", "one client", 0.8);
        lock.note(1.0, &[1.0, 1.0, 1.0].map(stats));
        let values: Vec<_> = lock.figures().iter().map(|figure| figure.value).collect();
        assert_eq!(values[2..], [4.0, 5.0]);
    }
}
