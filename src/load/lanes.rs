//! A lane for each request of a run, with when it waited and when it was inside; of many requests, a sample.
//!
//! 1. An answer says when its request was inside, by the clock of its instance's machine, and how long it had waited for that.
//!    Where there is no critical section, it says when its tries were under way; the last one stands for the stay.
//! 2. If there are at most twenty, each has a lane, in the order in which they got in.
//! 3. Of more, twenty that got in one after the other are drawn, around the moment at which the most were inside, so that the picture
//!    shows where a lock lets two in. If no two were inside at once, the middle is drawn.
//!
//! The generator's own clock is not mixed in: on one machine all instances read the same one, as in `inside.rs`.

use super::history::AnswerDetails;
use serde::Serialize;
use utoipa::ToSchema;

/// The most lanes that are drawn: more cannot be told apart on a screen.
pub(super) const MAX_DRAWN: usize = 20;

/// A request that was inside, or has tried with success. Times in µs since the picture begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Lane {
    /// The connection that sent it, from 1.
    #[schema(example = 3)]
    pub thread: usize,
    /// Its number among the requests of this connection, from 1.
    #[schema(example = 1)]
    pub turn: usize,
    /// The instance that answered.
    #[schema(example = "8100")]
    pub instance: String,
    /// Since when it waited; of a sample, at the earliest its begin.
    #[schema(example = 0)]
    pub begun_us: u64,
    /// When it got in.
    #[schema(example = 120_400)]
    pub entered_us: u64,
    /// When it was out.
    #[schema(example = 221_700)]
    pub left_us: u64,
    /// Where there is no critical section, and others may be under way at the same time: from when to when each of its tries
    /// before that was, all of them in vain; the last 19.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!([[1_200, 9_400]]))]
    pub vain: Option<Vec<(u64, u64)>>,
}

/// The requests that are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Lanes {
    /// How many there were inside; more than are drawn: these are a sample.
    #[schema(example = 5000)]
    pub of: usize,
    /// In the order in which they got in.
    pub drawn: Vec<Lane>,
}

impl Lane {
    /// The lane of a request; `None` if its answer says neither when it was inside nor when its tries were.
    pub(super) fn of(thread: usize, turn: usize, instance: Option<&str>, said: &AnswerDetails) -> Option<Self> {
        let tried = said.tries.split_last();
        let (entered_us, left_us) = said.inside.or(tried.map(|(last, _)| *last))?;
        let vain = tried.filter(|_| said.inside.is_none()).map(|(_, before)| before.to_vec());
        let first_us = vain.iter().flatten().map(|(from, _)| *from).next().unwrap_or(entered_us);
        let begun_us = first_us.saturating_sub(said.waited_ms.unwrap_or_default().saturating_mul(1000));
        let instance = instance.unwrap_or_default().to_owned();
        Some(Self { thread, turn, instance, begun_us, entered_us, left_us, vain })
    }

    /// All times of the lane, to shift them.
    fn times_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let vain = self.vain.iter_mut().flatten().flat_map(|(from, to)| [from, to]);
        [&mut self.begun_us, &mut self.entered_us, &mut self.left_us].into_iter().chain(vain)
    }
}

/// Picks at most [`MAX_DRAWN`] lanes, around the busiest moment. Their times then count from the earliest wait, in a sample from
/// the first entry. `None` without a lane.
pub(super) fn choose_lanes(mut all: Vec<Lane>) -> Option<Lanes> {
    all.sort_unstable_by_key(|lane| (lane.entered_us, lane.left_us));
    let of = all.len();
    if of > MAX_DRAWN {
        let begin = busiest_lane(&all).saturating_sub(MAX_DRAWN / 2).min(of - MAX_DRAWN);
        all = all.drain(begin..begin + MAX_DRAWN).collect();
    }
    let first = if of > MAX_DRAWN { all.first()?.entered_us } else { all.iter().map(|lane| lane.begun_us).min()? };
    for at in all.iter_mut().flat_map(Lane::times_mut) {
        *at = at.saturating_sub(first);
    }
    Some(Lanes { of, drawn: all })
}

