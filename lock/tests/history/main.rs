//! Histories written by hand, without servers: for each rule one that keeps it, as narrowly as possible, and one that
//! breaks it.

mod checker;

use checker::{Answer::*, Asks::*, Share::*, *};
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const PROMISE: Promise = Promise { permits: 3, members: 2, answer: ms(100), news: ms(100) };

/// A call and its answer.
fn call(by: usize, asks: Asks, asked: u64, answered: u64, answer: Answer) -> Call {
    Call { by, asks, asked: ms(asked), wait: ms(0), lease: ms(10_000), answer: Some((ms(answered), answer)), looks: Vec::new() }
}

/// The guard was sure from the answer until then.
fn hold(by: usize, share: Share, fence: Option<u64>, asked: u64, [from, to]: [u64; 2]) -> Call {
    let looks = [from, to].map(|at| Look { at: ms(at), lost: false });
    Call { looks: looks.into(), ..call(by, Hold(share), asked, from, Yes(fence)) }
}

fn alone(by: usize, from: u64, to: u64) -> Call {
    hold(by, Alone, None, from, [from, to])
}

fn history(calls: impl Into<Vec<Call>>) -> History {
    History { promise: PROMISE, calls: calls.into(), end: ms(1000), left: Vec::new() }
}

#[track_caller]
fn kept(calls: impl Into<Vec<Call>>) {
    assert_eq!(judge(&history(calls)), Verdict::Kept);
}

/// Checks the reason.
#[track_caller]
fn refused(calls: impl Into<Vec<Call>>, by: &str) {
    match judge(&history(calls)) {
        Verdict::Broken(reason) if reason.contains(by) => {}
        verdict => panic!("{verdict:?} instead of {by}"),
    }
}

#[test]
fn verdicts_compose_the_worst_counts() {
    let unknown = || Verdict::Unknown("z".into());
    let broken = || Verdict::Broken("a".into());
    assert_eq!(worst([]), Verdict::Kept);
    assert_eq!(worst([Verdict::Kept, unknown(), Verdict::Kept]), unknown());
    assert_eq!(worst([unknown(), broken(), Verdict::Kept]), broken());
}

#[test]
fn two_sure_holders_are_caught() {
    kept([alone(1, 0, 10), alone(2, 11, 20)]);
    kept([alone(1, 0, 10), alone(1, 5, 20)]);
    refused([alone(1, 0, 10), alone(2, 10, 20)], "both hold it");
    refused([alone(2, 5, 20), alone(1, 0, 30)], "both hold it");
}

/// A hold whose answer came late reports its loss at once: it was never inside.
#[test]
fn a_hold_that_was_never_sure_excludes_nobody() {
    let mut late = alone(1, 0, 10);
    late.looks = vec![Look { at: ms(10), lost: true }];
    kept([late, alone(2, 5, 20)]);
}

/// A task may wait for another of its owner, and a reader is no writer.
#[test]
fn a_lock_that_keeps_out_its_own_owner_is_caught() {
    let reader = |by| hold(by, Reader, None, 0, [0, 100]);
    let tries = |by, share| call(by, Hold(share), 20, 40, No);
    kept([alone(1, 0, 100), tries(2, Alone)]);
    kept([alone(1, 0, 30), tries(1, Alone)]);
    kept([alone(1, 0, 100), tries(1, Alone), hold(1, Alone, None, 10, [30, 100])]);
    kept([reader(1), tries(1, Alone), reader(2)]);
    for (first, again) in [(alone(1, 0, 100), Alone), (alone(1, 0, 100), Reader), (reader(1), Reader)] {
        refused([first, tries(1, again), tries(2, Alone)], "its owner holds it");
    }
}

#[test]
fn a_writer_beside_readers_is_caught() {
    let reader = |by, from, to| hold(by, Reader, None, from, [from, to]);
    kept([reader(1, 0, 30), reader(2, 5, 20), alone(3, 31, 40)]);
    // It was already the writer.
    kept([alone(1, 0, 30), reader(1, 5, 20)]);
    refused([reader(1, 0, 30), reader(2, 5, 20), alone(3, 25, 40)], "both hold it");
    refused([alone(3, 0, 40), reader(1, 25, 30)], "both hold it");
}

#[test]
fn more_permits_than_there_are_are_caught() {
    let permits = |by, permits, from, to| hold(by, Permits(permits), None, from, [from, to]);
    kept([permits(1, 2, 0, 10), permits(2, 1, 5, 30), permits(3, 2, 11, 20)]);
    refused([permits(1, 2, 0, 10), permits(2, 1, 5, 30), permits(3, 1, 9, 20)], "4 of 3 permits");
}

