//! What is measured, of which libraries, and what a process answers.

use anyhow::{Context, Error, Result, bail};
use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::process::Command;

/// The most processes of one scene.
pub(crate) const PROCESSES: usize = 3;

/// How long contenders that repeat are measured.
const MEASURED_TIME: Duration = Duration::from_millis(400);

/// How often a lock is handed over in one measurement.
const HAND_OFFS: usize = 20;

/// The permits of a semaphore.
pub(crate) const PERMITS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Library {
    /// The scripts alone, by the same Redis client.
    Bare,
    Ours,
    Rslock,
    Redlock,
    RedisPy,
}

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Lock,
    Read,
    Write,
    /// Of ten contenders nine read and one writes.
    ReadWrite,
    /// One of [`PERMITS`].
    Semaphore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scene {
    /// One client, and nobody else.
    Alone(Kind),
    /// All arrive at once, and each takes it once.
    Burst { kind: Kind, contenders: usize, processes: usize },
    /// Each takes it again and again.
    Loop { kind: Kind, contenders: usize, processes: usize },
    /// From a release to the acquire of another client, which waits.
    HandOff,
}

/// What a process answers: four numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measurement {
    /// How often it was acquired and released.
    pub(crate) holds: u64,
    pub(crate) time: Duration,
    pub(crate) allocations: u64,
}

/// What acquiring and releasing once costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) round_trips: f64,
    /// `None` for another language.
    pub(crate) allocations: Option<f64>,
}

impl Library {
    pub(crate) const ALL: [Self; 5] = [Self::Bare, Self::Ours, Self::Rslock, Self::Redlock, Self::RedisPy];

    fn venv() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop/redis-py/venv")
    }

    /// Why it cannot be measured here.
    pub(crate) fn why_missing(self) -> Option<&'static str> {
        let missing = self == Self::RedisPy && !Self::venv().join("installed").is_file();
        missing.then_some("interop/redis-py/venv is not there; `make lockbench` makes it if python3 has the module venv")
    }

    /// The process with redis-py.
    pub(crate) fn python(self) -> Command {
        let venv = Self::venv();
        let mut python = Command::new(venv.join("bin/python"));
        python.arg(venv.with_file_name("peer.py"));
        python
    }
}

fn find<T: Copy + Display>(all: &[T], name: &str) -> Result<T> {
    let mut all = all.iter().copied();
    all.find(|one| one.to_string() == name).with_context(|| format!("there is no {name}"))
}

impl Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bare => "scripts",
            Self::Ours => "oversell-lock",
            Self::Rslock => "rslock",
            Self::Redlock => "redlock-rs",
            Self::RedisPy => "redis-py",
        })
    }
}

impl FromStr for Library {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find(&Self::ALL, name)
    }
}

impl Kind {
    const ALL: [Self; 5] = [Self::Lock, Self::Read, Self::Write, Self::ReadWrite, Self::Semaphore];

    /// What this contender takes.
    pub(crate) const fn of(self, contender: usize) -> Self {
        match self {
            Self::ReadWrite if contender.is_multiple_of(10) => Self::Write,
            Self::ReadWrite => Self::Read,
            same => same,
        }
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read-write",
            Self::Semaphore => "semaphore",
        })
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find(&Self::ALL, name)
    }
}

impl Scene {
    /// What all ratios are to.
    pub(crate) const BASE: Self = Self::Alone(Kind::Lock);

    /// In the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::BASE];
        let crowds = [(10, 1), (10, 3), (100, 1), (100, 3)];
        let kind = Kind::Lock;
        all.extend(crowds.map(|(contenders, processes)| Self::Burst { kind, contenders, processes }));
        all.extend(crowds.map(|(contenders, processes)| Self::Loop { kind, contenders, processes }));
        all.push(Self::HandOff);
        all.extend([Kind::Read, Kind::Write, Kind::Semaphore].map(Self::Alone));
        let of_ours = [Kind::Read, Kind::ReadWrite, Kind::Semaphore];
        all.extend(of_ours.map(|kind| Self::Loop { kind, contenders: 100, processes: 1 }));
        all
    }

    /// Those of which round trips and allocations are counted.
    pub(crate) fn counted() -> Vec<Self> {
        let crowded = |scene: &Self| matches!(scene, Self::Loop { kind: Kind::Lock, contenders: 100, .. });
        let alone = |scene: &Self| matches!(scene, Self::Alone(_));
        Self::all().into_iter().filter(|scene| alone(scene) || crowded(scene)).collect()
    }

    /// The others have one kind of lock, and the scripts have no contenders.
    pub(crate) fn has(self, library: Library) -> bool {
        match (library, self) {
            (Library::Ours, _) | (_, Self::BASE) => true,
            (Library::Bare, _) => false,
            (_, Self::Alone(kind) | Self::Burst { kind, .. } | Self::Loop { kind, .. }) => kind == Kind::Lock,
            (_, Self::HandOff) => true,
        }
    }

    /// What each process is told, with a name that no other scene has.
    pub(crate) fn commands(self) -> Vec<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("bench-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (kind, contenders, processes, time) = match self {
            Self::HandOff => return vec![format!("hand-off {name} {HAND_OFFS}")],
            Self::Alone(kind) => (kind, 1, 1, MEASURED_TIME),
            Self::Burst { kind, contenders, processes } => (kind, contenders, processes, Duration::ZERO),
            Self::Loop { kind, contenders, processes } => (kind, contenders, processes, MEASURED_TIME),
        };
        let millis = time.as_millis();
        (0..processes)
            .map(|process| {
                let of_process = contenders / processes + usize::from(process < contenders % processes);
                format!("contend {kind} {name} {of_process} {millis}")
            })
            .collect()
    }
}

impl Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_processes = |processes: &usize| match processes {
            1 => "one process".to_owned(),
            n => format!("{n} processes"),
        };
        match self {
            Self::Alone(kind) => write!(f, "{kind}: one client, nobody else"),
            Self::Burst { kind, contenders, processes } => {
                write!(f, "{kind}: {contenders} at once, each once, {}", in_processes(processes))
            }
            Self::Loop { kind, contenders, processes } => {
                write!(f, "{kind}: {contenders} again and again, {}", in_processes(processes))
            }
            Self::HandOff => write!(f, "lock: from a release to another client's acquire"),
        }
    }
}

impl Measurement {
    /// Both together, which began at the same time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            holds: self.holds + other.holds,
            time: self.time.max(other.time),
            allocations: self.allocations + other.allocations,
        }
    }

    /// Holds in a second.
    pub(crate) fn rate(self) -> f64 {
        self.holds as f64 / self.time.as_secs_f64()
    }

    pub(crate) fn costs(self, round_trips: u64, library: Library) -> Costs {
        let each = |count: u64| count as f64 / self.holds as f64;
        Costs { round_trips: each(round_trips), allocations: (library != Library::RedisPy).then(|| each(self.allocations)) }
    }
}

impl Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.holds, self.time.as_nanos(), self.allocations)
    }
}

impl FromStr for Measurement {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let numbers = line.split(' ').map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        let [holds, nanos, allocations] = numbers[..] else {
            bail!("three numbers were expected: {line}");
        };
        Ok(Self { holds, time: Duration::from_nanos(nanos), allocations })
    }
}
