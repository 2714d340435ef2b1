//! What a history of calls says of what was called: pure functions, as jepsen's checkers. A history has each call with the
//! time at which it was asked and answered, and what a guard said whenever it was looked at. The times are those of one
//! clock, read before a question and after an answer: whatever a busy machine delays, a rule never sees more than there was.
//!
//! 1. Holders that are sure at the same time are one owner, or all read, or have no more permits than there are.
//! 2. Fencing tokens rise in the order in which the lock was entered.
//! 3. Each call ends within its wait and the time of one answer, and none says "taken" before its wait is over, of what
//!    nobody may have, of what was free long before, or of what its own owner holds. A server that cannot do it now does
//!    not refuse it for good: it is "unavailable".
//! 4. Lost is lost: a guard never takes it back, and its release says so.
//! 5. No latch or barrier lets go early, and none sleeps through its opening.
//! 6. Of what was counted nothing is missing, and nothing is counted twice.
//! 7. When all is given back, nothing is left.
//!
//! Each rule has a history of its own that breaks it: `main.rs`. `lock/tests/contract` records histories: `recorder.rs`.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

/// A time of a history: since it began.
pub(crate) type Time = Duration;

/// What a rule finds. The worst of several counts, so they are ordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Kept,
    /// The history does not say.
    Unknown(String),
    Broken(String),
}

/// What was called promises this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promise {
    /// How many permits there are at most.
    pub(crate) permits: u32,
    /// How many must have come before a double barrier opens.
    pub(crate) members: usize,
    /// How long after its wait a call may still take, on a busy machine.
    pub(crate) answer: Duration,
    /// How long an opening, or a release, may take to wake a waiter.
    pub(crate) news: Duration,
}

/// The calls of one object, in the order in which they were asked.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) promise: Promise,
    pub(crate) calls: Vec<Call>,
    pub(crate) end: Time,
    /// What is left on a server, or stands in the way of the next one, though all was given back.
    pub(crate) left: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The contender. Calls of one owner have the same number.
    pub(crate) by: usize,
    pub(crate) asks: Asks,
    pub(crate) asked: Time,
    pub(crate) wait: Duration,
    /// For how long it asks: an answer that comes later than that brings nothing.
    pub(crate) lease: Duration,
    pub(crate) answer: Option<(Time, Answer)>,
    /// What the guard said that it gave.
    pub(crate) looks: Vec<Look>,
}

/// What a call asks for. `of` is the number of the call that gave what is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Hold(Share),
    Release {
        of: usize,
    },
    /// Closes a latch, so that so many must open it; a barrier is one of 1.
    Close(u64),
    Open,
    Pass,
    Enter,
    Leave {
        of: usize,
    },
    Add,
    Get,
}

/// What part of the whole a hold has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Alone,
    Reader,
    Permits(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With a fencing token, a number that was read, or how many are still to open a latch.
    Yes(Option<u64>),
    /// The wait ran out, or it was done already.
    No,
    Lost,
    /// The server is down, cannot do it now, or did not answer: it may have been done.
    Unavailable,
    Refused,
    /// What was asked cannot be: an owner that reads may not write as well.
    Invalid,
    /// The caller went away.
    Gone,
}

/// A guard was asked after `at`, and said this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) at: Time,
    pub(crate) lost: bool,
}

type Rule = fn(&History) -> Vec<Verdict>;

const RULES: [Rule; 13] = [
    sure_holders_exclude_each_other,
    fences_rise,
    calls_end,
    no_wait_is_cut_short,
    what_nobody_has_is_not_taken,
    waiters_come_in,
    owners_come_in_again,
    lost_is_lost,
    gates_stay_closed,
    gates_wake,
    members_enter_together,
    members_leave_together,
    counts_add_up,
];

/// What all rules find.
pub(crate) fn judge(history: &History) -> Verdict {
    let found = RULES.iter().flat_map(|rule| rule(history));
    worst(found.chain(nothing_is_left(history)))
}

pub(crate) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::Kept)
}