#[test]
fn a_fence_that_falls_is_caught() {
    let fenced = |by, fence, from, to| hold(by, Alone, Some(fence), from, [from, to]);
    kept([fenced(1, 7, 0, 10), fenced(2, 8, 11, 20)]);
    // One hold has one fence.
    kept([fenced(1, 7, 0, 10), fenced(1, 7, 5, 20), fenced(2, 8, 21, 30)]);
    refused([fenced(1, 7, 0, 10), fenced(2, 6, 11, 20)], "the fence 6 comes after 7");
    refused([fenced(1, 7, 0, 10), fenced(2, 7, 11, 20)], "the fence 7 comes after 7");
    refused([fenced(1, 7, 0, 10), fenced(1, 6, 11, 20)], "the fence 6 comes after 7");
}

/// A writer that continues as a reader has a fence of its own, newer than that of a waiting writer.
#[test]
fn a_reader_whose_fence_is_above_the_next_writers_is_caught() {
    let writer = |by, fence, asked, from, to| hold(by, Alone, Some(fence), asked, [from, to]);
    let reads = |fence| hold(1, Reader, Some(fence), 5, [6, 20]);
    let next = || writer(2, 23_739, 3, 21, 30);
    kept([writer(1, 23_738, 0, 1, 10), reads(23_738), next()]);
    refused([writer(1, 23_738, 0, 1, 10), reads(23_740), next()], "23739 comes after 23740");
}

/// The first call of a hold may be answered after another reader's, and its owner may enter again meanwhile.
#[test]
fn a_readers_re_entry_has_the_fence_of_its_hold() {
    let reader = |by, fence, asked, from| hold(by, Reader, Some(fence), asked, [from, 30]);
    let again = [reader(1, 7, 0, 14), reader(2, 8, 1, 9), reader(1, 7, 10, 15)];
    kept(again.clone());
    // The hold was asked for after the other reader was in.
    let [first, other, second] = again;
    refused([Call { asked: ms(10), ..first }, other.clone(), second.clone()], "the fence 7 comes after 8");
    // Another owner's hold is no re-entry.
    refused([reader(3, 7, 0, 14), other, second], "the fence 7 comes after 8");
    // What excludes the other is answered before it.
    let writer = |by, fence, asked, from, to| hold(by, Alone, Some(fence), asked, [from, to]);
    refused([writer(1, 7, 0, 14, 15), writer(2, 8, 1, 9, 9), writer(1, 7, 10, 16, 20)], "the fence 7 comes after 8");
}

/// Readers that wait at the same time enter in any order; one that asks after another was answered has a higher fence.
#[test]
fn fences_of_readers_rise_in_the_order_of_their_calls() {
    let reader = |by, fence, asked, from| hold(by, Reader, Some(fence), asked, [from, 30]);
    kept([reader(1, 8, 0, 5), reader(2, 7, 0, 6)]);
    refused([reader(1, 8, 0, 5), reader(2, 7, 6, 8)], "the fence 7 comes after 8");
    // A re-entry.
    kept([reader(2, 7, 0, 2), reader(1, 8, 3, 5), reader(2, 7, 6, 8)]);
}

#[test]
fn a_call_that_does_not_end_is_caught() {
    let waits = |answer| Call { wait: ms(500), answer, ..call(1, Hold(Alone), 0, 0, No) };
    kept([alone(2, 0, 1), waits(Some((ms(600), No)))]);
    refused([alone(2, 0, 1), waits(Some((ms(601), No)))], "a call took 601ms");
    refused([waits(Some((ms(601), Gone)))], "a call took 601ms");
    refused([waits(None)], "a call never ends");
    let mut early = history([waits(None)]);
    early.end = ms(599);
    assert!(matches!(judge(&early), Verdict::Unknown(what) if what.contains("under way")));
}

/// Servers' faults may have delayed effects.
#[test]
fn a_refusal_for_good_is_caught() {
    kept([call(1, Hold(Alone), 0, 1, Unavailable)]);
    refused([call(1, Hold(Alone), 0, 1, Refused)], "a call is refused");
    // An owner that reads and asks to write is refused.
    kept([call(1, Hold(Alone), 0, 1, Invalid)]);
}

