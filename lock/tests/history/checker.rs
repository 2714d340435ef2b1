//! Checks histories of calls: pure functions, as jepsen's checkers. A history has each call with the times of its
//! request and answer, and what a guard reported whenever it was checked. Times are of one clock, read before a request
//! and after an answer: whatever a busy machine delays, a rule never sees more than there was.
//!
//! 1. Holders that are sure at the same time are one owner, or all readers, or within the number of permits.
//! 2. Fencing tokens rise in the order in which the lock was acquired.
//! 3. Each call ends within its wait and the time of one answer. None returns "taken" before its wait is over, for an
//!    invalid request, for a lock that was long free, or for one that its own owner holds. A server that is temporarily
//!    unable is "unavailable", not "refused".
//! 4. A lost guard stays lost, and its release says so.
//! 5. No latch or barrier opens early, and no waiter misses an opening.
//! 6. Every counted change is counted exactly once.
//! 7. When all is released, nothing is left.
//!
//! `main.rs` has a history that breaks each rule; `lock/tests/contract` records real ones (`recorder.rs`).

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

/// A time since the history began.
pub(crate) type Time = Duration;

/// A rule's verdict; ordered, so that the worst of several counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Kept,
    /// Undecidable from the history.
    Unknown(String),
    Broken(String),
}

/// The promises of the object that was called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promise {
    /// The most permits.
    pub(crate) permits: u32,
    /// The members that open a double barrier.
    pub(crate) members: usize,
    /// How much longer than its wait a call may take, on a busy machine.
    pub(crate) answer: Duration,
    /// How long an opening or a release may take to wake a waiter.
    pub(crate) news: Duration,
}

/// The calls of one object, in the order of their requests.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) promise: Promise,
    pub(crate) calls: Vec<Call>,
    pub(crate) end: Time,
    /// What is left on a server, or blocks the next holder, after all was released.
    pub(crate) left: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The contender; calls of one owner have the same number.
    pub(crate) by: usize,
    pub(crate) asks: Asks,
    pub(crate) asked: Time,
    pub(crate) wait: Duration,
    /// The requested lease: an answer after it brings nothing.
    pub(crate) lease: Duration,
    pub(crate) answer: Option<(Time, Answer)>,
    /// The reports of the guard that it returned.
    pub(crate) looks: Vec<Look>,
}

/// The kind of a call. `of` is the number of the call whose hold is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Hold(Share),
    Release {
        of: usize,
    },
    /// Closes a latch with this count; a barrier has 1.
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

/// The part of the whole that a hold takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Alone,
    Reader,
    Permits(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With a fencing token, a number that was read, or a latch's count.
    Yes(Option<u64>),
    /// The wait ended, or it was already done.
    No,
    Lost,
    /// The server is down, temporarily unable, or did not answer: it may have been done.
    Unavailable,
    Refused,
    /// An invalid request: an owner that reads asks to write, for example.
    Invalid,
    /// The caller was dropped.
    Gone,
}

/// A guard's report, checked after `at`.
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

/// The verdicts of all rules.
pub(crate) fn judge(history: &History) -> Verdict {
    let found = RULES.iter().flat_map(|rule| rule(history));
    worst(found.chain(nothing_is_left(history)))
}

pub(crate) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::Kept)
}

/// The events of these histories, so that idle programs prove nothing.
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