/// The index of the first lane that met the most others inside; of the middle one if none met another. `all` is in order of
/// entry.
fn busiest_lane(all: &[Lane]) -> usize {
    let (mut inside, mut most, mut place) = (Vec::<u64>::new(), 1, all.len() / 2);
    for (n, lane) in all.iter().enumerate() {
        inside.retain(|left| *left > lane.entered_us);
        inside.push(lane.left_us);
        if inside.len() > most {
            (most, place) = (inside.len(), n);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::inside::Stay;

    /// One that waited for 10, and was inside from `from` to `to`.
    fn lane(thread: usize, from: u64, to: u64) -> Lane {
        let said = AnswerDetails { waited_ms: Some(10), inside: Some((from, to)), ..AnswerDetails::default() };
        Lane::of(thread, 1, Some("8000"), &said).expect("it was inside")
    }

    #[test]
    fn few_lanes_are_all_drawn_in_the_order_of_entry() {
        let lanes = choose_lanes(vec![lane(2, 90_000, 95_000), lane(1, 50_000, 60_000)]).expect("two");
        let times: Vec<_> = lanes.drawn.iter().map(|l| (l.thread, l.begun_us, l.entered_us, l.left_us)).collect();
        assert_eq!((lanes.of, times), (2, vec![(1, 0, 10_000, 20_000), (2, 40_000, 50_000, 55_000)]));
    }

    #[test]
    fn only_the_lanes_around_the_most_crowded_one_are_drawn() {
        let mut all: Vec<_> = (0..200).map(|n| lane(n, 100_000 + 100 * n as u64, 100_050 + 100 * n as u64)).collect();
        let in_the_middle = choose_lanes(all.clone()).expect("lanes");
        assert_eq!(in_the_middle.drawn.iter().map(|l| l.thread).collect::<Vec<_>>(), (90..110).collect::<Vec<_>>());
        // Thread 30 stays while two others get in.
        all[30].left_us += 200;
        let crowded = choose_lanes(all).expect("lanes");
        let threads: Vec<_> = crowded.drawn.iter().map(|l| l.thread).collect();
        assert_eq!((crowded.of, threads.len(), threads.contains(&30)), (200, MAX_DRAWN, true));
        assert_eq!((crowded.drawn[0].begun_us, crowded.drawn[0].entered_us), (0, 0), "a wait before it is cut off");
    }

    #[test]
    fn a_sample_at_the_edge_is_as_large_as_in_the_middle() {
        for early in [0, 29] {
            let mut all: Vec<_> = (0..30).map(|n| lane(n, 100_000 + 100 * n as u64, 100_050 + 100 * n as u64)).collect();
            let to = all[early].left_us;
            all.push(lane(99, to - 10, to + 10));
            let lanes = choose_lanes(all).expect("lanes");
            assert!(lanes.drawn.len() == MAX_DRAWN && lanes.drawn.iter().any(|l| l.thread == 99), "{lanes:?}");
        }
        assert_eq!(choose_lanes(Vec::new()), None);
        assert_eq!(Lane::of(1, 1, None, &AnswerDetails::default()), None, "an answer that does not say");
    }

    #[test]
    fn without_a_section_the_last_try_stands_for_the_stay() {
        let said = |tries: &[Stay]| AnswerDetails { waited_ms: Some(2), tries: tries.to_vec(), ..AnswerDetails::default() };
        let beaten = Lane::of(1, 1, Some("8000"), &said(&[(12_000, 14_000), (15_000, 16_000), (17_000, 19_000)]));
        let at_once = Lane::of(2, 1, Some("8000"), &said(&[(13_000, 13_500)]));
        let lanes = choose_lanes(vec![beaten.expect("tries"), at_once.expect("a try")]).expect("two").drawn;
        let [at_once, beaten] = &lanes[..] else { panic!("{lanes:?}") };
        assert_eq!((at_once.begun_us, at_once.entered_us, at_once.left_us), (1_000, 3_000, 3_500));
        assert_eq!((beaten.begun_us, beaten.entered_us, beaten.left_us), (0, 7_000, 9_000));
        assert_eq!((&at_once.vain, &beaten.vain), (&Some(vec![]), &Some(vec![(2_000, 4_000), (5_000, 6_000)])));
        // One that was inside was so all the time, however often it had tried to get in.
        let inside = AnswerDetails { inside: Some((5, 9)), ..said(&[(1, 2)]) };
        assert_eq!(Lane::of(1, 1, None, &inside).and_then(|lane| lane.vain), None);
    }
}
