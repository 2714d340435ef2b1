//! Plays a script: carries out its steps one after the other, on a product of its own.
//!
//! A `RaceScript` is the race's `begin`, then the steps of its flaw or its cure (`Race::script`). Its `schedule_stops` matter at
//! the pace `Scheduler` only. At the end every fault is undone and the product removed, even after a failure or `cancel`.
//!
//! Next: `play.rs`, which starts the actors.

use super::{
    act::Act,
    actor::ActorEvent,
    inject::SENTINEL,
    observer::Observer,
    options::{NextMove, Pace, PlayOptions},
    play::Play,
    race::RaceScript,
    role::Role,
    step::{ExpectedEnd, RoleStep, Step},
};
use crate::{
    ctx::Ctx,
    error::Error,
    replay_log::{Log, ReplayEnd, ReplayResult},
    section::{LockState, Point},
};
use futures::future::try_join_all;
use oversell_lab::{fault::Action, terminal::bilingual::Bilingual};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time limit of a whole replay; a longer one fails.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of a replay that waits for a person; a longer one fails.
const PERSON_REPLAY_TIMEOUT: Duration = Duration::from_secs(1800);

impl RaceScript {
    /// Plays the script. `log` gets the events, and is closed at the end. `cancel` makes the replay fail; its faults are
    /// undone and its product removed all the same. Dropping this leaves both as they are.
    pub async fn play(&self, ctx: &Ctx, options: PlayOptions, log: Arc<Log>, cancel: &CancellationToken) {
        let end = match self.play_and_clean_up(ctx, options, &log, cancel).await {
            Ok(result) => ReplayEnd::Done(result),
            Err(error) => ReplayEnd::Failed(error.to_string()),
        };
        log.close(end);
    }

    /// Puts pieces in stock, carries out the steps, undoes all faults, judges the result, and removes the pieces. Fails after
    /// the time limit, or if it is cancelled.
    async fn play_and_clean_up(
        &self,
        ctx: &Ctx,
        options: PlayOptions,
        log: &Arc<Log>,
        cancel: &CancellationToken,
    ) -> Result<ReplayResult, Error> {
        let ctx = &ctx.with_actor_pools();
        let stock_id = self.act.put_pieces(ctx, self.pieces).await?;
        let observer = Arc::new(Observer::new(Arc::clone(log)));
        let limit = if options.pace.waits_for_people() { PERSON_REPLAY_TIMEOUT } else { REPLAY_TIMEOUT };
        let mut play = Play::new(ctx, self.act, self.schedule_stops, stock_id, options, Arc::clone(&observer));
        let reader = play.reader.clone();
        let played = tokio::select! {
            played = timeout(limit, self.carry_out_steps(&mut play)) => played,
            () = observer.poll(&reader) => Ok(Err(Error::replay("the servers are no longer read (a bug)"))),
            () = cancel.cancelled() => Ok(Err(Error::replay("it was cancelled"))),
        };
        let failed =
            |_: &str, error| tracing::error!(%error, "a fault of a replay could not be undone: undo it with oversell lab fault");
        if let Some(faults) = &play.faults
            && faults.mend_all(failed).await
        {
            play.wait_until_readable().await;
        }
        let result = match played.unwrap_or_else(|_| Err(Error::replay(format!("it took longer than {} s", limit.as_secs())))) {
            Ok(()) => self.judge(&play).await,
            Err(error) => Err(error),
        };
        drop(play);
        self.act.remove_pieces(ctx, stock_id).await?;
        result
    }

    /// Carries out the steps in their order; at the paces `Timed` and `Scheduler` the actors run without them.
    async fn carry_out_steps(&self, play: &mut Play) -> Result<(), Error> {
        if play.options.pace == Pace::Timed {
            return play.run_timed().await;
        }
        // The two transactions of a deadlock are one step, which takes the requests of a person itself.
        if play.options.pace == Pace::Scheduler && !matches!(self.act, Act::Deadlock(_)) {
            return self.play_scheduled(play).await;
        }
        for step in self.steps.into_iter().flatten() {
            carry_out(play, step).await?;
        }
        Ok(())
    }