/// A hold, while its guard was seen not lost.
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

    /// Whether two holds may overlap.
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

    /// The calls of this kind that may have been carried out.
    fn of(&self, asks: impl Fn(Asks) -> bool) -> impl Iterator<Item = (usize, &Call)> {
        self.all().filter(move |(_, call)| asks(call.asks))
    }

    fn sure(&self) -> impl Iterator<Item = Sure<'_>> {
        self.all().filter_map(|(number, call)| {
            let (Asks::Hold(share), Some((from, Answer::Yes(fence)))) = (call.asks, call.answer) else {
                return None;
            };
            let to = call.looks.iter().filter(|look| !look.lost).map(|look| look.at).max()?;
            (from <= to).then_some(Sure { number, call, share, fence, from, to })
        })
    }

    /// For each acquiring call, the first one that releases its hold.
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
    /// Known to be done.
    fn yes(&self) -> Option<(Time, Option<u64>)> {
        match self.answer {
            Some((at, Answer::Yes(value))) => Some((at, value)),
            _ => None,
        }
    }

    /// Surely not done, or over, by then.
    fn answered_before(&self, at: Time) -> bool {
        self.answer.is_some_and(|(answered, _)| answered < at)
    }

    /// May have been done between these times.
    fn may_be_done(&self, from: Time, to: Time) -> bool {
        let failed = matches!(self.answer, Some((_, Answer::No | Answer::Lost)));
        // An unanswered request may be carried out later.
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
            found.push(broken(format!("{permits} of {most} permits are held at {at:?}")));
        }
        let alone = |other: &&Sure<'_>| one.permits() + other.permits() == 0 && !one.is_with(other);
        found.extend(
            inside()
                .find(alone)
                .map(|other| broken(format!("both hold it at {:?}: {:?} and {:?}", one.from, one.call, other.call))),
        );
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
            // A re-entry has the fence of its hold, which the owner may have asked for before it knew of `one`. The first
            // call may have been answered after it: beside another reader only.
            let again = || {
                let same = |earlier: &&Sure<'_>| (earlier.call.by, earlier.fence) == (other.call.by, other.fence);
                let began = |earlier: &Sure<'_>| earlier.from < one.from || (!apart && earlier.call.asked <= one.from);
                sure.iter().filter(same).any(began)
            };
            if before && !rises && !again() {
                found.push(broken(format!("the fence {second} comes after {first}: {:?} after {:?}", other.call, one.call)));
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
            Some((at, _)) => found.push(broken(format!("a call took {:?}: {call:?}", at - call.asked))),
            None if history.end > limit => found.push(broken(format!("a call never ends: {call:?}"))),
            None => found.push(Verdict::Unknown(format!("a call is under way: {call:?}"))),
        }
        if matches!(call.answer, Some((_, Answer::Refused))) {
            found.push(broken(format!("a call is refused: {call:?}")));
        }
    }
    found
}

fn no_wait_is_cut_short(history: &History) -> Vec<Verdict> {
    let waits = |asks| matches!(asks, Asks::Hold(_) | Asks::Pass | Asks::Enter | Asks::Leave { .. });
    let short = |(_, call): &(usize, &Call)| matches!(call.answer, Some((at, Answer::No)) if at < call.asked + call.wait);
    let short = history.of(waits).filter(short);
    short.map(|(_, call)| broken(format!("it gave up before its wait was over: {call:?}"))).collect()
}

/// The calls that may exclude `call` at some time between these.
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
        // Tasks of one owner enter one after the other.
        let read = (call.asks, share) == (Asks::Hold(Share::Reader), Share::Reader);
        let together = read && call.by != other.by;
        // A lost, dropped or unanswered hold may remain for any time.
        let given_back = |release: &&Call| release.yes().is_some_and(|(at, _)| at <= from);
        let is_over = matches!(other.answer, Some((at, Answer::No)) if at < from) || ends.get(&n).is_some_and(given_back);
        let there = n != number && other.asked <= to && !together && !is_over;
        there.then_some(other)
    })
}

/// The lock calls that returned "taken", and when.
fn taken(history: &History) -> impl Iterator<Item = (usize, &Call, Time)> {
    let holds = history.of(|asks| matches!(asks, Asks::Hold(_)));
    holds.filter_map(|(number, call)| match call.answer {
        Some((at, Answer::No)) => Some((number, call, at)),
        _ => None,
    })
}

/// A silent server is not a taken lock.
fn what_nobody_has_is_not_taken(history: &History) -> Vec<Verdict> {
    let free = |(number, call, at): &(usize, &Call, Time)| {
        let mut others = in_the_way(history, (*number, call), [call.asked, *at]);
        // Its own late answer, after its lease, may have been in its way.
        *at < call.asked + call.lease && others.next().is_none()
    };
    let found = taken(history).filter(free);
    found.map(|(_, call, _)| broken(format!("taken, and nobody has it: {call:?}"))).collect()
}

/// Nobody waits for a lock that was released.
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

