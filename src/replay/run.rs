//! Plays a script: does what its steps say, one after the other, and says how it has ended.
//!
//! It is played on a product of its own that is removed at its end, and what it has broken is mended, however that comes.
//!
//! Next: `races/`, one race to a file.

use super::{
    act::Act,
    actor::ActorEvent,
    event::{End, Ending, Log},
    goods,
    play::{Pace, Play, SENTINEL, Terms, Who},
    race::Script,
    role::Role,
    stage::Stage,
    step::{Deed, Expected, Step},
};
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    fault::Action,
    section::{LockState, Point},
};
use futures::future::try_join_all;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A replay that takes longer at a slow pace hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// One that is stepped through by a person.
const PATIENCE: Duration = Duration::from_secs(1800);

impl Script {
    /// Plays it. What is seen goes into `log`, which is closed at the end.
    ///
    /// Where it is cancelled, its actors are ended first.
    ///
    /// # Cancel safety
    ///
    /// Dropped, its actors are ended, and its product stays.
    pub async fn play(&self, ctx: &Ctx, terms: Terms, log: Arc<Log>, cancel: &CancellationToken) {
        let end = match self.played(ctx, terms, &log, cancel).await {
            Ok(ending) => End::Done(ending),
            Err(error) => End::Failed(error.to_string()),
        };
        log.close(end);
    }

    async fn played(
        &self,
        ctx: &Ctx,
        terms: Terms,
        log: &Arc<Log>,
        cancel: &CancellationToken,
    ) -> Result<Ending, Error> {
        let stock_id = goods::put(ctx, self.act, self.pieces).await?;
        let stage = Arc::new(Stage::new(Arc::clone(log)));
        let limit = if terms.pace.waits_for_people() {
            PATIENCE
        } else {
            LIMIT
        };
        let mut play = Play::new(
            ctx,
            self.act,
            self.stops,
            stock_id,
            terms,
            Arc::clone(&stage),
        );
        let sights = play.sights.clone();
        let played = tokio::select! {
            played = timeout(limit, self.carried_out(&mut play)) => played,
            () = stage.watch(&sights) => Ok(Err(Error::replay("nobody looks any more"))),
            () = cancel.cancelled() => Ok(Err(Error::replay("it was cancelled"))),
        };
        let failed = |_: &str, error| tracing::error!(%error, "a replay leaves what it has broken");
        if let Some(faults) = &play.faults
            && faults.mend_all(failed).await
        {
            play.can_be_seen().await;
        }
        let ending = match played.unwrap_or_else(|_| Err(Error::replay("it takes too long"))) {
            Ok(()) => self.ending(&play).await,
            Err(error) => Err(error),
        };
        drop(play);
        goods::remove(ctx, self.act, stock_id).await?;
        ending
    }

    async fn carried_out(&self, play: &mut Play) -> Result<(), Error> {
        if play.terms.pace == Pace::Timed {
            return play.goes_by_the_clock().await;
        }
        // Two transactions are one step, which lets either send its next statement.
        if play.terms.pace == Pace::Scheduler && !matches!(self.act, Act::Deadlock(_)) {
            return self.scheduled(play).await;
        }
        for step in self.steps.into_iter().flatten() {
            carry_out(play, step).await?;
        }
        Ok(())
    }

    /// Whoever asks decides who goes on, until all who have begun are at their ends.
    async fn scheduled(&self, play: &mut Play) -> Result<(), Error> {
        let (roles, steps) = (self.roles(), play.terms.steps.clone());
        for step in self.lab_steps() {
            if matches!(step, Step::Fault(Action::Cut, _)) {
                // It stands still from now on, since to it the main one is down.
                play.inject(Action::Pause, SENTINEL).await?;
            }
            carry_out(play, step).await?;
        }
        loop {
            let who = tokio::select! {
                who = steps.asked() => who?,
                () = play.all_have_ended(roles.len().min(2)) => return Ok(()),
            };
            let letter = match who {
                Who::Clock if self.has_clock() => {
                    play.clock_goes_on().await?;
                    continue;
                }
                Who::Death => {
                    if let Some(role) = self.who_dies() {
                        play.dies_here(role);
                    }
                    continue;
                }
                Who::FailOver if self.fails_over() => {
                    play.fails_over().await?;
                    continue;
                }
                Who::All | Who::Clock | Who::FailOver => continue,
                Who::A => 'A',
                Who::B => 'B',
                Who::C => 'C',
            };
            if let Some(role) = roles.iter().find(|role| role.letter == letter) {
                play.lets_go(role).await?;
            }
        }
    }

