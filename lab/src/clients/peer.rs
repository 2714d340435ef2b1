//! A process that takes its locks with another library (`interop/`), and the lines that control it.
//!
//! A line is `ID WHO COMMAND…`; WHO is a thread of that process, and so an owner of its own. The answer is `ID ok …`
//! or `ID failed …`, whenever the thread has come so far: a thread that waits for a lock does not hold up the others.

use crate::terminal::failure::{Failure, unusable};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt::{self, Display},
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{
        Mutex as AsyncMutex, mpsc,
        oneshot::{self, error::TryRecvError},
    },
    time::timeout,
};

/// Time limit of a start: a Spring application takes seconds, and up to a minute on a busy machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// A Java process of `interop/`, with its library in one version. Its name is `redisson-3.13.6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Java {
    /// The project, which is the library's name.
    pub library: &'static str,
    pub version: &'static str,
}

impl Display for Java {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.library, self.version)
    }
}

impl Java {
    /// The folder in which `make interop` builds it.
    pub fn folder(self, interop: &Path) -> PathBuf {
        interop.join(self.library).join("target").join(self.version)
    }

    /// Whether the jar is built and no source is newer: its own files, those that all projects share, `pom.xml`.
    pub fn is_built(self, interop: &Path) -> bool {
        let written = |file: &Path| file.metadata().and_then(|file| file.modified()).ok();
        let Some(built) = written(&self.jar(interop)) else {
            return false;
        };
        let project = interop.join(self.library);
        let folders = [project.join("src/main/java/oversell"), interop.join("java/oversell")];
        let sources = folders.iter().filter_map(|folder| folder.read_dir().ok());
        let sources = sources.flatten().flatten().map(|source| source.path());
        let mut all = sources.chain([project.join("pom.xml")]);
        all.all(|source| written(&source).is_none_or(|source| source <= built))
    }

    fn jar(self, interop: &Path) -> PathBuf {
        self.folder(interop).join("peer.jar")
    }

    /// Fails if the project, Maven or a JDK is not here.
    pub async fn check_build_tools(self, interop: &Path) -> Result<(), Failure> {
        let project = interop.join(self.library);
        if !project.join("pom.xml").is_file() {
            return Err(unusable!("there is no {}", project.display()));
        }
        for program in ["javac", "mvn"] {
            let runs = Command::new(program).arg("-version").output().await;
            runs.map_err(|_| unusable!("{program} is not installed"))?;
        }
        Ok(())
    }

    /// Builds it, as the Makefile does, and dates the jar now.
    /// Errors: [`Failure::Unusable`] if Maven fails.
    pub async fn build(self, interop: &Path) -> Result<(), Failure> {
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "package", "-f"]);
        maven.arg(interop.join(self.library));
        maven.arg(format!("-D{}={}", self.library, self.version));
        maven.stdin(Stdio::null()).kill_on_drop(true);
        let built = maven.output().await.map_err(|why| unusable!("{why}"))?;
        let said = String::from_utf8_lossy(&built.stdout);
        match built.status.success() {
            // Maven leaves an old jar if only the project file is newer.
            true => File::open(self.jar(interop))
                .and_then(|jar| jar.set_modified(SystemTime::now()))
                .map_err(|why| unusable!("{}: {why}", self.jar(interop).display())),
            false => Err(unusable!("Maven: {}", said.lines().next().unwrap_or_default())),
        }
    }

    /// The `java` command that starts it; the caller adds the servers' addresses as arguments.
    pub fn command(self, interop: &Path) -> Command {
        let folder = self.folder(interop);
        let folder = folder.display();
        let mut java = Command::new("java");
        // It lives for seconds: quick to start, and quiet beside others.
        java.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        java.arg("-cp").arg(format!("{folder}/peer.jar:{folder}/lib/*"));
        java.arg("oversell.Peer");
        java
    }
}

/// Where the answer of each unanswered command goes, by the command's number; `None` once the process has ended.
type PendingAnswers = Arc<Mutex<Option<HashMap<String, oneshot::Sender<Result<String, String>>>>>>;

/// A process that executes commands on stdin. Dropping it kills it.
#[derive(Debug)]
pub struct Peer {
    name: String,
    child: AsyncMutex<Child>,
    id: Option<u32>,
    lines: mpsc::UnboundedSender<String>,
    pending: PendingAnswers,
    next: AtomicU64,
}

/// The answer to a command, which may not have come yet. Dropping it does not stop the command.
#[derive(Debug)]
pub struct PendingAnswer {
    what: String,
    answer: oneshot::Receiver<Result<String, String>>,
}

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{what}: {why}")]
    Failed { what: String, why: String },
    /// The process ended while the command waited for its answer.
    #[error("{0}: the process has ended (see its log)")]
    Ended(String),
    #[error("{0} was not answered within {1:?}")]
    Unanswered(String, Duration),
}