/// What these histories came to, so that programs in which nothing happens are not taken for proof.
pub(crate) fn seen<'a>(histories: impl IntoIterator<Item = &'a History>) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    for history in histories {
        for (_, call) in history.all() {
            seen.extend(match call.answer {
                Some((_, Answer::Yes(_))) => Some("done"),
                Some((_, Answer::No)) => Some("not in time"),
                Some((_, Answer::Unavailable)) => Some("no answer"),
                Some((_, Answer::Gone)) => Some("gone"),
                Some((_, Answer::Lost | Answer::Refused | Answer::Invalid)) | None => None,
            });
            seen.extend(call.looks.iter().any(|look| look.lost).then_some("lost"));
        }
        let sure: Vec<_> = history.sure().collect();
        let again = sure.iter().enumerate().any(|(n, one)| {
            let mut before = sure[..n].iter();
            before.any(|other| other.call.by == one.call.by && other.lasts_at(one.from))
        });
        seen.extend(again.then_some("taken again"));
        let together = sure.iter().any(|one| {
            let mut others = sure.iter();
            others.any(|other| other.call.by != one.call.by && other.lasts_at(one.from))
        });
        seen.extend(together.then_some("together"));
    }
    seen
}

/// A hold, as long as its guard was seen not to be lost.
struct Sure<'a> {
    number: usize,
    call: &'a Call,
    share: Share,
    fence: Option<u64>,
    from: Time,
    to: Time,
}

impl Sure<'_> {
    fn lasts_at(&self, at: Time) -> bool {
        self.from <= at && at <= self.to
    }

    /// Whether they may be inside together.
    fn is_with(&self, other: &Self) -> bool {
        self.call.by == other.call.by || (self.share, other.share) == (Share::Reader, Share::Reader)
    }

    fn permits(&self) -> u32 {
        match self.share {
            Share::Permits(permits) => permits,
            Share::Alone | Share::Reader => 0,
        }
    }
}

impl History {
    fn all(&self) -> impl Iterator<Item = (usize, &Call)> {
        self.calls.iter().enumerate()
    }

    /// The calls that ask for this, and may have had it done.
    fn of(&self, asks: impl Fn(Asks) -> bool) -> impl Iterator<Item = (usize, &Call)> {
        self.all().filter(move |(_, call)| asks(call.asks))
    }

    fn sure(&self) -> impl Iterator<Item = Sure<'_>> {
        self.all().filter_map(|(number, call)| {
            let (Asks::Hold(share), Some((from, Answer::Yes(fence)))) = (call.asks, call.answer)
            else {
                return None;
            };
            let to = call
                .looks
                .iter()
                .filter(|look| !look.lost)
                .map(|look| look.at)
                .max()?;
            (from <= to).then_some(Sure {
                number,
                call,
                share,
                fence,
                from,
                to,
            })
        })
    }

    /// For each call that gave something, the first one that gives it back.
    fn ends(&self) -> HashMap<usize, &Call> {
        let mut ends = HashMap::new();
        for call in &self.calls {
            if let Asks::Leave { of } | Asks::Release { of } = call.asks {
                ends.entry(of).or_insert(call);
            }
        }
        ends
    }
}

impl Call {
    /// Done, and known to be.
    fn yes(&self) -> Option<(Time, Option<u64>)> {
        match self.answer {
            Some((at, Answer::Yes(value))) => Some((at, value)),
            _ => None,
        }
    }

    /// It was surely not done, or was over, by then.
    fn answered_before(&self, at: Time) -> bool {
        self.answer.is_some_and(|(answered, _)| answered < at)
    }

    /// It may have been done between these.
    fn may_be_done(&self, from: Time, to: Time) -> bool {
        let failed = matches!(self.answer, Some((_, Answer::No | Answer::Lost)));
        // What was not answered may be carried out later.
        let over = self.yes().is_some_and(|(at, _)| at < from);
        self.asked <= to && !failed && !over
    }
}

fn broken(what: String) -> Verdict {
    Verdict::Broken(what)
}

fn sure_holders_exclude_each_other(history: &History) -> Vec<Verdict> {
    let sure: Vec<_> = history.sure().collect();
    let mut found = Vec::new();
    for one in &sure {
        let inside = || sure.iter().filter(|other| other.lasts_at(one.from));
        let permits: u32 = inside().map(Sure::permits).sum();
        if permits > history.promise.permits {
            let (most, at) = (history.promise.permits, one.from);
            found.push(broken(format!(
                "{permits} of {most} permits are held at {at:?}"
            )));
        }
        let alone = |other: &&Sure<'_>| one.permits() + other.permits() == 0 && !one.is_with(other);
        found.extend(inside().find(alone).map(|other| {
            broken(format!(
                "both hold it at {:?}: {:?} and {:?}",
                one.from, one.call, other.call
            ))
        }));
    }
    found
}