    /// Injects the faults of the lab, then lets a person decide who goes on, until at least two actors were started and all have
    /// ended. A request that the race does not offer is ignored.
    async fn play_scheduled(&self, play: &mut Play) -> Result<(), Error> {
        let (roles, moves) = (self.roles(), play.options.moves.clone());
        for step in self.lab_steps() {
            if matches!(step, Step::Fault(Action::Cut, _)) {
                // The cut makes the main Redis look dead to the Sentinel, which would promote at once.
                play.inject(Action::Pause, SENTINEL).await?;
            }
            carry_out(play, step).await?;
        }
        loop {
            let who = tokio::select! {
                who = moves.wait_for_next() => who?,
                () = play.wait_until_all_end(roles.len().min(2)) => return Ok(()),
            };
            let letter = match who {
                NextMove::Clock if self.has_clock() => {
                    play.record_forced(true);
                    play.reader.end_leases(None).await?;
                    continue;
                }
                NextMove::Death => {
                    if let Some(role) = self.dying_role() {
                        play.freeze_if_stopped(role);
                    }
                    continue;
                }
                NextMove::FailOver if self.has_failover() => {
                    play.fail_over().await?;
                    continue;
                }
                NextMove::Step | NextMove::Clock | NextMove::FailOver => continue,
                NextMove::A => 'A',
                NextMove::B => 'B',
                NextMove::C => 'C',
            };
            if let Some(role) = roles.iter().find(|role| role.letter == letter) {
                play.advance(role).await?;
            }
        }
    }

    /// What the replay came to, and whether this is what the race declares. Sold: by actors that ended well; inside: the most
    /// actors between their lock and the point at which they leave.
    async fn judge(&self, play: &Play) -> Result<ReplayResult, Error> {
        play.observer.refresh(&play.reader).await?;
        let (sold, inside) = play.observer.totals();
        let left = self.act.count_pieces_left(&play.ctx, play.stock_id).await?;
        let mut result = ReplayResult {
            sold,
            gone: left.map_or(0, |left| self.pieces - left),
            inside,
            notes: play.notes.join(" "),
            as_meant: false,
            forced: *play.forced.lock(),
        };
        result.as_meant = self.expected.matches(&result);
        Ok(result)
    }
}

/// Carries out one step, and returns once it has happened.
async fn carry_out(play: &mut Play, step: &Step) -> Result<(), Error> {
    match step {
        Step::Caption(Bilingual { zh, en }) => play.announce(zh, en).await,
        Step::Role(role, role_step) => carry_out_role_step(play, role, *role_step).await,
        Step::FinishTogether(roles) => {
            let actors: Result<Vec<_>, _> = roles.iter().map(|role| play.take_actor(role)).collect();
            let ends = try_join_all(actors?.into_iter().map(|actor| actor.finish())).await?;
            for (role, end) in roles.iter().zip(ends) {
                record_end(play, role, end, ExpectedEnd::Done)?;
            }
            Ok(())
        }
        // At `fast` and `step` the replay ends the lease; at `slow` (the default) and `clock` it runs out in Redis, and the
        // replay polls until then.
        Step::LeaseEnds => play.wait_until_lease_ends(play.options.pace.forces_timeouts()).await,
        Step::UnrenewedLeaseEnds => {
            let forced = play.options.pace.forces_timeouts() || play.faults.is_none();
            play.wait_until_lease_ends(forced).await
        }
        Step::RowLeaseEnds => play.wait_until_row_lease_ends().await,
        Step::LeaseTimePasses => play.pass_lease_time().await,
        Step::ClockJumps(node) => play.jump_clock(*node).await,
        Step::QueueHas(waiting) => play.wait_until_queued(*waiting).await,
        Step::LockIsFree => play.wait_until_free().await,
        Step::CancelledRequestsGoOn => {
            play.cancelled.clear();
            Ok(())
        }
        Step::Fault(action, member) => play.inject(*action, member).await,
        Step::FaultAtEnd(action, member) => {
            play.lab()?.inject_at_end(*action, member);
            Ok(())
        }
        Step::Note(what) => {
            play.add_note(what);
            Ok(())
        }
        Step::NoteFrom(what) => {
            play.add_note(what(play));
            Ok(())
        }
        Step::All(steps) => {
            for step in *steps {
                Box::pin(carry_out(play, step)).await?;
            }
            Ok(())
        }
        Step::Custom(what) => what(play).await,
    }
}

