//! Replays in progress. Those of all visitors run side by side, each on a product of its own; one that breaks servers runs alone.
//!
//! 1. A visitor's replay takes its place in the queue and goes on at once, unless one that breaks servers is running or comes
//!    first.
//! 2. One that breaks servers waits for all that came before it. After [`PERSON_GRACE`] those that it waits for end, if they
//!    wait for a person.
//! 3. One that waits for its turn or for a person, and that nobody watches or steps for [`LEAVE_TIMEOUT`], ends: its visitor has
//!    left.
//!
//! nginx sends all requests about replays to one instance, so the queue is in its memory. A replay that breaks servers asks the
//! other instances too, which have their own if somebody starts one there.
//!
//! `routes.rs` has the routes.

pub(super) mod routes;

use crate::http::routes::prelude::*;
use crate::{
    config::Config,
    http::{
        extract::Admin,
        neighbours::{LatestAnswer, RemoteReplay, fetch_replays_of_others},
        visitor::Visitor,
    },
    replay::{Log, MoveRequests, NextMove, Pace, ReplayEvent},
    section::Point,
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Limit of the unfinished replays of one visitor: a race, its cure, and a schedule of either.
const MAX_UNFINISHED_OF_A_VISITOR: usize = 4;
const MAX_UNFINISHED: usize = 400;
/// The ended replays of one visitor whose events can still be read.
const MAX_REMEMBERED_OF_A_VISITOR: usize = 4;
/// The ended replays of all visitors whose events can still be read.
const MAX_REMEMBERED: usize = 400;
/// How long another replay waits, since it was asked for, before it ends those that wait for a person.
const PERSON_GRACE: Duration = Duration::from_secs(60);
/// A visitor who shows no sign of life for this long has left.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often it is checked whether a visitor has left; short beside [`LEAVE_TIMEOUT`].
const LEAVE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Waiting, running and remembered replays, and the actors that play here for a directing instance.
#[derive(Default)]
pub(in crate::http) struct Replays {
    /// The queue, and the ended ones, oldest request first.
    in_order_asked: Mutex<Vec<Arc<VisitorReplay>>>,
    /// Told when a replay has ended.
    changed: Notify,
    /// The replays in progress in other instances.
    others: LatestAnswer<Vec<RemoteReplay>>,
    /// The stops of each actor that plays here.
    actors: Mutex<HashMap<Uuid, watch::Sender<Vec<Point>>>>,
}

/// A replay that waits, runs, or has ended and is remembered.
struct VisitorReplay {
    id: Uuid,
    visitor: Visitor,
    lesson: &'static str,
    cured: bool,
    pace: Pace,
    is_exclusive: bool,
    /// Whether it is listed for all visitors. Whoever knows its id may watch it.
    is_shared: AtomicBool,
    /// About how long it takes, without its wait.
    estimated_duration: Duration,
    asked: Instant,
    /// When its turn came; unset while it waits.
    begun: OnceLock<Instant>,
    moves: MoveRequests,
    /// When somebody last watched it or let it make a step.
    last_sign: Mutex<tokio::time::Instant>,
    log: Arc<Log>,
    cancel: CancellationToken,
}

/// A lesson whose race one visitor plays or has played, for the teacher's page: the newest replays of flaw and cure.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct VisitorRace {
    #[schema(example = "2.3")]
    lesson: &'static str,
    /// Whether a replay of it is running or waits for its turn.
    running: bool,
    /// The newest of the flaw, and of the cure.
    replays: Vec<WatchedReplay>,
}

/// A replay that can be watched: its id, whether it is the cure, and its pace.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::http) struct WatchedReplay {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    id: Uuid,
    cured: bool,
    pace: Pace,
}

impl WatchedReplay {
    fn of(replay: &VisitorReplay) -> Self {
        Self {
            id: replay.id,
            cured: replay.cured,
            pace: replay.pace,
        }
    }
}

