//! Replays: the race of a lesson, forced, on the real servers, by actors on the real instances; and the same race on its cure.
//!
//! 1. A race is a file in `races/`: who does what, and who stands where while the others go on (`play.rs`).
//! 2. An actor is a real job of a real strategy that is followed and stopped at its named points (`actor.rs`), in this
//!    instance or in another one (`place.rs`).
//! 3. What the actors come by and what the servers hold becomes a list of events (`stage.rs`, `seen.rs`, `event.rs`).
//! 4. It ends as the registry says, each time: so many sold, so many gone from the shelf, so many inside at once.
//!
//! **What it cannot do**: be sure of an order that is left to the clock. At a slow pace the leases are the course's, and a
//! machine that stands still for seconds may let one end too soon; the replay then says that it did not go as it must.
//!
//! Next: `play.rs`, then `races/`.

mod actor;
mod acts;
mod event;
mod faults;
mod goods;
mod place;
mod play;
mod races;
mod seen;
mod stage;
mod under_faults;

pub use actor::{Actor, Line, Part, start};
pub use event::{End, Log, ReplayEvent};
pub use faults::Control;
pub use place::{Place, Sent, Stops};
pub use play::{Pace, Steps};
pub use races::ALL;

use crate::bilingual::Bilingual;
use crate::{ctx::Ctx, error::Error, server::Server};
use faults::{Faults, Need};
use futures::future::BoxFuture;
use play::{Play, gone_wrong};
use seen::Sights;
use serde::{Deserialize, Serialize};
use stage::Stage;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

/// A replay that takes longer at a slow pace hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// One that is stepped through by a person.
const PATIENCE: Duration = Duration::from_secs(1800);

const NOT_ENABLED: Bilingual = Bilingual {
    zh: "这里没有开启重演（replays.enabled）",
    en: "replays are not enabled here (replays.enabled)",
};

/// A race and its cure.
pub struct Replay {
    /// The lesson, as the course numbers it.
    pub lesson: &'static str,
    /// What happens.
    pub title: Bilingual,
    /// What breaks.
    pub breaks: Bilingual,
    /// What mends it.
    pub cure: Bilingual,
    /// What its actors do: the slug of a strategy, or the name of another act; without the cure and with it.
    pub runs: [&'static str; 2],
    /// How it ends, each time, without the cure and with it.
    pub ends: [Ends; 2],
    /// What it needs of a lab.
    needs: &'static [Need],
    play: for<'a> fn(&'a mut Play, &'static str) -> BoxFuture<'a, Result<(), Error>>,
}

/// How a replay must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Ends {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces left the shelf.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most that were inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// What the lesson noted besides.
    #[schema(example = "")]
    pub saw: &'static str,
    /// The same, for people.
    pub said: Bilingual,
}

impl Ends {
    /// Where nothing is sold, and nothing noted.
    const NOTHING: Self = Self::saw("", "", "");

    /// Where this is noted, which is so in Chinese and so in English.
    const fn saw(saw: &'static str, zh: &'static str, en: &'static str) -> Self {
        Self {
            sold: 0,
            gone: 0,
            inside: 0,
            saw,
            said: Bilingual { zh, en },
        }
    }
}

/// How a replay has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ending {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces left the shelf.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most that were inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// What the lesson noted besides.
    #[schema(example = "")]
    pub saw: String,
    /// Whether the registry says the same.
    pub as_meant: bool,
}

/// The replay of this lesson.
#[must_use]
pub fn find(lesson: &str) -> Option<&'static Replay> {
    ALL.iter().find(|replay| replay.lesson == lesson)
}

/// Where and how a replay is played.
#[derive(Debug)]
pub struct Terms {
    /// The instances, in the order of the cluster.
    pub places: Vec<Place>,
    /// Whether it is played on its cure.
    pub cured: bool,
    /// How fast.
    pub pace: Pace,
    /// For [`Pace::Step`]: lets it go on.
    pub steps: Steps,
}

impl Replay {
    /// Plays it, on a product of its own that is removed at its end. What is seen goes into `log`, which is closed then.
    ///
    /// Where it is cancelled, its actors are ended first.
    ///
    /// # Cancel safety
    ///
    /// Dropped, its actors are ended, and its product stays.
    pub async fn run(&self, ctx: &Ctx, terms: Terms, log: Arc<Log>, cancel: &CancellationToken) {
        let end = match self.played(ctx, terms, &log, cancel).await {
            Ok(ending) => End::Done(ending),
            Err(error) => End::Failed(error.to_string()),
        };
        log.close(end);
    }

    /// Whether it orders faults, which only a lab carries out.
    #[must_use]
    pub fn breaks_something(&self) -> bool {
        !self.needs.is_empty()
    }

    /// The servers without which it cannot be played, with the cure or without it.
    #[must_use]
    pub fn servers(&self, cured: bool) -> Vec<Server> {
        acts::find(self.runs[usize::from(cured)]).map_or_else(Vec::new, |act| act.servers())
    }

    /// Why it cannot be played here, if it cannot.
    #[must_use]
    pub fn cannot(&self, ctx: &Ctx) -> Option<Bilingual> {
        if !ctx.config.replays.enabled {
            return Some(NOT_ENABLED);
        }
        self.needs.iter().find_map(|need| need.missing(&ctx.config))
    }

    async fn played(
        &self,
        ctx: &Ctx,
        terms: Terms,
        log: &Arc<Log>,
        cancel: &CancellationToken,
    ) -> Result<Ending, Error> {
        let (runs, ends) = (
            self.runs[usize::from(terms.cured)],
            self.ends[usize::from(terms.cured)],
        );
        let act = acts::find(runs).ok_or_else(|| Error::NoStrategy(runs.to_owned()))?;
        let stock_id = goods::put(ctx, &act).await?;
        let sights = Sights::of(ctx, act, stock_id);
        let stage = Arc::new(Stage::new(Arc::clone(log)));
        let limit = if terms.pace == Pace::Step {
            PATIENCE
        } else {
            LIMIT
        };
        let Terms {
            places,
            cured,
            pace,
            steps,
        } = terms;
        let mut play = Play {
            ctx: ctx.clone(),
            places,
            pace,
            cured,
            stock_id,
            sights: sights.clone(),
            stage: Arc::clone(&stage),
            steps,
            saw: String::new(),
            faults: Faults::of(ctx),
        };
        let played = tokio::select! {
            played = timeout(limit, (self.play)(&mut play, runs)) => played,
            () = stage.watch(&sights) => Ok(Err(gone_wrong("nobody looks any more"))),
            () = cancel.cancelled() => Ok(Err(gone_wrong("it was cancelled"))),
        };
        if play.faults.mend().await {
            play.can_be_seen().await;
        }
        let ending = match played.unwrap_or_else(|_| Err(gone_wrong("it takes too long"))) {
            Ok(()) => {
                stage.look(&sights).await?;
                let (sold, inside) = stage.sums();
                let left = goods::left(ctx, &act, stock_id).await?;
                let (gone, saw) = (left.map_or(0, |left| goods::PIECES - left), play.saw);
                let as_meant = (sold, gone, inside, saw.as_str())
                    == (ends.sold, ends.gone, ends.inside, ends.saw);
                Ok(Ending {
                    sold,
                    gone,
                    inside,
                    saw,
                    as_meant,
                })
            }
            Err(error) => Err(error),
        };
        goods::remove(ctx, &act, stock_id).await?;
        ending
    }
}
