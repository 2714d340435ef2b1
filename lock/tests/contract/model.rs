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

use super::{
    family::{Ask, Contender, Family, Server},
    mute::Mute,
    support::*,
};
use oversell_lock::{Guard, Lease, Lock, LockError, Owner};
use std::{ops::AddAssign, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

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

/// How often programs came to what they are to come to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) holds: u32,
    pub(super) again: u32,
    pub(super) taken: u32,
    pub(super) unanswered: u32,
    pub(super) lost: u32,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.holds += other.holds;
        self.again += other.again;
        self.taken += other.taken;
        self.unanswered += other.unanswered;
        self.lost += other.lost;
    }
}

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

struct Asking(Asker, JoinHandle<Result<Guard, LockError>>);

struct Held {
    asker: Asker,
    guard: Guard,
    /// What the server showed when the guard was taken.
    shown: Option<String>,
}

struct Releasing {
    asker: Asker,
    was_lost: bool,
    task: JoinHandle<Result<(), LockError>>,
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
            let ways: Result<Vec<_>, _> =
                family.server.servers().into_iter().map(Mute::to).collect();
            let ways = ways.expect("free ports");
            let addresses: Vec<_> = ways.iter().map(Mute::address).collect();
            let process = family.of(family.server.client_over(&addresses).await);
            Party {
                owners: [process.owner(), process.owner()],
                process,
                ways,
            }
        };
        let parties = [party().await, party().await];
        let (asking, held, releasing) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            family,
            fault,
            name: name(),
            parties,
            asking,
            held,
            releasing,
            asked: 0,
            seen: Seen::default(),
        }
    }

    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Ask { who, lease, wait } => {
                self.asked += 1;
                let Party {
                    process, owners, ..
                } = &self.parties[who.process];
                let owner = if self.fault == Fault::OneOwner {
                    Some(0)
                } else {
                    who.owner
                };
                let ask = Ask {
                    owner: owner.map(|owner| owners[owner]),
                    lease: Some(lease),
                };
                let lock = process.asked(&self.name, ask);
                let task =
                    tokio::spawn(async move { lock.acquire(Duration::from_millis(wait)).await });
                self.asking.push(Asking(
                    Asker {
                        who,
                        number: self.asked,
                    },
                    task,
                ));
            }
            Step::GoAway(n) => drop(take(&mut self.asking, n).map(|Asking(_, task)| task.abort())),
            Step::Release(n) => {
                if let Some(Held { asker, guard, .. }) = take(&mut self.held, n) {
                    self.release(asker, guard);
                }
            }
            Step::Drop(n) => drop(take(&mut self.held, n)),
            Step::Late { process, by } => {
                self.parties[process]
                    .ways
                    .iter()
                    .for_each(|way| way.delay(Duration::from_millis(by)));
            }
            Step::Silence { process, servers } => {
                self.parties[process]
                    .ways
                    .iter()
                    .take(servers)
                    .for_each(Mute::mute);
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

    async fn pass(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(
                end.saturating_duration_since(Instant::now())
                    .min(Duration::from_millis(30)),
            )
            .await;
            self.look().await?;
        }
        Ok(())
    }

    fn release(&mut self, asker: Asker, guard: Guard) {
        if self.fault == Fault::Leak {
            return std::mem::forget(guard);
        }
        let was_lost = guard.is_lost();
        self.seen.lost += u32::from(was_lost);
        let is_told = self.fault != Fault::LossUntold;
        let task = tokio::spawn(async move {
            guard
                .release()
                .await
                .or_else(|e| if is_told { Err(e) } else { Ok(()) })
        });
        self.releasing.push(Releasing {
            asker,
            was_lost,
            task,
        });
    }

    /// The rules.
    async fn look(&mut self) -> Result<()> {
        self.collect().await?;
        // Lost is lost for good: those that are live here were so at one moment, and all of them when it is asked.
        let mut live: Vec<_> = self
            .held
            .iter_mut()
            .filter(|held| !held.guard.is_lost())
            .collect();
        if let Some((first, others)) = live.split_first()
            && let Some(other) = others
                .iter()
                .find(|other| !other.asker.is_one_with(first.asker))
        {
            bail!("both hold it: {:?} and {:?}", first.asker, other.asker);
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
    async fn collect(&mut self) -> Result<()> {
        for Asking(asker, task) in self
            .asking
            .extract_if(.., |asking| asking.1.is_finished())
            .collect::<Vec<_>>()
        {
            let guard = match task.await? {
                Ok(guard) => guard,
                Err(LockError::Taken { .. }) => {
                    self.seen.taken += 1;
                    continue;
                }
                Err(LockError::Unavailable { .. } | LockError::Lost { .. }) => {
                    self.seen.unanswered += 1;
                    if self.fault != Fault::SilenceIsYes {
                        continue;
                    }
                    let (guard, keeper) = Guard::new(&self.name, None);
                    std::mem::forget(keeper);
                    guard
                }
                Err(error) => bail!("{asker:?} is refused: {error}"),
            };
            self.seen.holds += 1;
            let is_again = |held: &Held| held.asker.is_one_with(asker) && !held.guard.is_lost();
            self.seen.again += u32::from(self.held.iter().any(is_again));
            self.held.push(Held {
                asker,
                guard,
                shown: None,
            });
        }
        let released: Vec<_> = self
            .releasing
            .extract_if(.., |releasing| releasing.task.is_finished())
            .collect();
        for Releasing {
            asker,
            was_lost,
            task,
        } in released
        {
            let told = task.await?;
            let lost = matches!(told, Err(LockError::Lost { .. }));
            ensure!(
                lost || !was_lost,
                "{asker:?} released what it had lost: {told:?}"
            );
            if lost
                && self.fault == Fault::LateRelease
                && self.held.iter().any(|held| held.asker.is_one_with(asker))
            {
                self.family
                    .take_away(&self.parties[asker.who.process].process, &self.name)
                    .await;
            }
        }
        Ok(())
    }

    /// All is given back, and every undo has come through.
    async fn end(&mut self) -> Result<()> {
        for party in &self.parties {
            heal(&party.ways);
        }
        self.asking
            .drain(..)
            .for_each(|Asking(_, task)| task.abort());
        for (n, Held { asker, guard, .. }) in std::mem::take(&mut self.held).into_iter().enumerate()
        {
            if n % 2 == 0 {
                self.release(asker, guard);
            }
        }
        // A waiter of the fair lock that died goes when the next one asks.
        for Party { process, .. } in &self.parties {
            until("the lock is free when all is over", || async {
                let lock = process.leased(&self.name, Lease::Watchdog(SOON));
                lock.acquire(SOON).await.is_ok()
            })
            .await?;
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