fn fences_rise(history: &History) -> Vec<Verdict> {
    let sure: Vec<_> = history.sure().collect();
    let mut found = Vec::new();
    for one in &sure {
        for other in &sure {
            let (Some(first), Some(second)) = (one.fence, other.fence) else {
                continue;
            };
            let apart = one.permits() == 0 && !one.is_with(other) && one.from < other.from;
            let before = one.number != other.number && (apart || one.from < other.call.asked);
            let rises = second > first || (second == first && one.call.by == other.call.by);
            // Who reads already, and enters again, has the fence of its hold.
            let again = || {
                let same = |earlier: &&Sure<'_>| {
                    (earlier.call.by, earlier.fence) == (other.call.by, other.fence)
                };
                sure.iter()
                    .filter(same)
                    .any(|earlier| earlier.from < one.from)
            };
            if before && !rises && !again() {
                found.push(broken(format!(
                    "the fence {second} comes after {first}: {:?} after {:?}",
                    other.call, one.call
                )));
            }
        }
    }
    found
}

fn calls_end(history: &History) -> Vec<Verdict> {
    let mut found = Vec::new();
    for (_, call) in history.all() {
        let limit = call.asked + call.wait + history.promise.answer;
        match call.answer {
            Some((at, _)) if at <= limit => {}
            Some((at, _)) => found.push(broken(format!(
                "a call took {:?}: {call:?}",
                at - call.asked
            ))),
            None if history.end > limit => {
                found.push(broken(format!("a call never ends: {call:?}")))
            }
            None => found.push(Verdict::Unknown(format!("a call is under way: {call:?}"))),
        }
        if matches!(call.answer, Some((_, Answer::Refused))) {
            found.push(broken(format!("a call is refused: {call:?}")));
        }
    }
    found
}

fn no_wait_is_cut_short(history: &History) -> Vec<Verdict> {
    let waits = |asks| {
        matches!(
            asks,
            Asks::Hold(_) | Asks::Pass | Asks::Enter | Asks::Leave { .. }
        )
    };
    let short = |(_, call): &(usize, &Call)| matches!(call.answer, Some((at, Answer::No)) if at < call.asked + call.wait);
    let short = history.of(waits).filter(short);
    short
        .map(|(_, call)| broken(format!("it gave up before its wait was over: {call:?}")))
        .collect()
}

/// Those beside `call` that may keep it out at some time between these.
fn in_the_way<'a>(
    history: &'a History,
    (number, call): (usize, &'a Call),
    [from, to]: [Time; 2],
) -> impl Iterator<Item = &'a Call> {
    let ends = history.ends();
    history.all().filter_map(move |(n, other)| {
        let Asks::Hold(share) = other.asks else {
            return None;
        };
        // Tasks of one owner come in one after the other.
        let read = (call.asks, share) == (Asks::Hold(Share::Reader), Share::Reader);
        let together = read && call.by != other.by;
        // What was lost, dropped or not answered may be there for as long as it likes.
        let given_back = |release: &&Call| release.yes().is_some_and(|(at, _)| at <= from);
        let is_over = matches!(other.answer, Some((at, Answer::No)) if at < from)
            || ends.get(&n).is_some_and(given_back);
        let there = n != number && other.asked <= to && !together && !is_over;
        there.then_some(other)
    })
}

/// The calls of locks that were answered with "taken", and when.
fn taken(history: &History) -> impl Iterator<Item = (usize, &Call, Time)> {
    let holds = history.of(|asks| matches!(asks, Asks::Hold(_)));
    holds.filter_map(|(number, call)| match call.answer {
        Some((at, Answer::No)) => Some((number, call, at)),
        _ => None,
    })
}

/// A server that does not answer is no lock that is taken.
fn what_nobody_has_is_not_taken(history: &History) -> Vec<Verdict> {
    let free = |(number, call, at): &(usize, &Call, Time)| {
        let mut others = in_the_way(history, (*number, call), [call.asked, *at]);
        // An answer after its own lease brings nothing: it was in its own way.
        *at < call.asked + call.lease && others.next().is_none()
    };
    let found = taken(history).filter(free);
    found
        .map(|(_, call, _)| broken(format!("taken, and nobody has it: {call:?}")))
        .collect()
}