/// A holder does not get "taken". Tasks of one owner enter one after the other.
fn owners_come_in_again(history: &History) -> Vec<Verdict> {
    let sure: Vec<_> = history.sure().collect();
    let holds = |(number, call, at): &(usize, &Call, Time)| {
        let own = sure.iter().filter(|one| one.call.by == call.by);
        let mut own = own.filter(|one| one.from < call.asked && *at <= one.to);
        let may = |one: &Sure<'_>| call.asks == Asks::Hold(Share::Reader) || call.asks == Asks::Hold(one.share);
        let mut others =
            history.all().filter(|(n, other)| *n != *number && other.by == call.by && !other.answered_before(call.asked));
        own.any(may) && others.all(|(_, other)| other.asked > *at)
    };
    let found = taken(history).filter(holds);
    found.map(|(_, call, _)| broken(format!("taken, and its owner holds it: {call:?}"))).collect()
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
            found.push(broken(format!("what was lost was released, {answer:?}: {call:?}")));
        }
    }
    found
}

/// For each waiter at a latch or barrier: the call that closed it, and when.
fn closed_before<'a>(history: &'a History, pass: &'a Call) -> Option<(u64, &'a Call)> {
    let closed = history.all().filter_map(|(_, call)| match call.asks {
        Asks::Close(count) => Some((call.yes()?.0, count, call)),
        _ => None,
    });
    let before = closed.filter(|(at, ..)| *at < pass.asked);
    before.max_by_key(|(at, ..)| *at).map(|(_, count, call)| (count, call))
}

fn gates_stay_closed(history: &History) -> Vec<Verdict> {
    let mut found = Vec::new();
    for (_, pass) in history.of(|asks| asks == Asks::Pass) {
        let (Some((at, _)), Some((count, close))) = (pass.yes(), closed_before(history, pass)) else {
            continue;
        };
        let opens = history.of(|asks| asks == Asks::Open);
        let opens = opens.filter(|(_, open)| open.may_be_done(close.asked, at)).count();
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
        let closes = || history.of(|asks| matches!(asks, Asks::Close(_))).map(|(_, call)| call);
        let opened = history.of(|asks| asks == Asks::Open).find(|(_, open)| {
            let Some((at, Some(0))) = open.yes() else {
                return false;
            };
            let in_time = at + history.promise.news < pass.asked + pass.wait;
            let stays = closes().all(|close| close.asked > given_up || close.answered_before(open.asked));
            in_time && stays
        });
        found.extend(opened.map(|(_, open)| broken(format!("{pass:?} slept through {open:?}"))));
    }
    found
}

/// A call that enters a double barrier, and the one that leaves.
struct Member<'a> {
    enter: &'a Call,
    leave: Option<&'a Call>,
}

impl Member<'_> {
    /// May have come before `until` and not have left by `from`.
    fn may_be_there(&self, from: Time, until: Time) -> bool {
        // A member that gave up was never counted.
        let given_up = matches!(self.enter.answer, Some((_, Answer::No)));
        let left = self.leave.is_some_and(|leave| leave.answered_before(from));
        self.enter.asked <= until && !given_up && !left
    }
}

impl History {
    fn members(&self) -> Vec<Member<'_>> {
        let ends = self.ends();
        let enters = self.of(|asks| asks == Asks::Enter);
        enters.map(|(number, enter)| Member { enter, leave: ends.get(&number).copied() }).collect()
    }
}

/// A member enters with enough others, or while one that did is inside.
fn members_enter_together(history: &History) -> Vec<Verdict> {
    let members = history.members();
    // The members that may have been there while one entered.
    let company = |enter: &Call, at| -> Vec<usize> {
        let all = members.iter().enumerate();
        all.filter(|(_, other)| other.may_be_there(enter.asked, at)).map(|(n, _)| n).collect()
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
    late.iter().map(|(n, _)| broken(format!("one enters alone: {:?}", members[*n].enter))).collect()
}

/// Nobody has left before every member inside with it began to leave.
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
            // A member that entered meanwhile may belong to the next round, if that can have enough members.
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

/// Each `Add` adds one and returns the sum; a `Get` reads.
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
            found.push(broken(format!("{value} is not {least} to {most}: {call:?}")));
        }
    }
    found
}

fn nothing_is_left(history: &History) -> Option<Verdict> {
    let left = &history.left;
    (!left.is_empty()).then(|| broken(format!("left at the end: {left:?}")))
}
