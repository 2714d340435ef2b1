//! A process of the lab: it and its children end when the lab does, even if the lab is killed with -9.
//!
//! Three things see to it, and none needs unsafe code:
//! - It leads a process group of its own, so a signal reaches its children's children as well, and the terminal's
//!   Ctrl-C reaches none of them: the lab stops them in order.
//! - It is started through `setpriv --pdeathsig`, so the kernel ends it when its parent dies. The parent, for the
//!   kernel, is the *thread* that forked, and a worker thread of an async runtime may end at any time: therefore each
//!   process has a thread of its own that starts it, waits for it, and so lives just as long.
//! - That thread sees the end before it collects it (`WNOWAIT`). Until it is collected its number cannot be given to
//!   another process or group, so what is left of the group can be killed without hitting a stranger.

use super::user::User;
use crate::failure::{Failure, unusable};
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill, killpg},
        statvfs::statvfs,
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use std::{
    fmt,
    fs::OpenOptions,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::watch;

/// How much of a log an error shows.
const TAIL_LINES: usize = 12;
/// Fewer bytes than this are little: a new MariaDB alone writes 96 MB for its log.
const LOW_DISK_SPACE: u64 = 128 << 20;
/// How long the rest of a group may take to vanish after SIGKILL.
const GROUP_EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Running,
    /// It has ended; its number is about to be free for others.
    Ended,
    /// Neither it nor any child is left; how it ended.
    Gone(ExitResult),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitResult(Option<ExitStatus>);

impl ExitResult {
    pub(super) fn is_success(self) -> bool {
        self.0.is_some_and(|status| status.success())
    }
}

impl fmt::Display for ExitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => status.fmt(f),
            None => f.write_str("nobody knows how"),
        }
    }
}

/// What to start, and how.
pub(super) struct ProcessSpec<'a> {
    pub(super) name: &'a str,
    pub(super) command: &'a Command,
    /// The signal that it gets if the lab dies.
    pub(super) death_signal: &'a str,
    pub(super) user: User,
    /// The file that its output is appended to.
    pub(super) log: &'a Path,
    /// Where the lines of its stdout go in place of the log.
    pub(super) console: Option<Console>,
}

/// Where an instance's lines go.
pub(super) type Console = Box<dyn Fn(String) + Send>;

