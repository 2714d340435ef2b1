//! A process that takes its locks with somebody else's library (`interop/`), and the lines that tell it what to do.
//!
//! A line is `ID WHO COMMAND…`; WHO is a thread of that process, and so an owner of its own. The answer is `ID ok …`
//! or `ID failed …`, whenever the thread has come so far: a thread that waits for a lock does not hold up the others.

use super::support::{Context, HANGS, Result, SOON, bail, ensure};
use anyhow::anyhow;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt::{self, Display},
    fs::File,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
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

/// Whose locks the process takes; `make interop` builds these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// In this version.
    Redisson(&'static str),
    Curator,
    Kazoo,
}

impl Library {
    /// Redisson as the course has it, and the newest.
    pub(crate) const ALL: [Self; 4] = [
        Self::Redisson("3.13.6"),
        Self::Redisson("4.7.0"),
        Self::Curator,
        Self::Kazoo,
    ];

    /// The folder of what is built, what shows that it is, and the program that is run from there.
    fn built(self) -> (String, &'static str, Command) {
        let interop = concat!(env!("CARGO_MANIFEST_DIR"), "/../interop");
        let java = |built| {
            let folder = format!("{interop}/{built}");
            let mut java = Command::new("java");
            java.args(["-Xmx256m", "-cp"])
                .arg(format!("{folder}/peer.jar:{folder}/lib/*"))
                .arg("oversell.Peer");
            (folder, "peer.jar", java)
        };
        match self {
            Self::Redisson(version) => java(format!("redisson/target/{version}")),
            Self::Curator => java("curator/target/5.9.0".to_owned()),
            Self::Kazoo => {
                let folder = format!("{interop}/kazoo/venv");
                let mut python = Command::new(format!("{folder}/bin/python"));
                python.arg(format!("{interop}/kazoo/peer.py"));
                (folder, "installed", python)
            }
        }
    }
}

impl Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redisson(version) => write!(f, "redisson-{version}"),
            Self::Curator => f.write_str("curator"),
            Self::Kazoo => f.write_str("kazoo"),
        }
    }
}

type Asked = Arc<Mutex<HashMap<String, oneshot::Sender<Result<String>>>>>;

/// The process. Dropping it kills it.
pub(crate) struct Peer {
    pub(crate) library: Library,
    child: AsyncMutex<Child>,
    lines: mpsc::UnboundedSender<String>,
    asked: Asked,
    next: AtomicU64,
}

/// An answer that has not come yet.
pub(crate) struct Pending {
    what: String,
    answer: oneshot::Receiver<Result<String>>,
}

impl Peer {
    /// Starts it, with `log` as the name of its log beside what was built; it answers once it has connected.
    pub(crate) async fn start(library: Library, log: &str, server: &str) -> Result<Self> {
        let (folder, made, mut program) = library.built();
        ensure!(
            Path::new(&folder).join(made).exists(),
            "{folder} is not built: run `make interop`"
        );
        let mut child = program
            .arg(server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(format!("{folder}/{log}.log"))?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| library.to_string())?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.context("no pipes")?;
        let (lines, to_write) = mpsc::unbounded_channel();
        let asked = Asked::default();
        tokio::spawn(write(stdin, to_write));
        tokio::spawn(read(BufReader::new(stdout).lines(), Arc::clone(&asked)));
        let peer = Self {
            library,
            child: AsyncMutex::new(child),
            lines,
            asked,
            next: AtomicU64::default(),
        };
        peer.round_trip().await?;
        Ok(peer)
    }

    /// The name of a thread that nobody has named before.
    pub(crate) fn thread(&self) -> String {
        format!("thread-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Tells the thread `who` what to do, and does not wait for it.
    pub(crate) fn tell(&self, who: &str, command: impl Display) -> Pending {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let line = format!("{id} {who} {command}\n");
        let (reply, answer) = oneshot::channel();
        self.asked.lock().insert(id, reply);
        // Where the process has ended, nobody answers, and that is what the test then says.
        self.lines.send(line).ok();
        let what = format!("{}'s `{command}`", self.library);
        Pending { what, answer }
    }

    /// Tells the thread `who` what to do, and waits for the answer.
    pub(crate) async fn ask(&self, who: &str, command: impl Display) -> Result<String> {
        self.tell(who, command).within(SOON).await
    }

    /// [`ask`](Self::ask), for work that takes as long as a test may, and comes to a number.
    pub(crate) async fn count(&self, who: &str, command: impl Display) -> Result<i64> {
        let counted = self.tell(who, command).within(HANGS).await?;
        counted.parse().with_context(|| counted)
    }

    /// [`ask`](Self::ask), where only one answer will do.
    pub(crate) async fn must(
        &self,
        who: &str,
        command: impl Display,
        answer: impl Display,
    ) -> Result<()> {
        let command = command.to_string();
        let got = self.ask(who, &command).await?;
        ensure!(
            got == answer.to_string(),
            "{}'s `{command}` came to {got}, not to {answer}",
            self.library
        );
        Ok(())
    }

    /// To the server and back, in a thread that does nothing else.
    pub(crate) async fn round_trip(&self) -> Result<()> {
        self.ask("bystander", "ping").await.map(drop)
    }

    /// Ends the process, whoever still waits in it.
    pub(crate) async fn stop(&self) {
        self.child.lock().await.kill().await.ok();
    }
}

impl Pending {
    /// That the answer has not come by now.
    pub(crate) fn is_open(&mut self) -> Result<()> {
        match self.answer.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            came => bail!("{} went on: {came:?}", self.what),
        }
    }

    pub(crate) async fn within(self, limit: Duration) -> Result<String> {
        match timeout(limit, self.answer).await {
            Ok(Ok(answer)) => answer.context(self.what),
            Ok(Err(_)) => bail!("{}: the process has ended (see its log)", self.what),
            Err(_) => bail!("{} was not answered", self.what),
        }
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(mut lines: Lines<BufReader<ChildStdout>>, asked: Asked) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut words = line.splitn(3, ' ');
        let (id, outcome, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
        if let Some(reply) = id.and_then(|id| asked.lock().remove(id)) {
            let done = outcome == Some("ok");
            reply
                .send(
                    done.then(|| rest.to_owned())
                        .ok_or_else(|| anyhow!("{rest}")),
                )
                .ok();
        }
    }
    // Whoever still waits hears that nobody will answer.
    asked.lock().clear();
}
