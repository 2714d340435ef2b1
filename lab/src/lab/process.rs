//! A process of the lab. It and its children end with the lab, even if the lab is killed with -9.
//!
//! Three things ensure this, without unsafe code:
//! - The process leads its own process group. So a signal reaches all its descendants, and the terminal's Ctrl-C
//!   reaches none of them: the lab stops them in order.
//! - It is started through `setpriv --pdeathsig`, so the kernel ends it when its parent dies. For the kernel the parent
//!   is the *thread* that forked, and a worker thread of an async runtime may end at any time. Therefore each process
//!   has a thread that starts it and waits for it.
//! - That thread sees the exit before it reaps the process (`WNOWAIT`). Until then the pid cannot be reused, so the
//!   rest of the group can be killed without hitting another process.

use super::user::User;
use crate::terminal::failure::{Failure, unusable};
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

/// The lines of the log that an error shows: an error and what led to it, on half a screen.
const TAIL_LINES: usize = 12;
/// Below this the error warns of a full disk: a new MariaDB alone writes 96 MB for its log.
const LOW_DISK_SPACE_BYTES: u64 = 128 << 20;
/// Time limit of the end of a killed process group.
const GROUP_EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often it is checked: a killed group vanishes in a few milliseconds.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How far a process is on the way to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProcessState {
    Running,
    /// It has exited and will be reaped; after that its pid may be reused.
    Ended,
    /// The process was reaped; its group is gone, or has outlived [`GROUP_EXIT_TIMEOUT`].
    Gone(ExitResult),
}

/// The exit status of a process that is gone; `None` if it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitResult(Option<ExitStatus>);

impl ExitResult {
    /// Whether the exit status is 0; false if it is not known.
    pub(super) fn is_success(self) -> bool {
        self.0.is_some_and(|status| status.success())
    }
}

impl fmt::Display for ExitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => status.fmt(f),
            None => f.write_str("exit status unknown"),
        }
    }
}

/// What to start, and where its output goes.
pub(super) struct ProcessSpec<'a> {
    pub(super) name: &'a str,
    pub(super) command: &'a Command,
    /// The signal for the process if the lab dies.
    pub(super) death_signal: &'a str,
    pub(super) user: User,
    pub(super) log: &'a Path,
    /// Receives the lines of stdout, which then do not go to the log.
    pub(super) console: Option<ConsoleLineHandler>,
}

/// Is called with each line of a process's stdout.
pub(super) type ConsoleLineHandler = Box<dyn Fn(String) + Send>;