/// A process that was started, and is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    log: PathBuf,
    state: watch::Receiver<State>,
    reaper: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts it. It blocks for the millisecond that a fork takes, so that no caller can be cancelled between the start
    /// and the `Process`.
    pub(super) fn spawn(spec: ProcessSpec<'_>) -> Result<Self, Failure> {
        let (name, console) = (spec.name, spec.console);
        let failed = |e: std::io::Error| unusable!("{name} cannot be started: {e}");
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(spec.log)
            .map_err(failed)?;
        let mut command = with_setpriv(spec.command, spec.death_signal, spec.user);
        command.process_group(0).stdin(Stdio::null());
        match console {
            Some(_) => command.stdout(Stdio::piped()),
            None => command.stdout(output.try_clone().map_err(failed)?),
        };
        command.stderr(output);
        let (started, starting) = mpsc::channel();
        let (sender, state) = watch::channel(State::Running);
        let reaper = std::thread::Builder::new()
            .name(format!("lab {name}"))
            .spawn(move || {
                let started = |start| started.send(start).is_ok();
                match command.spawn() {
                    Ok(mut child) => {
                        let pid = pid_of(&child);
                        started(Ok(pid));
                        if let (Some(lines), Some(console)) = (child.stdout.take(), console) {
                            std::thread::spawn(move || forward(lines, &console));
                        }
                        reap(child, pid, &sender);
                    }
                    Err(e) => {
                        started(Err(e));
                    }
                }
            })
            .map_err(failed)?;
        match starting.recv() {
            Ok(Ok(pid)) => Ok(Self {
                pid,
                log: spec.log.to_owned(),
                state,
                reaper: Some(reaper),
            }),
            Ok(Err(e)) => Err(failed(e)),
            Err(_) => Err(unusable!("{name} cannot be started")),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    pub(super) fn is_running(&self) -> bool {
        *self.state.borrow() == State::Running
    }

    /// Whether it was stopped by a signal, whosever it was.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The name of the program stands before, in brackets, and may have any characters.
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    /// Signals it and its children, if it still runs.
    pub(super) fn signal_all(&self, signal: Signal) {
        self.signal(signal, killpg);
    }

    fn signal(&self, signal: Signal, send: fn(Pid, Option<Signal>) -> nix::Result<()>) {
        // The borrow is a lock: while it is held the reaper cannot get to collecting the process, so the number is ours.
        let state = self.state.borrow();
        if *state == State::Running {
            ignore_gone(send(self.pid, Some(signal)));
        }
    }

    /// Waits until neither it nor a child is left; says how it ended.
    pub(super) async fn wait_until_gone(&self) -> ExitResult {
        self.when_gone().await
    }

    /// The same, for one that does not want to hold on to the process.
    pub(super) fn when_gone(&self) -> impl Future<Output = ExitResult> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            match state
                .wait_for(|s| matches!(s, State::Gone(_)))
                .await
                .as_deref()
            {
                Ok(State::Gone(end)) => *end,
                _ => ExitResult(None),
            }
        }
    }

    /// Asks it to end (SIGTERM), waits for `grace`, then kills it; a paused one is woken for it.
    pub(super) async fn stop(&self, grace: Duration) {
        if !grace.is_zero() {
            self.signal(Signal::SIGTERM, kill);
            self.signal_all(Signal::SIGCONT);
            if tokio::time::timeout(grace, self.wait_until_gone())
                .await
                .is_ok()
            {
                return;
            }
        }
        self.signal_all(Signal::SIGKILL);
        self.wait_until_gone().await;
    }

    /// The last lines of what it wrote, and whether its disk is nearly full.
    pub(super) fn tail(&self) -> String {
        let left = statvfs(&self.log).map(|disk| disk.blocks_available() * disk.fragment_size());
        let full = match left {
            Ok(left) if left < LOW_DISK_SPACE => {
                format!("its disk has only {} MB left; ", left >> 20)
            }
            _ => String::new(),
        };
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!(
            "{full}the end of {}:\n  {}",
            self.log.display(),
            last.join("\n  ")
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal_all(Signal::SIGKILL);
        if let Some(reaper) = self.reaper.take() {
            // A reaper that panicked has no process any more to wait for.
            drop(reaper.join());
        }
    }
}

/// The same command, started through `setpriv`, which becomes it: same pid.
fn with_setpriv(command: &Command, death_signal: &str, user: User) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped
        .args(user.options())
        .args(["--pdeathsig", death_signal, "--"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(key, value),
            None => wrapped.env_remove(key),
        };
    }
    wrapped
}

/// Hands on each line until there is no writer left.
fn forward(lines: ChildStdout, console: &Console) {
    BufReader::new(lines)
        .split(b'\n')
        .map_while(Result::ok)
        .for_each(|line| {
            console(String::from_utf8_lossy(&line).into_owned());
        });
}

/// Waits for the end of the process and sees the rest of its group off.
fn reap(mut child: Child, pid: Pid, state: &watch::Sender<State>) {
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    ignore_gone(killpg(pid, Signal::SIGKILL));
    state.send_replace(State::Ended);
    let end = ExitResult(child.wait().ok());
    let mut waited = Duration::ZERO;
    while killpg(pid, None).is_ok() && waited < GROUP_EXIT_TIMEOUT {
        std::thread::sleep(GROUP_POLL_INTERVAL);
        waited += GROUP_POLL_INTERVAL;
    }
    state.send_replace(State::Gone(end));
}

fn pid_of(child: &Child) -> Pid {
    // A Linux pid is at most 4194304.
    Pid::from_raw(child.id().cast_signed())
}

/// A process that has just gone cannot be signalled, and need not be.
fn ignore_gone(signalled: nix::Result<()>) {
    if let Err(error) = signalled
        && error != Errno::ESRCH
    {
        tracing::warn!(%error, "a process of the lab cannot be signalled");
    }
}
