//! A model of a lock, and random programs that must keep to it: two processes with two named owners each, and unnamed
//! ones, who acquire, enter again, release, drop and go away at any time, while answers come late or never and leases end.
//!
//! The model knows which contender surely holds the lock: one with a guard that is not lost. So, at any moment:
//!
//! 1. Two guards that are not lost are of one owner.
//! 2. What such a guard stands for is on the server, and it is what was there when the guard was taken.
//! 3. A guard that was lost is not released: that is said.
//!
//! And when all is given back, each process can have the lock, and nothing is left on the server.
//!
//! Each [`Fault`] breaks one of these rules, which shows that it can be broken.
//!
//! Next to read: `model_programs.rs`.

use super::support::*;
use std::collections::BTreeSet;
use tokio::time::{Instant, sleep};

/// What the model needs to know of an engine.
pub(crate) trait Modelled: Server {
    /// After this time what was not renewed is over.
    const EXPIRY: Duration;
    /// The length of a program.
    const STEPS: usize;

    /// `host:port` of each server.
    fn servers(&self) -> Vec<String>;

    /// A process that reaches the servers at these addresses.
    fn client_over(&self, addresses: &[String]) -> impl Future<Output = Self::Client> + Send;

    /// Which hold the server shows.
    fn shown(&self, name: &str) -> impl Future<Output = Option<String>> + Send;

    /// Whether that can be the one for which `client` has `guard`.
    fn is_of(client: &Self::Client, guard: &Guard, shown: &str) -> bool;
}

/// What a lock can do wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    None,
    /// All contenders of one process are one owner.
    OneOwner,
    /// A late release frees what its owner has by now.
    LateRelease,
    /// A contender that is not answered believes that it holds the lock.
    SilenceIsYes,
    /// What a guard holds is never given back.
    Leak,
    /// A release says nothing of the loss.
    LossUntold,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Who {
    pub(super) process: usize,
    /// Which of the process's owners; `None`: one that nobody else is.
    pub(super) owner: Option<usize>,
}

/// Numbers say which of those that are there, counted round.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Begins to acquire, and waits at most so many milliseconds.
    Ask {
        who: Who,
        lease: Lease,
        wait: u64,
    },
    /// Drops an acquire that is under way.
    GoAway(usize),
    Release(usize),
    Drop(usize),
    /// From now on each answer to this process comes so many milliseconds later.
    Late {
        process: usize,
        by: u64,
    },
    /// From now on this process hears nothing of so many servers.
    Silence {
        process: usize,
        servers: usize,
    },
    Heal {
        process: usize,
    },
    /// This process hears nothing for so long that what it has is over.
    Expire {
        process: usize,
    },
    Pass(Duration),
}

/// What programs came to.
pub(super) type Seen = BTreeSet<&'static str>;

/// What all of them together are to come to.
pub(super) const EVERYTHING: [&str; 5] = ["a hold", "a re-entry", "taken", "no answer", "a loss"];

/// A process of a program, and its ways to the servers.
struct Party<F: Modelled> {
    process: Contender<F>,
    ways: Vec<Mute>,
    owners: [Owner; 2],
}

/// The contender that asked, and its number among all.
#[derive(Debug, Clone, Copy)]
struct Asker {
    who: Who,
    number: u32,
}

impl Asker {
    fn is_one_with(self, other: Self) -> bool {
        let named = self.who.owner.is_some() && self.who.owner == other.who.owner;
        self.number == other.number || (named && self.who.process == other.who.process)
    }
}

struct Asking(Asker, JoinHandle<Answer<Guard>>);

#[derive(Debug)]
struct Held {
    asker: Asker,
    guard: Guard,
    /// What the server showed when the guard was taken.
    shown: Option<String>,
}

struct Releasing {
    asker: Asker,
    was_lost: bool,
    task: JoinHandle<Answer>,
}