/// The place of a waiting replay in the queue, and how long until it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueuePlace {
    /// How many end before it begins.
    position: usize,
    starts_in: Duration,
}

impl Replays {
    /// Gives the replay the last place in the queue, and marks it as begun if nothing excludes it; of too many ended replays the
    /// oldest is forgotten.
    /// Errors: the same half of the lesson is unfinished for this visitor, or a limit of unfinished ones is reached.
    fn enqueue(&self, replay: &Arc<VisitorReplay>) -> Result<(), Error> {
        let mut in_order_asked = self.in_order_asked.lock();
        let running = || in_order_asked.iter().filter(|other| other.is_unfinished());
        let own: Vec<_> = running()
            .filter(|other| other.visitor == replay.visitor)
            .collect();
        if let Some(same) = own.iter().find(|other| other.is_same_as(replay)) {
            return Err(Error::ReplayInProgress(same.lesson));
        }
        if own.len() >= MAX_UNFINISHED_OF_A_VISITOR {
            return Err(Error::TooMany {
                what: "replays of one visitor",
                most: MAX_UNFINISHED_OF_A_VISITOR,
            });
        }
        if running().count() >= MAX_UNFINISHED {
            return Err(Error::TooMany {
                what: "replays of all visitors",
                most: MAX_UNFINISHED,
            });
        }
        let ended_of = |in_order_asked: &[Arc<VisitorReplay>], visitor: Option<&Visitor>| {
            let ended = in_order_asked.iter().enumerate().filter(|(_, other)| {
                !other.is_unfinished() && visitor.is_none_or(|of| other.visitor == *of)
            });
            ended.map(|(n, _)| n).collect::<Vec<_>>()
        };
        for (of, most) in [
            (Some(&replay.visitor), MAX_REMEMBERED_OF_A_VISITOR),
            (None, MAX_REMEMBERED),
        ] {
            let ended = ended_of(&in_order_asked, of);
            if ended.len() >= most {
                in_order_asked.remove(ended[0]);
            }
        }
        if place_in(&in_order_asked, replay).is_none() {
            replay.mark_begun();
        }
        in_order_asked.push(Arc::clone(replay));
        Ok(())
    }

    /// Waits until the replay may begin, logs what it waits for, and marks it as begun. [`PERSON_GRACE`] after the request, ends
    /// those before it that wait for a person.
    /// Errors: it was cancelled, or its visitor has left; the text says which.
    async fn wait_for_turn(&self, replay: &VisitorReplay) -> Result<(), String> {
        let mut announced = None;
        loop {
            let changed = self.changed.notified();
            let place = {
                let in_order_asked = self.in_order_asked.lock();
                let place = place_in(&in_order_asked, replay);
                if place.is_none() {
                    replay.mark_begun();
                }
                place
            };
            let Some(QueuePlace { position, .. }) = place else {
                return Ok(());
            };
            if announced != Some(position) {
                announced = Some(position);
                replay.log.add(ReplayEvent::caption(
                    format!("排队：前面还有 {position} 个重演；会弄停服务器的重演，一次只演一个"),
                    format!(
                        "waiting: {position} replays come first; one that breaks servers is played alone"
                    ),
                ));
            }
            if replay.check_abandoned() {
                return Err("its visitor has left the queue".to_owned());
            }
            if replay.asked.elapsed() > PERSON_GRACE {
                self.end_those_that_wait_for_people(replay);
            }
            tokio::select! {
                () = replay.cancel.cancelled() => return Err("it was cancelled".to_owned()),
                _ = timeout(LEAVE_CHECK_INTERVAL, changed) => {}
            }
        }
    }

    /// Cancels the replays before this one that wait for a person, and logs the reason in each.
    fn end_those_that_wait_for_people(&self, replay: &VisitorReplay) {
        for other in self.unfinished() {
            if replay.excludes(&other)
                && other.asked < replay.asked
                && other.pace.waits_for_people()
            {
                other.log.add(ReplayEvent::caption(
                    format!("第 {} 课等了很久，现在轮到它：请过后再来", replay.lesson),
                    format!(
                        "it is the turn of lesson {}, which has waited for long: begin again afterwards",
                        replay.lesson
                    ),
                ));
                other.cancel.cancel();
            }
        }
    }