/// Carries out what a role does, or what is done to it, and returns once it has happened; `Continues` and `WillStopAt` at once.
async fn carry_out_role_step(play: &mut Play, role: &Role, step: RoleStep) -> Result<(), Error> {
    match step {
        RoleStep::StopsAt(points) => {
            let points: Vec<_> = points.into_iter().flatten().collect();
            play.start_or_redirect(role, &points).await?.wait_until_stopped_at(&points).await
        }
        RoleStep::WillStopAt(point) => play.start_or_redirect(role, &[point]).await.map(drop),
        RoleStep::Continues => play.start_or_redirect(role, &[]).await.map(drop),
        RoleStep::Waits => {
            let at = [Point::Waits];
            play.start_or_redirect(role, &at).await?.wait_until_stopped_at(&at).await?;
            play.start_or_redirect(role, &[]).await.map(drop)
        }
        RoleStep::Passes(point, times) => {
            let times = play.options.pace.pick(times);
            play.actor(role)?.wait_until_passed(point, times).await
        }
        // `finishes`, `finishes_and_unlocks`, `times_out` and the like differ only in the end that they expect.
        RoleStep::Finishes(expected) => {
            if play.actor(role).is_err() {
                play.start_or_redirect(role, &[]).await?;
            }
            let end = play.take_actor(role)?.finish().await?;
            record_end(play, role, end, expected)
        }
        RoleStep::Dies => play.kill_or_leave_stopped(role).await,
        RoleStep::HangsUp => {
            let stops = play.take_actor(role)?.stops;
            play.cancelled.push(stops);
            play.record_gone(role, ["hung-up", "its client has hung up"]);
            Ok(())
        }
        RoleStep::GetsPaused => play.inject_at(role, Action::Pause).await,
        RoleStep::GetsResumed => play.inject_at(role, Action::Resume).await,
        RoleStep::GetsKilled => play.kill(role).await,
        RoleStep::LosesSessionAndLock => play.end_session_and_wait(role).await,
        RoleStep::GetsAnswersLate(by_ms) => play.delay_answers(role, Duration::from_millis(by_ms)).await,
        RoleStep::LosesSession => play.end_session(role).await,
        RoleStep::LosesLinkTo(member) => {
            let link = format!("{}-{member}", play.instance_name(role)?);
            play.inject(Action::Cut, &link).await
        }
    }
}

/// Records the end of a role; an error if it is not the expected one.
fn record_end(play: &mut Play, role: &Role, end: ActorEvent, expected: ExpectedEnd) -> Result<(), Error> {
    let as_expected = match (&end, expected) {
        (ActorEvent::Done { .. }, ExpectedEnd::Done) => true,
        (ActorEvent::Done { lost, .. }, ExpectedEnd::Unlocked(found)) => *lost == Some(found == LockState::Lost),
        (ActorEvent::Failed { kind, .. }, ExpectedEnd::Failed(expected_kind)) => kind == expected_kind,
        (ActorEvent::Failed { .. }, ExpectedEnd::AnyFailure) => true,
        _ => false,
    };
    if !as_expected {
        let why = format!("{} ended as {end:?}, expected {expected:?}", role.letter);
        return Err(Error::replay(why));
    }
    play.finished_ends.push(end);
    Ok(())
}
