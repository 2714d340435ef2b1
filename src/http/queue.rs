//! A queue of what visitors have asked for: replays wait for their turn in one, runs of load in another.
//!
//! 1. An entry comes behind all that were asked for before it. A visitor, and all together, have a bounded number of unfinished
//!    ones.
//! 2. An exclusive entry has its turn once all before it have ended; any other once the exclusive ones before it have. Its own
//!    task begins it then.
//! 3. One that waits leaves if it is cancelled, or if its visitor has left: nobody has watched it or asked for it for
//!    [`LEAVE_TIMEOUT`].
//! 4. Of those that have ended, some are remembered, so that it can still be read how they ended.
//!
//! nginx sends all requests about one kind of entry to one instance, so a queue is in its memory.
//!
//! What it survives: visitors who leave without a word. **What breaks it**: an entry that never ends, since all that it excludes
//! wait until they are cancelled.
//!
//! Next: `replays.rs`, then `runs/mod.rs`.

use super::{error::Error, visitor::Visitor};
use parking_lot::Mutex;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A visitor who shows no sign of life for this long has left; an open page watches, or asks every 3 s.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often it is checked whether a visitor has left; short beside [`LEAVE_TIMEOUT`].
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// What visitors ask for and wait for.
pub(super) trait QueueEntry {
    /// The most unfinished entries of one visitor; one more is refused.
    const MAX_UNFINISHED_OF_A_VISITOR: usize;
    /// The most unfinished entries of all visitors; one more is refused.
    const MAX_UNFINISHED: usize;
    /// The most ended entries of one visitor that can still be read; the oldest is forgotten.
    const MAX_REMEMBERED_OF_A_VISITOR: usize;
    /// The most ended entries of all visitors that can still be read.
    const MAX_REMEMBERED: usize;
    /// What a refusal calls the entries of one visitor, and those of all.
    const NAMES: [&'static str; 2];

    fn ticket(&self) -> &Ticket;

    fn is_watched(&self) -> bool;

    fn has_ended(&self) -> bool;

    /// About how long it still takes; its whole duration while it waits.
    fn time_left(&self) -> Duration;

    /// The error of an id that no entry has.
    fn not_found(id: &str) -> Error;

    /// Refuses the entry beside another unfinished one of the same visitor.
    fn check_beside(&self, _own: &Self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether it has neither begun nor ended.
    fn is_waiting(&self) -> bool {
        !self.has_ended() && self.ticket().begun.get().is_none()
    }

    /// Notes a sign of life if somebody watches; returns whether its visitor has left.
    fn check_abandoned(&self) -> bool {
        if self.is_watched() {
            self.ticket().note_sign_of_life();
        }
        self.ticket().last_sign.lock().elapsed() > LEAVE_TIMEOUT
    }

    async fn wait_until_abandoned(&self) {
        while !self.check_abandoned() {
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Waits in the queue until `end`, the next end of an entry, or until it is time to check again. The caller takes `end` before it looks
    /// who comes first, so that it misses none.
    /// Errors: why the entry leaves the queue: it was cancelled, or its visitor has left.
    async fn wait_in_queue(&self, end: Notified<'_>) -> Result<(), &'static str> {
        tokio::select! {
            () = self.ticket().cancel.cancelled() => Err("it was cancelled before it began"),
            _ = timeout(CHECK_INTERVAL, end) => match self.check_abandoned() {
                true => Err("its visitor has left the queue"),
                false => Ok(()),
            },
        }
    }
}

/// What the queue knows of an entry: whose it is, whether it runs alone, and since when it waits or is under way.
pub(super) struct Ticket {
    pub(super) id: Uuid,
    pub(super) visitor: Visitor,
    /// Whether it runs alone.
    pub(super) is_exclusive: bool,
    pub(super) asked: Instant,
    begun: OnceLock<Instant>,
    /// When somebody last watched it, stepped it or asked for it.
    last_sign: Mutex<Instant>,
    /// Ends it, in the queue or under way.
    pub(super) cancel: CancellationToken,
}

/// How many entries end before an entry begins, and about how long that takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) position: usize,
    pub(super) starts_in: Duration,
}

/// The entries that wait, are under way, or have ended and are remembered.
pub(super) struct Queue<T> {
    in_order_asked: Mutex<Vec<Arc<T>>>,
    /// Notified after an entry has ended.
    pub(super) ended: Notify,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { in_order_asked: Mutex::default(), ended: Notify::new() }
    }
}

impl Ticket {
    pub(super) fn new(visitor: Visitor, is_exclusive: bool, cancel: CancellationToken) -> Self {
        Self {
            id: Uuid::new_v4(),
            visitor,
            is_exclusive,
            asked: Instant::now(),
            begun: OnceLock::new(),
            last_sign: Mutex::new(Instant::now()),
            cancel,
        }
    }

    pub(super) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// The time since it began; `None` while it waits.
    pub(super) fn elapsed(&self) -> Option<Duration> {
        self.begun.get().map(Instant::elapsed)
    }

    pub(super) fn note_sign_of_life(&self) {
        *self.last_sign.lock() = Instant::now();
    }
}

impl<T: QueueEntry> Queue<T> {
    /// Adds an entry behind all others; of too many ended ones the oldest is forgotten.
    /// Errors: the visitor's other entries do not allow it, or a limit of unfinished ones is reached.
    pub(super) fn add(&self, entry: &Arc<T>) -> Result<(), Error> {
        let visitor = &entry.ticket().visitor;
        let mut entries = self.in_order_asked.lock();
        let unfinished = || entries.iter().filter(|other| !other.has_ended());
        let own = || unfinished().filter(|other| other.ticket().visitor == *visitor);
        own().try_for_each(|other| entry.check_beside(other))?;
        for (what, count, most) in
            [(T::NAMES[0], own().count(), T::MAX_UNFINISHED_OF_A_VISITOR), (T::NAMES[1], unfinished().count(), T::MAX_UNFINISHED)]
        {
            if count >= most {
                return Err(Error::too_many(what, most));
            }
        }
        for (of, most) in [(Some(visitor), T::MAX_REMEMBERED_OF_A_VISITOR), (None, T::MAX_REMEMBERED)] {
            let mut ended = entries
                .iter()
                .enumerate()
                .filter(|(_, other)| other.has_ended() && of.is_none_or(|of| other.ticket().visitor == *of));
            // The first of `most` or more is the oldest.
            if let Some((oldest, _)) = ended.next()
                && ended.count() + 1 >= most
            {
                entries.remove(oldest);
            }
        }
        entries.push(Arc::clone(entry));
        Ok(())
    }

    /// The unfinished entries that were asked for before this one and exclude it. Once there are none, its turn has come.
    pub(super) fn before(&self, entry: &T) -> Vec<Arc<T>> {
        let Ticket { id, is_exclusive, .. } = entry.ticket();
        let mut before = self.unfinished();
        let own = before.iter().position(|other| other.ticket().id == *id);
        before.truncate(own.unwrap_or_default());
        before.retain(|other| *is_exclusive || other.ticket().is_exclusive);
        before
    }

    /// The place of an entry; nothing is before one that has begun or ended.
    pub(super) fn place_of(&self, entry: &T) -> Place {
        if !entry.is_waiting() {
            return Place::default();
        }
        let before = self.before(entry);
        let time_left = |is_exclusive: bool| {
            let those = before.iter().filter(move |other| other.ticket().is_exclusive == is_exclusive);
            those.map(|other| other.time_left())
        };
        Place {
            position: before.len(),
            starts_in: time_left(true).sum::<Duration>() + time_left(false).max().unwrap_or_default(),
        }
    }

    /// The entries that have not ended, waiting ones included, the oldest request first.
    pub(super) fn unfinished(&self) -> Vec<Arc<T>> {
        let entries = self.in_order_asked.lock();
        let unfinished = entries.iter().filter(|entry| !entry.has_ended());
        unfinished.cloned().collect()
    }

    /// The entries that wait for their turn, the oldest request first.
    pub(super) fn waiting(&self) -> Vec<Arc<T>> {
        let mut waiting = self.unfinished();
        waiting.retain(|entry| entry.is_waiting());
        waiting
    }

    /// Cancels all entries that wait for their turn. Returns how many.
    pub(super) fn cancel_waiting(&self) -> usize {
        let waiting = self.waiting().into_iter();
        waiting.inspect(|entry| entry.ticket().cancel.cancel()).count()
    }

    /// The entries of a visitor, remembered ones included, the newest request first.
    pub(super) fn of_visitor(&self, visitor: &Visitor) -> Vec<Arc<T>> {
        let entries = self.in_order_asked.lock();
        let newest_first = entries.iter().rev();
        newest_first.filter(|entry| entry.ticket().visitor == *visitor).cloned().collect()
    }

    /// An entry of any visitor, a remembered one too.
    pub(super) fn find(&self, id: &str) -> Result<Arc<T>, Error> {
        let entries = self.in_order_asked.lock();
        let found = entries.iter().find(|entry| entry.ticket().id.to_string() == id);
        found.cloned().ok_or_else(|| T::not_found(id))
    }

    /// An entry of this visitor; for other visitors it does not exist.
    pub(super) fn find_own(&self, id: &str, visitor: &Visitor) -> Result<Arc<T>, Error> {
        match self.find(id)? {
            own if own.ticket().visitor == *visitor => Ok(own),
            _ => Err(T::not_found(id)),
        }
    }
}

/// A duration in the unit of answers.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error as Domain;
    use std::sync::atomic::{AtomicBool, Ordering};

    const DURATION: Duration = Duration::from_secs(4);

    struct Entry {
        ticket: Ticket,
        is_watched: AtomicBool,
        has_ended: AtomicBool,
    }

    impl QueueEntry for Entry {
        const MAX_UNFINISHED_OF_A_VISITOR: usize = 4;
        const MAX_UNFINISHED: usize = 50;
        const MAX_REMEMBERED_OF_A_VISITOR: usize = 2;
        const MAX_REMEMBERED: usize = 3;
        const NAMES: [&'static str; 2] = ["entries of one visitor", "entries of all visitors"];

        fn ticket(&self) -> &Ticket {
            &self.ticket
        }

        fn is_watched(&self) -> bool {
            self.is_watched.load(Ordering::Relaxed)
        }

        fn has_ended(&self) -> bool {
            self.has_ended.load(Ordering::Relaxed)
        }

        fn time_left(&self) -> Duration {
            DURATION - self.ticket.elapsed().unwrap_or_default()
        }

        fn not_found(id: &str) -> Error {
            Error::NoReplay(id.to_owned())
        }
    }

    fn entry(visitor: &str, is_exclusive: bool) -> Arc<Entry> {
        Arc::new(Entry {
            ticket: Ticket::new(Visitor::named(visitor), is_exclusive, CancellationToken::new()),
            is_watched: false.into(),
            has_ended: false.into(),
        })
    }

    fn add(queue: &Queue<Entry>, visitor: &str, is_exclusive: bool) -> Arc<Entry> {
        let entry = entry(visitor, is_exclusive);
        queue.add(&entry).expect("a place");
        entry
    }

    fn end(entry: &Entry) {
        entry.has_ended.store(true, Ordering::Relaxed);
    }

    #[tokio::test(start_paused = true)]
    async fn an_exclusive_entry_waits_and_is_waited_for() {
        let queue = Queue::default();
        let all = [("one", false), ("two", true), ("three", false), ("four", true)]
            .map(|(visitor, is_exclusive)| add(&queue, visitor, is_exclusive));
        let [first, alone, next, _] = &all;
        let places = || {
            let places = all.each_ref().map(|one| queue.place_of(one));
            places.map(|place| (place.position, place.starts_in.as_secs()))
        };
        assert_eq!(places(), [(0, 0), (1, 4), (1, 4), (3, 8)]);
        first.ticket.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        // `next` waits as long as before: its own wait is no part of its duration.
        assert_eq!(places(), [(0, 0), (1, 3), (1, 4), (3, 8)]);
        end(first);
        assert_eq!(places(), [(0, 0), (0, 0), (1, 4), (2, 8)]);
        end(alone);
        assert_eq!(places(), [(0, 0), (0, 0), (0, 0), (1, 4)]);
        end(next);
        assert_eq!(places(), [(0, 0); 4]);
    }

    #[test]
    fn the_teacher_ends_what_waits_and_nothing_else() {
        let queue = Queue::default();
        let all =
            [("one", true), ("two", false), ("three", true)].map(|(visitor, is_exclusive)| add(&queue, visitor, is_exclusive));
        all[0].ticket.begin();
        let waiting = queue.waiting().into_iter().map(|entry| entry.ticket.id);
        assert_eq!(waiting.collect::<Vec<_>>(), [all[1].ticket.id, all[2].ticket.id]);
        assert_eq!(queue.cancel_waiting(), 2);
        assert_eq!(all.map(|one| one.ticket.cancel.is_cancelled()), [false, true, true]);
    }

    /// Forty visitors, and one who asks for more than is theirs.
    #[test]
    fn a_visitor_takes_no_more_than_its_own_places() {
        let queue = Queue::default();
        let all: Vec<_> = (0..40).map(|n| add(&queue, &format!("visitor {n}"), false)).collect();
        for _ in 1..4 {
            add(&queue, "visitor 7", false);
        }
        let more = queue.add(&entry("visitor 7", false)).expect_err("a fifth");
        assert!(matches!(more, Error::Domain(Domain::TooMany { most: 4, .. })), "{more}");
        for n in 0..7 {
            add(&queue, &format!("visitor 1{n}"), false);
        }
        let more = queue.add(&entry("visitor 8", false)).expect_err("a 51st");
        assert!(matches!(more, Error::Domain(Domain::TooMany { most: 50, .. })), "{more}");
        end(&all[7]);
        add(&queue, "visitor 7", false);
    }

    #[test]
    fn of_too_many_ended_entries_the_oldest_is_forgotten() {
        let queue = Queue::default();
        let ended = ["one", "one", "two", "one", "three"].map(|visitor| {
            let entry = add(&queue, visitor, false);
            end(&entry);
            entry
        });
        add(&queue, "four", false);
        let is_remembered = ended.map(|one| queue.find(&one.ticket.id.to_string()).is_ok());
        assert_eq!(is_remembered, [false, false, false, true, true]);
    }

    #[test]
    fn the_entries_of_others_are_nobodys_to_change() {
        let queue = Queue::default();
        let id = add(&queue, "one", false).ticket.id.to_string();
        let find = |visitor| queue.find_own(&id, &Visitor::named(visitor));
        assert!(find("one").is_ok());
        assert!(matches!(find("two").map(drop), Err(Error::NoReplay(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_entry_leaves_the_queue_with_its_visitor() {
        let queue = Queue::default();
        let [watched, abandoned, cancelled] = ["one", "two", "three"].map(|of| add(&queue, of, true));
        watched.is_watched.store(true, Ordering::Relaxed);
        let departure = async |entry: &Entry| {
            let left = async {
                loop {
                    if let Err(why) = entry.wait_in_queue(queue.ended.notified()).await {
                        return why;
                    }
                }
            };
            timeout(4 * LEAVE_TIMEOUT, left).await.ok()
        };
        cancelled.ticket.cancel.cancel();
        assert_eq!(departure(&cancelled).await, Some("it was cancelled before it began"));
        assert_eq!(departure(&abandoned).await, Some("its visitor has left the queue"));
        assert_eq!(departure(&watched).await, None);
        watched.is_watched.store(false, Ordering::Relaxed);
        assert_eq!(departure(&watched).await, Some("its visitor has left the queue"));
    }
}