    /// The lesson of a replay in another instance that excludes this one, since its director would undo the faults that this
    /// one needs; `None` if there is none.
    async fn blocking_lesson(
        &self,
        replay: &VisitorReplay,
        config: &Config,
    ) -> Option<&'static str> {
        let ask = fetch_replays_of_others(config);
        let playing = self.others.asked_since(Instant::now(), ask).await;
        playing
            .iter()
            .find_map(|played| played.blocking_lesson(replay.is_exclusive, config))
    }

    /// The unfinished replays, waiting ones included, as other instances get them.
    pub(in crate::http) fn playing(&self) -> Vec<RemoteReplay> {
        let played = |replay: &Arc<VisitorReplay>| RemoteReplay {
            lesson: replay.lesson.to_owned(),
            pace: replay.pace,
        };
        self.unfinished().iter().map(played).collect()
    }

    /// The replays that have not ended, waiting ones included, the oldest request first.
    fn unfinished(&self) -> Vec<Arc<VisitorReplay>> {
        let in_order_asked = self.in_order_asked.lock();
        in_order_asked
            .iter()
            .filter(|replay| replay.is_unfinished())
            .cloned()
            .collect()
    }

    /// The lessons whose races this visitor plays, or has played and can still watch, the last asked for first; of each the newest
    /// replay of the flaw and of the cure.
    pub(in crate::http) fn races_of(&self, visitor: &Visitor) -> Vec<VisitorRace> {
        let in_order_asked = self.in_order_asked.lock();
        let own = in_order_asked
            .iter()
            .rev()
            .filter(|one| one.visitor == *visitor);
        let mut races: Vec<VisitorRace> = Vec::new();
        for replay in own {
            let found = races.iter().position(|race| race.lesson == replay.lesson);
            let at = found.unwrap_or_else(|| {
                races.push(VisitorRace {
                    lesson: replay.lesson,
                    running: false,
                    replays: Vec::new(),
                });
                races.len() - 1
            });
            let race = &mut races[at];
            race.running |= replay.is_unfinished();
            if race.replays.iter().all(|one| one.cured != replay.cured) {
                race.replays.push(WatchedReplay::of(replay));
            }
        }
        races
    }

    /// Lists these replays for all visitors; [`Error::NoReplay`], and none is listed, if one does not exist or is not of this
    /// lesson.
    pub(in crate::http) fn share(
        &self,
        lesson: &'static str,
        ids: &[Uuid],
    ) -> Result<Vec<WatchedReplay>, Error> {
        let find = |id: &Uuid| match self.find(&id.to_string())? {
            replay if replay.lesson == lesson => Ok(replay),
            _ => Err(Error::NoReplay(id.to_string())),
        };
        let found = ids.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        for replay in &found {
            replay.is_shared.store(true, Ordering::Relaxed);
        }
        let watched = found.iter().map(|replay| WatchedReplay::of(replay));
        Ok(watched.collect())
    }

    /// The replays that wait for their turn: visitor, lesson, and about how long.
    pub(in crate::http) fn waiting(&self) -> Vec<(Visitor, String, Duration)> {
        let waits = self.unfinished().into_iter().filter_map(|replay| {
            let place = self.place_of(&replay)?;
            let visitor = replay.visitor.clone();
            Some((visitor, replay.lesson.into(), place.starts_in))
        });
        waits.collect()
    }

    /// Cancels all replays that wait for their turn. Returns how many.
    pub(in crate::http) fn end_waiting(&self) -> usize {
        let running = self.unfinished().into_iter();
        let waiting = running.filter(|replay| self.place_of(replay).is_some());
        waiting.inspect(|replay| replay.cancel.cancel()).count()
    }

    /// The place of a replay in the queue; `None` once it may begin, has begun or has ended.
    fn place_of(&self, replay: &VisitorReplay) -> Option<QueuePlace> {
        let waits = replay.is_unfinished() && replay.begun.get().is_none();
        waits.then(|| place_in(&self.in_order_asked.lock(), replay))?
    }

    /// A replay of any visitor, a remembered one too; [`Error::NoReplay`] if there is none.
    fn find(&self, id: &str) -> Result<Arc<VisitorReplay>, Error> {
        let in_order_asked = self.in_order_asked.lock();
        let found = in_order_asked
            .iter()
            .find(|replay| replay.id.to_string() == id);
        found.cloned().ok_or_else(|| Error::NoReplay(id.to_owned()))
    }

    /// A replay of this visitor; for other visitors it does not exist.
    fn find_own(&self, id: &str, visitor: &Visitor) -> Result<Arc<VisitorReplay>, Error> {
        match self.find(id)? {
            own if own.visitor == *visitor => Ok(own),
            _ => Err(Error::NoReplay(id.to_owned())),
        }
    }
}