impl Peer {
    /// Starts this program with its stderr in `log`, and waits until it has connected.
    /// Errors: [`Failure::Unusable`] if it does not start, or does not answer in time.
    pub async fn start(name: impl Display, mut program: Command, log: &Path) -> Result<Self, Failure> {
        let log = File::create(log).map_err(|why| unusable!("{}: {why}", log.display()))?;
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|why| unusable!("{name} does not start: {why}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| unusable!("{name} has no pipes"))?;
        let (lines, to_write) = mpsc::unbounded_channel();
        let pending = PendingAnswers::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(write_commands(stdin, to_write));
        tokio::spawn(read_answers(BufReader::new(stdout).lines(), Arc::clone(&pending)));
        let peer = Self {
            name: name.to_string(),
            id: child.id(),
            child: AsyncMutex::new(child),
            lines,
            pending,
            next: AtomicU64::default(),
        };
        let connected = peer.send_command("bystander", "ping").wait_at_most(CONNECT_TIMEOUT).await;
        connected.map_err(|why| unusable!("{why}"))?;
        Ok(peer)
    }

    /// A name `thread-N` that this process has not used yet.
    pub fn new_thread(&self) -> String {
        format!("thread-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The process's id in the operating system, also after its end.
    pub const fn id(&self) -> Option<u32> {
        self.id
    }

    /// Sends a command to the thread `who`, which begins with its first command, and does not wait for the answer.
    /// After the end of the process the answer is [`CallError::Ended`].
    pub fn send_command(&self, who: &str, command: impl Display) -> PendingAnswer {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let line = format!("{id} {who} {command}\n");
        let (reply, answer) = oneshot::channel();
        if let Some(pending) = &mut *self.pending.lock() {
            pending.insert(id, reply);
        }
        // It fails if the process has ended.
        self.lines.send(line).ok();
        let what = format!("{}'s `{command}`", self.name);
        PendingAnswer { what, answer }
    }

    /// Kills the process (`kill -9`), and waits until it is gone.
    pub async fn stop(&self) {
        self.child.lock().await.kill().await.ok();
    }
}

impl PendingAnswer {
    /// The answer, or [`CallError::Ended`] if the process ended meanwhile; `None` before that. A call after the one that returned
    /// the answer returns [`CallError::Ended`].
    pub fn take_if_ready(&mut self) -> Option<Result<String, CallError>> {
        match self.answer.try_recv() {
            Err(TryRecvError::Empty) => None,
            Ok(answer) => Some(Self::answer_of(&self.what, Some(answer))),
            Err(TryRecvError::Closed) => Some(Self::answer_of(&self.what, None)),
        }
    }

    /// Waits for the answer.
    /// Errors: [`CallError`] if the command failed, the process ended meanwhile, or there is no answer within `limit`; then the
    /// command goes on.
    pub async fn wait_at_most(self, limit: Duration) -> Result<String, CallError> {
        match timeout(limit, self.answer).await {
            Ok(answer) => Self::answer_of(&self.what, answer.ok()),
            Err(_) => Err(CallError::Unanswered(self.what, limit)),
        }
    }

    /// The answer to a command; the error if it failed, or if the process has ended (`None`).
    fn answer_of(what: &str, answer: Option<Result<String, String>>) -> Result<String, CallError> {
        let what = what.to_owned();
        match answer {
            Some(answer) => answer.map_err(|why| CallError::Failed { what, why }),
            None => Err(CallError::Ended(what)),
        }
    }
}

/// Writes each line to stdin, until the [`Peer`] is dropped or the process has ended.
async fn write_commands(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Hands each answer to its command, and ignores other lines. When the process ends, the pending answers are
/// [`CallError::Ended`].
async fn read_answers(mut lines: Lines<BufReader<ChildStdout>>, pending: PendingAnswers) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut words = line.splitn(3, ' ');
        let (id, outcome, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
        if let Some(reply) = id.and_then(|id| pending.lock().as_mut()?.remove(id)) {
            let rest = rest.to_owned();
            let answer = if outcome == Some("ok") { Ok(rest) } else { Err(rest) };
            reply.send(answer).ok();
        }
    }
    *pending.lock() = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_after_the_end_of_the_process_is_told_so() {
        let mut program = Command::new("sh");
        program.args(["-c", "while read -r id rest; do echo \"$id ok\"; done"]);
        let log = tempfile::NamedTempFile::new().unwrap();
        let peer = Peer::start("sh", program, log.path()).await.unwrap();
        peer.stop().await;
        // The second is sent when the end is known in any case.
        for command in ["one", "another"] {
            let answer = peer.send_command("thread-1", command);
            let answer = answer.wait_at_most(CONNECT_TIMEOUT).await;
            assert!(matches!(answer, Err(CallError::Ended(_))), "{answer:?}");
        }
    }
}