/// A started process. Dropping it kills it and its children, and blocks until they are gone.
#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    log: PathBuf,
    state: watch::Receiver<ProcessState>,
    reaper: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the process; its output is added to the log. It blocks for the millisecond of a fork, so that no caller can be
    /// cancelled between the start and the `Process`.
    pub(super) fn spawn(spec: ProcessSpec<'_>) -> Result<Self, Failure> {
        let (name, console) = (spec.name, spec.console);
        let failed = |e: std::io::Error| unusable!("{name} cannot be started: {e}");
        let output = OpenOptions::new().create(true).append(true).open(spec.log).map_err(failed)?;
        let mut command = with_setpriv(spec.command, spec.death_signal, spec.user);
        command.process_group(0).stdin(Stdio::null());
        match console {
            Some(_) => command.stdout(Stdio::piped()),
            None => command.stdout(output.try_clone().map_err(failed)?),
        };
        command.stderr(output);
        let (started, starting) = mpsc::channel();
        let (sender, state) = watch::channel(ProcessState::Running);
        let reaper = std::thread::Builder::new()
            .name(format!("lab {name}"))
            .spawn(move || {
                let started = |start| started.send(start).is_ok();
                match command.spawn() {
                    Ok(mut child) => {
                        let pid = Pid::from_raw(child.id().cast_signed());
                        started(Ok(pid));
                        if let (Some(lines), Some(console)) = (child.stdout.take(), console) {
                            std::thread::spawn(move || forward_lines(lines, &console));
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
            Ok(Ok(pid)) => Ok(Self { pid, log: spec.log.to_owned(), state, reaper: Some(reaper) }),
            Ok(Err(e)) => Err(failed(e)),
            Err(_) => Err(unusable!("{name} cannot be started")),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Whether it has not exited; a stopped process runs too.
    pub(super) fn is_running(&self) -> bool {
        *self.state.borrow() == ProcessState::Running
    }

    /// Whether a signal such as SIGSTOP has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The program's name comes before, in brackets, and may contain any character.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    /// Signals the process and its children; does nothing if the process has ended.
    pub(super) fn signal_group(&self, signal: Signal) {
        self.signal(signal, killpg);
    }

    /// Signals by `send`: `kill` means the process, `killpg` its group too. Does nothing if the process has ended.
    fn signal(&self, signal: Signal, send: fn(Pid, Option<Signal>) -> nix::Result<()>) {
        // The borrow is a read lock: the thread that reaps cannot go on meanwhile, so the pid is still this process's.
        let state = self.state.borrow();
        if *state == ProcessState::Running {
            ignore_gone(send(self.pid, Some(signal)));
        }
    }

    /// Waits until the process has ended and its children are gone, for the children [`GROUP_EXIT_TIMEOUT`] at most; does not borrow
    /// the process meanwhile.
    pub(super) fn wait_until_gone(&self) -> impl Future<Output = ExitResult> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            match state.wait_for(|s| matches!(s, ProcessState::Gone(_))).await.as_deref() {
                Ok(ProcessState::Gone(end)) => *end,
                _ => ExitResult(None),
            }
        }
    }

    /// Sends the process SIGTERM, resumes a paused group, waits for `grace`, then kills the group; kills at once if `grace` is
    /// zero. Returns once it is gone.
    pub(super) async fn stop(&self, grace: Duration) {
        if !grace.is_zero() {
            self.signal(Signal::SIGTERM, kill);
            self.signal_group(Signal::SIGCONT);
            if tokio::time::timeout(grace, self.wait_until_gone()).await.is_ok() {
                return;
            }
        }
        self.signal_group(Signal::SIGKILL);
        self.wait_until_gone().await;
    }

    /// The last lines of its log, and a note if the disk is nearly full.
    pub(super) fn log_tail(&self) -> String {
        let left = statvfs(&self.log).map(|disk| disk.blocks_available() * disk.fragment_size());
        let full = match left {
            Ok(left) if left < LOW_DISK_SPACE_BYTES => {
                format!("its disk has only {} MB left; ", left >> 20)
            }
            _ => String::new(),
        };
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("{full}the end of {}:\n  {}", self.log.display(), last.join("\n  "))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal_group(Signal::SIGKILL);
        if let Some(reaper) = self.reaper.take() {
            // A thread that panicked has nothing left to wait for.
            drop(reaper.join());
        }
    }
}

/// The same command through `setpriv`, which execs it and so keeps the pid.
fn with_setpriv(command: &Command, death_signal: &str, user: User) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped
        .args(user.setpriv_options())
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

/// Forwards lines to the console until the last writer is gone.
fn forward_lines(lines: ChildStdout, console: &ConsoleLineHandler) {
    BufReader::new(lines).split(b'\n').map_while(Result::ok).for_each(|line| {
        console(String::from_utf8_lossy(&line).into_owned());
    });
}

/// Waits for the exit, then kills the rest of the group and waits until it is gone; reports each step in `state`.
fn reap(mut child: Child, pid: Pid, state: &watch::Sender<ProcessState>) {
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    ignore_gone(killpg(pid, Signal::SIGKILL));
    state.send_replace(ProcessState::Ended);
    let end = ExitResult(child.wait().ok());
    let mut waited = Duration::ZERO;
    while killpg(pid, None).is_ok() && waited < GROUP_EXIT_TIMEOUT {
        std::thread::sleep(GROUP_POLL_INTERVAL);
        waited += GROUP_POLL_INTERVAL;
    }
    state.send_replace(ProcessState::Gone(end));
}

/// Ignores the error for a process that is gone already.
fn ignore_gone(signalled: nix::Result<()>) {
    if let Err(error) = signalled
        && error != Errno::ESRCH
    {
        tracing::warn!(%error, "a process of the lab cannot be signalled");
    }
}