/// Nobody waits beside what was given back.
fn waiters_come_in(history: &History) -> Vec<Verdict> {
    let mut found = Vec::new();
    for (number, call, given_up) in taken(history) {
        let releases = history.of(|asks| matches!(asks, Asks::Release { .. }));
        let mut released = releases.filter_map(|(_, release)| release.yes());
        let slept = released.any(|(at, _)| {
            let mut others = in_the_way(history, (number, call), [at, given_up]);
            at + history.promise.news < call.asked + call.wait && others.next().is_none()
        });
        if slept {
            found.push(broken(format!("it waits beside what is free: {call:?}")));
        }
    }
    found
}

/// Who holds it is not told that it is taken. Tasks of one owner come in one after the other.
fn owners_come_in_again(history: &History) -> Vec<Verdict> {
    let sure: Vec<_> = history.sure().collect();
    let holds = |(number, call, at): &(usize, &Call, Time)| {
        let own = sure.iter().filter(|one| one.call.by == call.by);
        let mut own = own.filter(|one| one.from < call.asked && *at <= one.to);
        let may = |one: &Sure<'_>| {
            call.asks == Asks::Hold(Share::Reader) || call.asks == Asks::Hold(one.share)
        };
        let mut others = history.all().filter(|(n, other)| {
            *n != *number && other.by == call.by && !other.answered_before(call.asked)
        });
        own.any(may) && others.all(|(_, other)| other.asked > *at)
    };
    let found = taken(history).filter(holds);
    found
        .map(|(_, call, _)| broken(format!("taken, and its owner holds it: {call:?}")))
        .collect()
}

fn lost_is_lost(history: &History) -> Vec<Verdict> {
    let (mut found, ends) = (Vec::new(), history.ends());
    for (number, call) in history.all() {
        let taken_back = call.looks.windows(2).any(|two| two[0].lost && !two[1].lost);
        if taken_back {
            found.push(broken(format!("a loss was taken back: {call:?}")));
        }
        let lost = call.looks.last().is_some_and(|look| look.lost);
        let released = ends.get(&number).and_then(|release| release.answer);
        if lost
            && let Some((_, answer)) = released
            && !matches!(answer, Answer::Lost | Answer::Gone)
        {
            found.push(broken(format!(
                "what was lost was released, {answer:?}: {call:?}"
            )));
        }
    }
    found
}

/// For each that waits at a latch or barrier: what closed it before, and when.
fn closed_before<'a>(history: &'a History, pass: &'a Call) -> Option<(u64, &'a Call)> {
    let closed = history.all().filter_map(|(_, call)| match call.asks {
        Asks::Close(count) => Some((call.yes()?.0, count, call)),
        _ => None,
    });
    let before = closed.filter(|(at, ..)| *at < pass.asked);
    before
        .max_by_key(|(at, ..)| *at)
        .map(|(_, count, call)| (count, call))
}

fn gates_stay_closed(history: &History) -> Vec<Verdict> {
    let mut found = Vec::new();
    for (_, pass) in history.of(|asks| asks == Asks::Pass) {
        let (Some((at, _)), Some((count, close))) = (pass.yes(), closed_before(history, pass))
        else {
            continue;
        };
        let opens = history.of(|asks| asks == Asks::Open);
        let opens = opens
            .filter(|(_, open)| open.may_be_done(close.asked, at))
            .count();
        if (opens as u64) < count {
            found.push(broken(format!("open after {opens} of {count}: {pass:?}")));
        }
    }
    found
}

fn gates_wake(history: &History) -> Vec<Verdict> {
    let mut found = Vec::new();
    for (_, pass) in history.of(|asks| asks == Asks::Pass) {
        let Some((given_up, Answer::No)) = pass.answer else {
            continue;
        };
        let closes = || {
            history
                .of(|asks| matches!(asks, Asks::Close(_)))
                .map(|(_, call)| call)
        };
        let opened = history.of(|asks| asks == Asks::Open).find(|(_, open)| {
            let Some((at, Some(0))) = open.yes() else {
                return false;
            };
            let in_time = at + history.promise.news < pass.asked + pass.wait;
            let stays =
                closes().all(|close| close.asked > given_up || close.answered_before(open.asked));
            in_time && stays
        });
        found.extend(opened.map(|(_, open)| broken(format!("{pass:?} slept through {open:?}"))));
    }
    found
}