#[test]
fn a_wait_that_is_cut_short_is_caught() {
    let waits = |answered, answer| Call { wait: ms(50), ..call(1, Hold(Alone), 0, answered, answer) };
    kept([alone(2, 0, 1), waits(50, No), waits(10, Unavailable)]);
    refused([alone(2, 0, 1), waits(49, No)], "gave up before its wait was over");
}

#[test]
fn a_lock_that_takes_silence_for_taken_is_caught() {
    let tries = |asked| call(2, Hold(Alone), asked, asked + 1, No);
    let release = |of, asked, answer| call(1, Release { of }, asked, asked + 1, answer);
    kept([alone(1, 0, 10), tries(5)]);
    refused([tries(5)], "nobody has it");
    // It was released before, or after.
    kept([alone(1, 0, 10), release(0, 11, Yes(None)), tries(11)]);
    refused([alone(1, 0, 10), release(0, 11, Yes(None)), tries(13)], "nobody has it");
    // An unreleased or unanswered hold may remain.
    kept([alone(1, 0, 10), release(0, 11, Lost), tries(13)]);
    kept([call(1, Hold(Alone), 0, 1, Unavailable), tries(13)]);
    let reads = |by, asked, answer| call(by, Hold(Reader), asked, asked + 1, answer);
    refused([hold(1, Reader, None, 0, [0, 9]), reads(2, 5, No)], "nobody has it");
    // Another task of the same owner comes in before it.
    kept([call(2, Hold(Reader), 0, 9, Unavailable), reads(2, 5, No)]);
    // Its own answer came when its lease was over.
    kept([Call { lease: ms(1), ..tries(5) }]);
}

#[test]
fn a_waiter_that_sleeps_beside_a_free_lock_is_caught() {
    let waits = |wait| Call { wait: ms(wait), ..call(2, Hold(Alone), 5, 5 + wait, No) };
    let release = call(1, Release { of: 0 }, 20, 21, Yes(None));
    let then = |more: &[Call]| [&[alone(1, 0, 10), release.clone()], more].concat();
    // It need not hear of it at once.
    kept(then(&[waits(115)]));
    refused(then(&[waits(120)]), "beside what is free");
    // Another has it.
    kept(then(&[waits(120), alone(3, 60, 90)]));
}

#[test]
fn a_loss_that_is_taken_back_is_caught() {
    let look = |at, lost| Look { at: ms(at), lost };
    let looked = |looks: [Look; 3]| Call { looks: looks.into(), ..alone(1, 0, 0) };
    kept([looked([look(0, false), look(1, true), look(2, true)])]);
    refused([looked([look(0, false), look(1, true), look(2, false)])], "taken back");
}

#[test]
fn a_release_that_is_silent_about_the_loss_is_caught() {
    let lost = || Call { looks: vec![Look { at: ms(5), lost: true }], ..alone(1, 0, 0) };
    let release = |answer| call(1, Release { of: 0 }, 6, 7, answer);
    kept([lost(), release(Lost)]);
    // It was found out by the release itself.
    kept([alone(1, 0, 5), release(Lost)]);
    for silent in [Yes(None), No, Unavailable] {
        refused([lost(), release(silent)], "what was lost was released");
    }
}

#[test]
fn a_latch_that_opens_early_is_caught() {
    let close = |by, asked| call(by, Close(2), asked, asked + 1, Yes(None));
    let open = |asked, left| call(1, Open, asked, asked + 1, Yes(Some(left)));
    let pass = |asked, answered| call(2, Pass, asked, answered, Yes(None));
    kept([close(0, 0), open(2, 1), pass(3, 10), open(9, 0)]);
    refused([close(0, 0), open(2, 1), pass(3, 10), open(11, 0)], "open after 1 of 2");
    // Those of the class before do not count.
    refused([close(0, 0), open(2, 1), open(4, 0), close(0, 6), open(8, 1), pass(10, 20)], "open after 1 of 2");
    // It had begun to wait before the latch was closed again.
    kept([close(0, 0), open(2, 1), pass(3, 20), open(4, 0), close(0, 6)]);
    // What was not answered may have counted.
    kept([close(0, 0), open(2, 1), call(1, Open, 4, 5, Unavailable), pass(6, 10)]);
}