/// The place of a replay behind the unfinished ones before it that exclude it; `None` if it may begin.
fn place_in(in_order_asked: &[Arc<VisitorReplay>], replay: &VisitorReplay) -> Option<QueuePlace> {
    let before = in_order_asked
        .iter()
        .take_while(|other| other.id != replay.id)
        .filter(|other| other.is_unfinished());
    let blocking: Vec<_> = before.filter(|other| replay.excludes(other)).collect();
    let left = |other: &&Arc<VisitorReplay>| other.time_left();
    let alone = blocking.iter().filter(|other| other.is_exclusive);
    let side_by_side = blocking.iter().filter(|other| !other.is_exclusive);
    let starts_in =
        alone.map(left).sum::<Duration>() + side_by_side.map(left).max().unwrap_or_default();
    (!blocking.is_empty()).then_some(QueuePlace {
        position: blocking.len(),
        starts_in,
    })
}

impl VisitorReplay {
    /// Whether only one of the two may run at a time.
    fn excludes(&self, other: &Self) -> bool {
        self.is_exclusive || other.is_exclusive
    }

    /// Requests this move, and starts the time of [`check_abandoned`](Self::check_abandoned) anew.
    fn step(&self, to: NextMove) {
        *self.last_sign.lock() = tokio::time::Instant::now();
        self.moves.request_move(to);
    }

    /// Starts the time anew if somebody watches; returns whether nobody has watched or stepped it for [`LEAVE_TIMEOUT`].
    fn check_abandoned(&self) -> bool {
        let mut last_sign = self.last_sign.lock();
        if self.log.watchers() > 0 {
            *last_sign = tokio::time::Instant::now();
        }
        last_sign.elapsed() > LEAVE_TIMEOUT
    }

    /// Waits until its visitor has left; never completes if the replay does not wait for people.
    async fn until_abandoned(&self) {
        if !self.pace.waits_for_people() {
            return std::future::pending().await;
        }
        while !self.check_abandoned() {
            sleep(LEAVE_CHECK_INTERVAL).await;
        }
    }

    /// Whether it has not ended; it may still wait for its turn.
    fn is_unfinished(&self) -> bool {
        self.log.end().is_none()
    }

    /// Whether both are the same half of the same lesson, such as by a second click. One that waits for people and one that does
    /// not are different.
    fn is_same_as(&self, other: &Self) -> bool {
        let half = |it: &Self| (it.lesson, it.cured, it.pace.waits_for_people());
        half(self) == half(other)
    }