/// A program that runs.
struct Run<F: Modelled> {
    family: Family<F>,
    fault: Fault,
    name: String,
    parties: [Party<F>; 2],
    asking: Vec<Asking>,
    held: Vec<Held>,
    releasing: Vec<Releasing>,
    asked: u32,
    seen: Seen,
}

fn take<T>(all: &mut Vec<T>, n: usize) -> Option<T> {
    (!all.is_empty()).then(|| all.swap_remove(n % all.len()))
}

impl<F: Modelled> Run<F> {
    async fn new(family: Family<F>, fault: Fault) -> Self {
        let party = async || {
            let ways = family.server.servers().into_iter().map(Mute::to);
            let ways: Vec<_> = ways.collect::<Result<_, _>>().expect("free ports");
            let addresses: Vec<_> = ways.iter().map(Mute::address).collect();
            let process = family.of(family.server.client_over(&addresses).await);
            Party {
                owners: [process.owner(), process.owner()],
                process,
                ways,
            }
        };
        let parties = [party().await, party().await];
        Self {
            family,
            fault,
            name: name(),
            parties,
            asking: Vec::new(),
            held: Vec::new(),
            releasing: Vec::new(),
            asked: 0,
            seen: Seen::new(),
        }
    }

    async fn step(&mut self, step: Step) -> Result {
        match step {
            Step::Ask { who, lease, wait } => {
                self.asked += 1;
                let party = &self.parties[who.process];
                let owner = match self.fault {
                    Fault::OneOwner => Some(0),
                    _ => who.owner,
                };
                let (owner, lease) = (owner.map(|owner| party.owners[owner]), Some(lease));
                let lock = party.process.asked(&self.name, Ask { owner, lease });
                let wait = Duration::from_millis(wait);
                let number = self.asked;
                let task = tokio::spawn(async move { lock.acquire(wait).await });
                self.asking.push(Asking(Asker { who, number }, task));
            }
            Step::GoAway(n) => drop(take(&mut self.asking, n).map(|Asking(_, task)| task.abort())),
            Step::Release(n) => {
                if let Some(Held { asker, guard, .. }) = take(&mut self.held, n) {
                    self.release(asker, guard);
                }
            }
            Step::Drop(n) => drop(take(&mut self.held, n)),
            Step::Late { process, by } => {
                for way in &self.parties[process].ways {
                    way.delay(Duration::from_millis(by));
                }
            }
            Step::Silence { process, servers } => {
                let ways = self.parties[process].ways.iter();
                ways.take(servers).for_each(Mute::mute);
            }
            Step::Heal { process } => heal(&self.parties[process].ways),
            Step::Expire { process } => {
                self.parties[process].ways.iter().for_each(Mute::mute);
                self.pass(F::EXPIRY).await?;
                heal(&self.parties[process].ways);
            }
            Step::Pass(time) => self.pass(time).await?,
        }
        self.look().await
    }

