//! Replays in progress. Those of all visitors go on side by side, each on a product of its own; one that breaks servers runs
//! alone.
//!
//! 1. A visitor's replay takes its place in the [`Queue`] and goes on at once, unless one that breaks servers is running or
//!    comes first.
//! 2. One that breaks servers waits for all that came before it. After [`PERSON_GRACE`] those that it waits for end, if they
//!    wait for a person.
//! 3. One that waits for a person, and that nobody watches or steps, ends: its visitor has left.
//!
//! A replay that breaks servers asks the other instances too, which have their own if somebody starts one there.
//!
//! `routes/replays.rs` has the handlers.

use super::{
    app::AppState,
    error::Error,
    neighbours::{LatestAnswer, RemoteReplay, fetch_replays_of_others},
    queue::{Queue, QueueEntry, Ticket},
    visitor::Visitor,
};
use crate::{
    config::Config,
    ctx::Ctx,
    error::Error as Domain,
    replay::{ActorHost, Log, MoveRequests, NextMove, Pace, PlayOptions, Race, RaceScript, ReplayEnd, ReplayEvent, Timing},
    section::Point,
};
use futures::FutureExt;
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{oneshot, watch};
use utoipa::ToSchema;
use uuid::Uuid;

/// How long another replay waits, since it was asked for, before it ends those that wait for a person.
const PERSON_GRACE: Duration = Duration::from_secs(60);

/// Waiting, running and remembered replays, and the actors that play here for a directing instance.
#[derive(Default)]
pub(super) struct Replays {
    pub(super) queue: Queue<VisitorReplay>,
    /// The replays in progress in other instances.
    others: LatestAnswer<Vec<RemoteReplay>>,
    /// The stops of each actor that plays here.
    pub(super) actors: Mutex<HashMap<Uuid, watch::Sender<Vec<Point>>>>,
}

/// A replay that waits, runs, or has ended and is remembered. Whoever knows its id may watch it.
pub(super) struct VisitorReplay {
    pub(super) ticket: Ticket,
    pub(super) lesson: &'static str,
    pub(super) cured: bool,
    pub(super) pace: Pace,
    /// Whether it is listed for all visitors.
    pub(super) is_shared: AtomicBool,
    /// About how long it takes, without its wait.
    estimated_duration: Duration,
    moves: MoveRequests,
    pub(super) log: Arc<Log>,
}

/// What a visitor asks for, and how it is to be played.
pub(super) struct ReplayRequest {
    pub(super) lesson: &'static str,
    pub(super) race: &'static Race,
    pub(super) cured: bool,
    pub(super) pace: Pace,
    pub(super) is_shared: bool,
    pub(super) timing: Timing,
}

/// A lesson whose race one visitor plays or has played, for the teacher's page: the newest replays of flaw and cure.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VisitorRace {
    #[schema(example = "2.3")]
    lesson: &'static str,
    /// Whether a replay of it is running or waits for its turn.
    running: bool,
    /// The newest of the flaw, and of the cure.
    replays: Vec<WatchedReplay>,
}

/// A replay that can be watched: its id, whether it is the cure, and its pace.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct WatchedReplay {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    id: Uuid,
    cured: bool,
    pace: Pace,
}

impl WatchedReplay {
    fn of(replay: &VisitorReplay) -> Self {
        Self { id: replay.ticket.id, cured: replay.cured, pace: replay.pace }
    }
}

impl QueueEntry for VisitorReplay {
    // A race, its cure, and a schedule of either.
    const MAX_UNFINISHED_OF_A_VISITOR: usize = 4;
    const MAX_UNFINISHED: usize = 400;
    const MAX_REMEMBERED_OF_A_VISITOR: usize = 4;
    const MAX_REMEMBERED: usize = 400;
    const NAMES: [&'static str; 2] = ["replays of one visitor", "replays of all visitors"];

    fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    fn is_watched(&self) -> bool {
        self.log.watchers() > 0
    }

    fn has_ended(&self) -> bool {
        self.log.end().is_some()
    }

    fn time_left(&self) -> Duration {
        let elapsed = self.ticket.elapsed().unwrap_or_default();
        self.estimated_duration.saturating_sub(elapsed)
    }

    fn not_found(id: &str) -> Error {
        Error::NoReplay(id.to_owned())
    }

    /// Refuses the same half of the same lesson, such as by a second click. One that waits for people and one that does not are
    /// different.
    fn check_beside(&self, own: &Self) -> Result<(), Error> {
        let half = |it: &Self| (it.lesson, it.cured, it.pace.waits_for_people());
        match half(self) == half(own) {
            true => Err(Error::ReplayInProgress(own.lesson)),
            false => Ok(()),
        }
    }
}

impl VisitorReplay {
    /// Requests this move, which is a sign of life of its visitor.
    pub(super) fn step(&self, to: NextMove) {
        self.ticket.note_sign_of_life();
        self.moves.request_move(to);
    }

    /// Waits until its visitor has left; never completes if the replay does not wait for people.
    async fn wait_until_unattended(&self) {
        match self.pace.waits_for_people() {
            true => self.wait_until_abandoned().await,
            false => std::future::pending().await,
        }
    }