    async fn ending(&self, play: &Play) -> Result<Ending, Error> {
        play.stage.look(&play.sights).await?;
        let (sold, inside) = play.stage.sums();
        let left = goods::left(&play.ctx, self.act, play.stock_id).await?;
        let mut ending = Ending {
            sold,
            gone: left.map_or(0, |left| self.pieces - left),
            inside,
            saw: play.noted(),
            as_meant: false,
            forced: *play.forced.lock(),
        };
        ending.as_meant = self.ends.are(&ending);
        Ok(ending)
    }
}

async fn carry_out(play: &mut Play, step: &Step) -> Result<(), Error> {
    match step {
        Step::Say(Bilingual { zh, en }) => play.step(zh, en).await,
        Step::Does(role, deed) => does(play, role, *deed).await,
        Step::FinishTogether(roles) => {
            let sides: Result<Vec<_>, _> = roles.iter().map(|role| play.take(role)).collect();
            let ends = try_join_all(sides?.into_iter().map(|side| side.ends())).await?;
            for (role, end) in roles.iter().zip(ends) {
                comes_to(play, role, end, Expected::Done)?;
            }
            Ok(())
        }
        Step::LeaseEnds => play.lease_ends(play.terms.pace.forces()).await,
        Step::UnrenewedLeaseEnds => {
            let by_order = play.terms.pace.forces() || play.faults.is_none();
            play.lease_ends(by_order).await
        }
        Step::LeaseIsOver => play.lease_is_over().await,
        Step::LeaseWouldBeOver => play.a_lease_would_be_over().await,
        Step::ClockJumps(node) => play.clock_jumps(*node).await,
        Step::Queue(waiting) => play.queued(*waiting).await,
        Step::LockIsFree => play.nobody_has_it().await,
        Step::WhatHungUpGoesOn => {
            play.hung_up.clear();
            Ok(())
        }
        Step::Fault(action, member) => play.inject(*action, member).await,
        Step::FaultAtEnd(action, member) => {
            play.lab()?.inject_at_end(*action, member);
            Ok(())
        }
        Step::Note(what) => {
            play.note(what);
            Ok(())
        }
        Step::Notes(what) => {
            play.note(what(play));
            Ok(())
        }
        Step::All(steps) => {
            for step in *steps {
                Box::pin(carry_out(play, step)).await?;
            }
            Ok(())
        }
        Step::Also(what) => what(play).await,
    }
}

async fn does(play: &mut Play, role: &Role, deed: Deed) -> Result<(), Error> {
    match deed {
        Deed::StandsAt(points) => {
            let points: Vec<_> = points.into_iter().flatten().collect();
            play.send(role, &points).await?.stands_at(&points).await
        }
        Deed::HeadsFor(point) => play.send(role, point.as_slice()).await.map(drop),
        Deed::Waits => {
            let at = [Point::Waits];
            play.send(role, &at).await?.stands_at(&at).await?;
            play.send(role, &[]).await.map(drop)
        }
        Deed::Passes(point, times) => {
            let times = play.terms.pace.of(times);
            play.side(role)?.passes(point, times).await
        }
        Deed::Ends(expected) => {
            if play.side(role).is_err() {
                play.send(role, &[]).await?;
            }
            let end = play.take(role)?.ends().await?;
            comes_to(play, role, end, expected)
        }
        Deed::Dies => play.dies(role).await,
        Deed::HangsUp => {
            let side = play.take(role)?.hangs_up();
            play.hung_up.push(side);
            play.is_gone(role, ["hung-up", "its client has hung up"]);
            Ok(())
        }
        Deed::Paused => play.befalls(role, Action::Pause).await,
        Deed::Resumed => play.befalls(role, Action::Resume).await,
        Deed::Killed => play.is_killed(role).await,
        Deed::SessionEnds => play.session_ends(role).await,
        Deed::HearsLate(by_ms) => play.hears_late(role, Duration::from_millis(by_ms)).await,
        Deed::SessionWouldEnd => play.a_session_would_be_over(role).await,
        Deed::CutFrom(member) => {
            let way = format!("{}-{member}", play.name_of(role)?);
            play.inject(Action::Cut, &way).await
        }
    }
}

/// Keeps what a role has come to, which must be this.
fn comes_to(
    play: &mut Play,
    role: &Role,
    end: ActorEvent,
    expected: Expected,
) -> Result<(), Error> {
    let as_expected = match (&end, expected) {
        (ActorEvent::Done { .. }, Expected::Done) => true,
        (ActorEvent::Done { lost, .. }, Expected::Unlocked(found)) => {
            *lost == Some(found == LockState::Lost)
        }
        (ActorEvent::Failed { kind, .. }, Expected::Failed(as_what)) => kind == as_what,
        (ActorEvent::Failed { .. }, Expected::Refused) => true,
        _ => false,
    };
    if !as_expected {
        let why = format!("{} is not {expected:?}, but {end:?}", role.letter);
        return Err(Error::replay(why));
    }
    play.ends.push(end);
    Ok(())
}