    async fn pass(&mut self, time: Duration) -> Result {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let rest = end.saturating_duration_since(Instant::now());
            sleep(rest.min(Duration::from_millis(30))).await;
            self.look().await?;
        }
        Ok(())
    }

    fn release(&mut self, asker: Asker, guard: Guard) {
        if self.fault == Fault::Leak {
            return std::mem::forget(guard);
        }
        let was_lost = guard.is_lost();
        self.seen.extend(was_lost.then_some("a loss"));
        let untold = self.fault == Fault::LossUntold;
        let task = tokio::spawn(async move {
            let released = guard.release().await;
            if untold { Ok(()) } else { released }
        });
        self.releasing.push(Releasing {
            asker,
            was_lost,
            task,
        });
    }

    /// The rules.
    async fn look(&mut self) -> Result {
        self.collect().await?;
        // Lost is lost for good: those that are live here were so at one moment, and all of them when it is asked.
        let held = self.held.iter_mut();
        let mut live: Vec<_> = held.filter(|held| !held.guard.is_lost()).collect();
        if let Some((first, others)) = live.split_first() {
            let other = others
                .iter()
                .find(|other| !other.asker.is_one_with(first.asker));
            ensure!(
                other.is_none(),
                "both hold it: {:?} and {other:?}",
                first.asker
            );
        }
        let shown = self.family.server.shown(&self.name).await;
        for Held {
            asker,
            guard,
            shown: own,
        } in &mut live
        {
            let process = &self.parties[asker.who.process].process;
            let is_there = match (&own, &shown) {
                (Some(own), Some(shown)) => own == shown,
                (None, Some(shown)) => F::is_of(&process.client, guard, shown),
                (_, None) => false,
            };
            if is_there {
                own.clone_from(&shown);
            }
            ensure!(
                is_there || guard.is_lost(),
                "{asker:?} holds {own:?}, and the server shows {shown:?}: it is not there"
            );
        }
        Ok(())
    }

    /// What has come to an end.
    async fn collect(&mut self) -> Result {
        let asked = self.asking.extract_if(.., |asking| asking.1.is_finished());
        for Asking(asker, task) in asked.collect::<Vec<_>>() {
            let guard = match task.await? {
                Ok(guard) => guard,
                Err(LockError::Taken { .. }) => {
                    self.seen.insert("taken");
                    continue;
                }
                Err(LockError::Unavailable { .. } | LockError::Lost { .. }) => {
                    self.seen.insert("no answer");
                    if self.fault != Fault::SilenceIsYes {
                        continue;
                    }
                    let (guard, keeper) = Guard::new(&self.name, None);
                    std::mem::forget(keeper);
                    guard
                }
                Err(error) => bail!("{asker:?} is refused: {error}"),
            };
            self.seen.insert("a hold");
            let is_again = |held: &Held| held.asker.is_one_with(asker) && !held.guard.is_lost();
            let again = self.held.iter().any(is_again);
            self.seen.extend(again.then_some("a re-entry"));
            self.held.push(Held {
                asker,
                guard,
                shown: None,
            });
        }
        let ended = |releasing: &mut Releasing| releasing.task.is_finished();
        for ended in self.releasing.extract_if(.., ended).collect::<Vec<_>>() {
            let (asker, told) = (ended.asker, ended.task.await?);
            let lost = matches!(told, Err(LockError::Lost { .. }));
            let silent = ended.was_lost && !lost;
            ensure!(!silent, "{asker:?} released what it had lost: {told:?}");
            let holds = self.held.iter().any(|held| held.asker.is_one_with(asker));
            if lost && self.fault == Fault::LateRelease && holds {
                let process = &self.parties[asker.who.process].process;
                self.family.take_away(process, &self.name).await;
            }
        }
        Ok(())
    }

    /// All is given back, and every undo has come through.
    async fn end(&mut self) -> Result {
        for party in &self.parties {
            heal(&party.ways);
        }
        for Asking(_, task) in self.asking.drain(..) {
            task.abort();
        }
        let held = std::mem::take(&mut self.held);
        for Held { asker, guard, .. } in held.into_iter().step_by(2) {
            self.release(asker, guard);
        }
        // A waiter of the fair lock that died goes when the next one asks.
        for Party { process, .. } in &self.parties {
            let lock = process.leased(&self.name, Lease::Watchdog(SOON));
            let free = async || lock.acquire(SOON).await.is_ok();
            until("the lock is free when all is over", free).await?;
        }
        self.family.nothing_left(&self.name).await
    }
}

fn heal(ways: &[Mute]) {
    for way in ways {
        way.delay(Duration::ZERO);
        way.heal();
    }
}

pub(super) async fn run<F: Modelled>(
    family: Family<F>,
    fault: Fault,
    steps: &[Step],
) -> Result<Seen> {
    let mut run = Run::new(family, fault).await;
    for step in steps {
        run.step(*step).await?;
    }
    run.end().await?;
    Ok(run.seen)
}