    fn end_with_failure(&self, why: impl ToString) {
        self.log.close(ReplayEnd::Failed(why.to_string()));
    }
}

impl Replays {
    /// Gives a replay its place in the queue, and plays it in a task of its own when its turn comes. Returns once it has begun, or
    /// at once if it waits for its turn. If the caller is dropped, the replay goes on.
    /// Errors: as [`Queue::add`]; [`Error::ReplayInProgress`] if another instance runs a replay that excludes it.
    pub(super) async fn start(
        self: &Arc<Self>,
        app: &AppState,
        visitor: Visitor,
        request: ReplayRequest,
    ) -> Result<Arc<VisitorReplay>, Error> {
        let script = request.race.script(request.cured);
        let is_exclusive = request.race.is_exclusive(request.pace, &app.ctx.config);
        let replay = Arc::new(VisitorReplay {
            ticket: Ticket::new(visitor, is_exclusive, app.stopping.child_token()),
            lesson: request.lesson,
            cured: request.cured,
            pace: request.pace,
            is_shared: request.is_shared.into(),
            estimated_duration: Duration::from_millis(script.estimated_ms()),
            moves: MoveRequests::default(),
            log: Arc::default(),
        });
        self.queue.add(&replay)?;
        let options =
            PlayOptions { hosts: actor_hosts(app), pace: request.pace, moves: replay.moves.clone(), timing: request.timing };
        let waits = self.queue.place_of(&replay).position > 0;
        let (sender, started) = oneshot::channel();
        let (ctx, replays, playing) = (app.ctx.clone(), Arc::clone(self), Arc::clone(&replay));
        app.ctx.tasks.spawn(async move {
            let played = replays.play_in_turn(&ctx, &playing, script, options, sender);
            if AssertUnwindSafe(played).catch_unwind().await.is_err() {
                playing.end_with_failure("a bug: the replay panicked");
            }
            replays.queue.ended.notify_waiters();
        });
        if !waits {
            let stopping = |_| Err(Domain::replay("the instance ends").into());
            started.await.unwrap_or_else(stopping)?;
        }
        Ok(replay)
    }

    /// Waits for the replay's turn, then plays it to its end. `started` gets whether it may begin; it is dropped if the replay
    /// ends in the queue.
    async fn play_in_turn(
        &self,
        ctx: &Ctx,
        replay: &VisitorReplay,
        script: RaceScript,
        options: PlayOptions,
        started: oneshot::Sender<Result<(), Error>>,
    ) {
        if let Err(why) = self.wait_for_turn(replay).await {
            return replay.end_with_failure(why);
        }
        // Both of two replays that start at the same time see each other here, so at most one goes on.
        if let Some(other) = self.blocking_lesson(replay, &ctx.config).await {
            replay.end_with_failure(format!("the replay of {other} goes on in another instance"));
            return drop(started.send(Err(Error::ReplayInProgress(other))));
        }
        drop(started.send(Ok(())));
        // In `replay/run.rs`.
        let play = script.play(ctx, options, Arc::clone(&replay.log), &replay.ticket.cancel);
        tokio::pin!(play);
        tokio::select! {
            () = &mut play => {}
            () = replay.wait_until_unattended() => {
                replay.ticket.cancel.cancel();
                play.await;
            }
        }
    }

    /// Waits until the replay may begin, logs what it waits for, and marks it as begun. [`PERSON_GRACE`] after the request, ends
    /// those before it that wait for a person.
    /// Errors: as [`QueueEntry::wait_in_queue`].
    async fn wait_for_turn(&self, replay: &VisitorReplay) -> Result<(), &'static str> {
        let mut announced = 0;
        loop {
            let end = self.queue.ended.notified();
            let before = self.queue.before(replay);
            let position = before.len();
            if position == 0 {
                replay.ticket.begin();
                return Ok(());
            }
            if position != announced {
                announced = position;
                replay.log.add(ReplayEvent::caption(
                    format!("排队：前面还有 {position} 个重演；会弄停服务器的重演，一次只演一个"),
                    format!("waiting: {position} replays come first; one that breaks servers is played alone"),
                ));
            }
            if replay.ticket.asked.elapsed() > PERSON_GRACE {
                end_those_that_wait_for_people(&before, replay.lesson);
            }
            replay.wait_in_queue(end).await?;
        }
    }