    fn mark_begun(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// About how long it still takes; its whole duration while it waits.
    fn time_left(&self) -> Duration {
        let elapsed = self.begun.get().map(Instant::elapsed);
        self.estimated_duration
            .saturating_sub(elapsed.unwrap_or_default())
    }
}

/// Refuses a request without the admin token where one is needed, such as for an exclusive replay.
fn require_token_if(needs_token: bool, admin: Result<Admin, Error>) -> Result<(), Error> {
    if needs_token { admin.map(drop) } else { Ok(()) }
}

/// Fails if `replays.enabled` is off, which the scripts of students need too.
pub(super) fn check_replays_and_own_locks_enabled(app: &AppState) -> Result<(), Error> {
    app.ctx
        .config
        .replays
        .enabled
        .then_some(())
        .ok_or(Error::NoReplays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::ReplayEnd;

    fn replay(visitor: &str, lesson: &'static str, pace: Pace, alone: bool) -> Arc<VisitorReplay> {
        Arc::new(VisitorReplay {
            id: Uuid::new_v4(),
            visitor: Visitor::named(visitor),
            lesson,
            cured: false,
            pace,
            is_exclusive: alone,
            is_shared: false.into(),
            estimated_duration: Duration::from_secs(4),
            asked: Instant::now(),
            begun: OnceLock::new(),
            moves: MoveRequests::default(),
            last_sign: Mutex::new(tokio::time::Instant::now()),
            log: Arc::default(),
            cancel: CancellationToken::new(),
        })
    }

    #[test]
    fn the_time_in_the_queue_does_not_count_as_played() {
        let mut waiting = replay("one", "2.3", Pace::Slow, false);
        let asked = Instant::now().checked_sub(Duration::from_secs(60));
        Arc::get_mut(&mut waiting).unwrap().asked = asked.unwrap();
        assert_eq!(waiting.time_left(), waiting.estimated_duration);
        waiting.mark_begun();
        assert!(!waiting.time_left().is_zero());
    }

    /// Its next step is a fail-over.
    #[tokio::test]
    async fn only_an_administrator_steps_an_exclusive_replay() {
        for is_exclusive in [true, false] {
            let replays = Arc::new(Replays::default());
            let one = replay("one", "2.8", Pace::Scheduler, is_exclusive);
            replays.enqueue(&one).expect("a place");
            let next = async |admin| {
                let actor = Query(routes::NextMoveQuery {
                    actor: NextMove::FailOver,
                });
                let id = Path(one.id.to_string());
                let visitor = Visitor::named("one");
                routes::next(
                    admin,
                    visitor,
                    InstanceState(Arc::clone(&replays)),
                    id,
                    actor,
                )
                .await
            };
            let stranger = next(Err(Error::Unauthorized)).await;
            assert_eq!(stranger.is_err(), is_exclusive, "{stranger:?}");
            assert!(next(Ok(Admin)).await.is_ok());
        }
    }

    #[test]
    fn a_race_that_breaks_servers_waits_and_is_waited_for() {
        let replays = Replays::default();
        let [first, alone, next, last] = [
            ("one", false),
            ("two", true),
            ("three", false),
            ("four", true),
        ]
        .map(|(visitor, alone)| {
            let replay = replay(visitor, "2.8", Pace::Slow, alone);
            replays.enqueue(&replay).expect("a place");
            replay
        });
        let places = || {
            [&first, &alone, &next, &last]
                .map(|one| replays.place_of(one).map_or(0, |place| place.position))
        };
        assert_eq!(places(), [0, 1, 1, 3]);
        let end = |one: &VisitorReplay| one.log.close(ReplayEnd::Failed(String::new()));
        end(&first);
        assert_eq!(places(), [0, 0, 1, 2]);
        end(&alone);
        assert_eq!(places(), [0, 0, 0, 1]);
        end(&next);
        assert_eq!(places(), [0; 4]);
    }

    /// What runs goes on.
    #[test]
    fn the_teacher_ends_what_waits_and_nothing_else() {
        let replays = Replays::default();
        let add = |visitor, alone| {
            let replay = replay(visitor, "2.8", Pace::Slow, alone);
            replays.enqueue(&replay).expect("a place");
            replay
        };
        let [alone, next, last] = [add("one", true), add("two", false), add("three", true)];
        let waiting = replays.waiting();
        let waiting: Vec<_> = waiting.iter().map(|(of, what, _)| (of, &**what)).collect();
        assert_eq!(waiting, [(&next.visitor, "2.8"), (&last.visitor, "2.8")]);
        assert_eq!(replays.end_waiting(), 2);
        let is_ended = [&alone, &next, &last].map(|one| one.cancel.is_cancelled());
        assert_eq!(is_ended, [false, true, true]);
    }

    #[test]
    fn a_visitors_newest_flaw_and_cure_can_be_shown() {
        let replays = Replays::default();
        let add = |visitor, lesson, cured, ends| {
            let made = Arc::into_inner(replay(visitor, lesson, Pace::Slow, false)).expect("one");
            let replay = Arc::new(VisitorReplay { cured, ..made });
            replays.enqueue(&replay).expect("a place");
            if ends {
                replay.log.close(ReplayEnd::Failed(String::new()));
            }
            replay
        };
        add("one", "1.3", false, true);
        let flaw = add("one", "1.3", false, true);
        let cure = add("one", "1.3", true, false);
        add("two", "2.3", false, false);
        let races = replays.races_of(&Visitor::named("one"));
        assert_eq!(races.len(), 1, "{races:?}");
        let ids: Vec<_> = races[0].replays.iter().map(|one| one.id).collect();
        assert_eq!((ids, races[0].running), (vec![cure.id, flaw.id], true));
        let other = replays.share("2.3", &[flaw.id]);
        assert!(matches!(other, Err(Error::NoReplay(_))), "{other:?}");
        assert!(!flaw.is_shared.load(Ordering::Relaxed));
        assert_eq!(
            replays
                .share("1.3", &[flaw.id])
                .map(|shown| shown.len())
                .ok(),
            Some(1)
        );
        assert!(flaw.is_shared.load(Ordering::Relaxed));
    }

    /// Forty visitors, and one who asks for more than is theirs.
    #[test]
    fn a_visitor_takes_no_more_than_its_own_places() {
        let replays = Replays::default();
        let start =
            |visitor: &str, lesson| replays.enqueue(&replay(visitor, lesson, Pace::Slow, false));
        for n in 0..40 {
            assert!(start(&format!("visitor {n}"), "1.1").is_ok(), "{n}");
        }
        let twice = start("visitor 7", "1.1").expect_err("a second click");
        assert!(matches!(twice, Error::ReplayInProgress("1.1")), "{twice}");
        for lesson in ["2.1", "2.2", "2.3"] {
            assert!(start("visitor 7", lesson).is_ok(), "{lesson}");
        }
        let more = start("visitor 7", "2.4").expect_err("a fifth");
        assert!(matches!(more, Error::TooMany { most: 4, .. }), "{more}");
        assert!(start("visitor 8", "2.4").is_ok(), "another visitor's");
    }

    /// A race by its own times goes on to its end; a schedule goes on while somebody watches it.
    #[tokio::test(start_paused = true)]
    async fn a_schedule_ends_when_its_visitor_has_left() {
        let long = 4 * LEAVE_TIMEOUT;
        let abandoned =
            async |replay: &VisitorReplay| timeout(long, replay.until_abandoned()).await.is_ok();
        let own = |pace| replay("one", "1.1", pace, false);
        assert!(!abandoned(&own(Pace::Slow)).await);
        assert!(abandoned(&own(Pace::Scheduler)).await);
        let schedule = own(Pace::Scheduler);
        let watcher = schedule.log.watch();
        assert!(!abandoned(&schedule).await);
        drop(watcher);
        assert!(abandoned(&schedule).await);
    }

    #[test]
    fn the_replays_of_others_are_nobodys_to_change() {
        let replays = Replays::default();
        let own = replay("one", "1.1", Pace::Slow, false);
        replays.enqueue(&own).expect("a place");
        let find = |visitor| replays.find_own(&own.id.to_string(), &Visitor::named(visitor));
        assert!(find("one").is_ok());
        assert!(matches!(find("two").map(drop), Err(Error::NoReplay(_))));
    }
}