/// One that asks to enter a double barrier, and the call by which it asks to leave.
struct Member<'a> {
    enter: &'a Call,
    leave: Option<&'a Call>,
}

impl Member<'_> {
    /// It may have come before `until`, and had not gone by `from`.
    fn may_be_there(&self, from: Time, until: Time) -> bool {
        // One that gave up was never counted: nobody came in on its account.
        let given_up = matches!(self.enter.answer, Some((_, Answer::No)));
        let left = self.leave.is_some_and(|leave| leave.answered_before(from));
        self.enter.asked <= until && !given_up && !left
    }
}

impl History {
    fn members(&self) -> Vec<Member<'_>> {
        let ends = self.ends();
        let enters = self.of(|asks| asks == Asks::Enter);
        enters
            .map(|(number, enter)| Member {
                enter,
                leave: ends.get(&number).copied(),
            })
            .collect()
    }
}

/// One enters with enough others, or while another is in who did.
fn members_enter_together(history: &History) -> Vec<Verdict> {
    let members = history.members();
    // Who may have been there while one entered.
    let company = |enter: &Call, at| -> Vec<usize> {
        let all = members.iter().enumerate();
        all.filter(|(_, other)| other.may_be_there(enter.asked, at))
            .map(|(n, _)| n)
            .collect()
    };
    let (mut sound, mut late) = (HashSet::new(), Vec::new());
    for (n, Member { enter, .. }) in members.iter().enumerate() {
        if let Some((at, _)) = enter.yes() {
            let company = company(enter, at);
            if company.len() >= history.promise.members {
                sound.insert(n);
            } else {
                late.push((n, company));
            }
        }
    }
    loop {
        let before = sound.len();
        late.retain(|(n, company)| {
            let is_sound = company.iter().any(|other| sound.contains(other));
            if is_sound {
                sound.insert(*n);
            }
            !is_sound
        });
        if sound.len() == before {
            break;
        }
    }
    late.iter()
        .map(|(n, _)| broken(format!("one enters alone: {:?}", members[*n].enter)))
        .collect()
}

/// Nobody has left before all have asked to who were inside with it.
fn members_leave_together(history: &History) -> Vec<Verdict> {
    let (mut found, members) = (Vec::new(), history.members());
    for (_, leave) in history.of(|asks| matches!(asks, Asks::Leave { .. })) {
        let Some((left, _)) = leave.yes() else {
            continue;
        };
        for other in &members {
            let stays = other.leave.is_none_or(|leave| leave.asked > left);
            let Some((entered, _)) = other.enter.yes().filter(|_| stays) else {
                continue;
            };
            // Who came in meanwhile may belong to the next round, if that can have enough members.
            let is_of_the_next = || {
                let next = members.iter().filter(|member| {
                    let in_before = member.enter.yes().is_some_and(|(at, _)| at < leave.asked);
                    !in_before && member.may_be_there(leave.asked, entered)
                });
                next.count() >= history.promise.members
            };
            if entered < leave.asked || (entered < left && !is_of_the_next()) {
                let other = other.enter;
                found.push(broken(format!("{leave:?} while one is inside: {other:?}")));
            }
        }
    }
    found
}

/// Each `Add` adds one, and says to what; a `Get` reads.
fn counts_add_up(history: &History) -> Vec<Verdict> {
    let (mut found, mut values) = (Vec::new(), HashSet::new());
    let adds = || history.of(|asks| asks == Asks::Add).map(|(_, call)| call);
    for (_, call) in history.of(|asks| matches!(asks, Asks::Add | Asks::Get)) {
        let Some((at, Some(value))) = call.yes() else {
            continue;
        };
        let own = u64::from(call.asks == Asks::Add);
        if own == 1 && !values.insert(value) {
            found.push(broken(format!("two added to the same: {call:?}")));
        }
        let done = adds().filter(|add| add.yes().is_some_and(|(at, _)| at < call.asked));
        let least = done.count() as u64 + own;
        let most = adds().filter(|add| add.may_be_done(Time::ZERO, at)).count() as u64;
        if !(least..=most).contains(&value) {
            found.push(broken(format!(
                "{value} is not {least} to {most}: {call:?}"
            )));
        }
    }
    found
}

fn nothing_is_left(history: &History) -> Option<Verdict> {
    let left = &history.left;
    (!left.is_empty()).then(|| broken(format!("left at the end: {left:?}")))
}