    /// The lesson of a replay in another instance that excludes this one, since its director would undo the faults that this
    /// one needs; `None` if there is none.
    async fn blocking_lesson(&self, replay: &VisitorReplay, config: &Config) -> Option<&'static str> {
        let ask = fetch_replays_of_others(config);
        let playing = self.others.asked_since(Instant::now(), ask).await;
        playing.iter().find_map(|played| played.blocking_lesson(replay.ticket.is_exclusive, config))
    }

    /// The unfinished replays, waiting ones included, as other instances get them.
    pub(super) fn playing(&self) -> Vec<RemoteReplay> {
        let played = |replay: &Arc<VisitorReplay>| RemoteReplay { lesson: replay.lesson.to_owned(), pace: replay.pace };
        self.queue.unfinished().iter().map(played).collect()
    }

    /// The lessons whose races this visitor plays, or has played and can still watch, the last asked for first; of each the newest
    /// replay of the flaw and of the cure.
    pub(super) fn races_of(&self, visitor: &Visitor) -> Vec<VisitorRace> {
        let mut races: Vec<VisitorRace> = Vec::new();
        for replay in self.queue.of_visitor(visitor) {
            let found = races.iter().position(|race| race.lesson == replay.lesson);
            let at = found.unwrap_or_else(|| {
                races.push(VisitorRace { lesson: replay.lesson, running: false, replays: Vec::new() });
                races.len() - 1
            });
            let race = &mut races[at];
            race.running |= !replay.has_ended();
            if race.replays.iter().all(|one| one.cured != replay.cured) {
                race.replays.push(WatchedReplay::of(&replay));
            }
        }
        races
    }

    /// Lists these replays for all visitors; [`Error::NoReplay`], and none is listed, if one does not exist or is not of this
    /// lesson.
    pub(super) fn share(&self, lesson: &'static str, ids: &[Uuid]) -> Result<Vec<WatchedReplay>, Error> {
        let find = |id: &Uuid| match self.queue.find(&id.to_string())? {
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
}

/// Cancels those of these replays that wait for a person, and logs the reason in each: the replay of `lesson` comes next.
fn end_those_that_wait_for_people(replays: &[Arc<VisitorReplay>], lesson: &str) {
    let waiting = replays.iter().filter(|replay| replay.pace.waits_for_people());
    for replay in waiting {
        replay.log.add(ReplayEvent::caption(
            format!("第 {lesson} 课等了很久，现在轮到它：请过后再来"),
            format!("it is the turn of lesson {lesson}, which has waited for long: begin again afterwards"),
        ));
        replay.ticket.cancel.cancel();
    }
}

/// The instances of the cluster, or this one if there is no cluster.
fn actor_hosts(app: &AppState) -> Vec<ActorHost> {
    let config = &app.ctx.config;
    let there = |url: &String| ActorHost::Remote { url: url.clone(), token: config.admin_token() };
    match config.cluster.instances.is_empty() {
        true => vec![ActorHost::Local(app.ctx.clone())],
        false => config.cluster.instances.iter().map(there).collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    pub(in crate::http) fn replay(visitor: &str, lesson: &'static str, pace: Pace, alone: bool) -> Arc<VisitorReplay> {
        Arc::new(VisitorReplay {
            ticket: Ticket::new(Visitor::named(visitor), alone, CancellationToken::new()),
            lesson,
            cured: false,
            pace,
            is_shared: false.into(),
            estimated_duration: Duration::from_secs(4),
            moves: MoveRequests::default(),
            log: Arc::default(),
        })
    }

    #[test]
    fn a_visitors_newest_flaw_and_cure_can_be_shown() {
        let replays = Replays::default();
        let add = |visitor, lesson, cured, ends| {
            let made = Arc::into_inner(replay(visitor, lesson, Pace::Slow, false)).expect("one");
            let replay = Arc::new(VisitorReplay { cured, ..made });
            replays.queue.add(&replay).expect("a place");
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
        assert_eq!((ids, races[0].running), (vec![cure.ticket.id, flaw.ticket.id], true));
        let other = replays.share("2.3", &[flaw.ticket.id]);
        assert!(matches!(other, Err(Error::NoReplay(_))), "{other:?}");
        assert!(!flaw.is_shared.load(Ordering::Relaxed));
        assert_eq!(replays.share("1.3", &[flaw.ticket.id]).map(|shown| shown.len()).ok(), Some(1));
        assert!(flaw.is_shared.load(Ordering::Relaxed));
    }

    #[test]
    fn a_second_click_starts_no_second_replay() {
        let replays = Replays::default();
        let start = |lesson, pace| replays.queue.add(&replay("one", lesson, pace, false));
        assert!(start("1.1", Pace::Slow).is_ok());
        let twice = start("1.1", Pace::Slow).expect_err("a second click");
        assert!(matches!(twice, Error::ReplayInProgress("1.1")), "{twice}");
        assert!(start("1.1", Pace::Scheduler).is_ok());
        assert!(start("2.1", Pace::Slow).is_ok());
    }

    /// A race by its own times goes on to its end; a schedule goes on while somebody watches it.
    #[tokio::test(start_paused = true)]
    async fn a_schedule_ends_when_its_visitor_has_left() {
        const LONG_ENOUGH: Duration = Duration::from_secs(60);
        let abandoned = async |replay: &VisitorReplay| {
            let left = replay.wait_until_unattended();
            timeout(LONG_ENOUGH, left).await.is_ok()
        };
        let own = |pace| replay("one", "1.1", pace, false);
        assert!(!abandoned(&own(Pace::Slow)).await);
        assert!(abandoned(&own(Pace::Scheduler)).await);
        let schedule = own(Pace::Scheduler);
        let watcher = schedule.log.watch();
        assert!(!abandoned(&schedule).await);
        drop(watcher);
        assert!(abandoned(&schedule).await);
    }
}