#[test]
fn a_waiter_that_sleeps_through_the_opening_is_caught() {
    let close = |asked| call(0, Close(1), asked, asked + 1, Yes(None));
    let open = |asked| call(1, Open, asked, asked + 1, Yes(Some(0)));
    let waits = |answer| Call { wait: ms(200), ..call(2, Pass, 2, 210, answer) };
    kept([close(0), open(50), waits(Yes(None))]);
    // It may not have heard of it yet.
    kept([close(0), open(150), waits(No)]);
    refused([close(0), open(50), waits(No)], "slept through");
    // Nobody says that a moment is enough.
    kept([close(0), open(50), close(60), waits(No)]);
}

fn enter(by: usize, asked: u64, answered: u64) -> Call {
    call(by, Enter, asked, answered, Yes(None))
}

fn leave(of: usize, asked: u64, answered: u64) -> Call {
    call(of, Leave { of }, asked, answered, Yes(None))
}

#[test]
fn a_barrier_that_lets_one_member_in_alone_is_caught() {
    kept([enter(1, 0, 10), enter(2, 9, 11), leave(0, 12, 20), leave(1, 13, 20)]);
    refused([enter(1, 0, 10), enter(2, 11, 12), leave(0, 13, 20), leave(1, 13, 20)], "one enters alone");
    // The other gives up, before or meanwhile.
    for asked in [3, 6] {
        refused([call(1, Enter, 0, 5, No), enter(2, asked, 10)], "one enters alone");
    }
    // It comes late, while another is in.
    let round = [enter(1, 0, 10), enter(2, 9, 11), leave(0, 12, 40), leave(1, 13, 14)];
    let mut late = round.to_vec();
    late.extend([enter(3, 15, 16), leave(4, 17, 40)]);
    kept(late);
}

#[test]
fn a_member_that_leaves_while_one_is_inside_is_caught() {
    let inside = || vec![enter(1, 0, 10), enter(2, 0, 10)];
    let then = |calls: &[Call]| [&inside(), calls].concat();
    kept(then(&[leave(0, 12, 30), leave(1, 29, 31)]));
    refused(then(&[leave(0, 12, 30), leave(1, 31, 32)]), "while one is inside");
    refused(then(&[leave(0, 12, 30)]), "while one is inside");
    // One that gives up says that not all have left.
    kept(then(&[call(1, Leave { of: 0 }, 12, 30, No)]));
}

/// It comes late, and is let in beside one that takes itself for the last.
#[test]
fn a_barrier_that_opens_beside_a_late_member_is_caught() {
    let round = [enter(1, 0, 10), enter(2, 0, 10), leave(1, 12, 20), leave(0, 13, 20)];
    let with = |more: &[Call]| [&round[..], more].concat();
    refused(with(&[enter(3, 14, 19), leave(4, 40, 41)]), "while one is inside");
    // The next round has enough of its own, and may have begun.
    kept(with(&[enter(3, 14, 19), enter(1, 14, 19), leave(4, 40, 42), leave(5, 41, 42)]));
}

#[test]
fn a_counter_that_counts_twice_or_not_at_all_is_caught() {
    let add = |asked, answer| call(1, Add, asked, asked + 1, answer);
    let get = |asked, value| call(2, Get, asked, asked + 1, Yes(Some(value)));
    kept([add(0, Yes(Some(1))), get(2, 1), add(4, Yes(Some(2))), get(6, 2)]);
    // It may have been counted.
    kept([add(0, Unavailable), get(2, 0), get(3, 1), add(4, Yes(Some(2)))]);
    refused([add(0, Yes(Some(1))), get(2, 0)], "0 is not 1 to 1");
    refused([add(0, No), get(2, 1)], "1 is not 0 to 0");
    refused([add(0, Yes(Some(1))), add(0, Yes(Some(1)))], "two added to the same");
}

#[test]
fn keys_left_at_the_end_are_caught() {
    let mut left = history([alone(1, 0, 10)]);
    left.left.push("a key".into());
    assert_eq!(judge(&left), Verdict::Broken("left at the end: [\"a key\"]".into()));
}

#[test]
fn a_history_counts_its_results() {
    let mut lost = alone(1, 5, 20);
    lost.looks.push(Look { at: ms(21), lost: true });
    let all = history([
        alone(1, 0, 10),
        lost,
        call(2, Hold(Alone), 0, 1, No),
        call(2, Hold(Alone), 2, 3, Unavailable),
        call(2, Hold(Alone), 6, 7, Gone),
    ]);
    let came = ["done", "gone", "lost", "no answer", "not in time", "taken again"];
    assert_eq!(seen([&all]).into_iter().collect::<Vec<_>>(), came);
    assert!(seen([&history([])]).is_empty());
}
