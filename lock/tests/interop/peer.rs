//! A process that takes its locks with somebody else's library (`interop/`), and the lines that tell it what to do.
//!
//! A line is `ID WHO COMMAND…`; WHO is a thread of that process, and so an owner of its own. The answer is `ID ok …`
//! or `ID failed …`, whenever the thread has come so far: a thread that waits for a lock does not hold up the others.

use super::support::{SOON, Verdict};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
    time::timeout,
};

const ENDED: &str = "the process has ended (see its log beside what was built)";

/// What was answered, or the exception.
pub(crate) type Answer = Result<String, String>;

type Asked = Arc<Mutex<HashMap<String, oneshot::Sender<Answer>>>>;

/// The process. Dropping it kills it.
pub(crate) struct Peer {
    name: &'static str,
    child: Child,
    lines: mpsc::UnboundedSender<String>,
    asked: Asked,
    next: AtomicU64,
    test: AtomicU64,
}

/// The processes that the tests of one server tell what to do.
pub(crate) trait Told: Send + Sync + 'static {
    fn peers(&self) -> impl Iterator<Item = &Peer>;
}

/// An answer that has not come yet.
pub(crate) struct Pending {
    peer: &'static str,
    command: String,
    answer: oneshot::Receiver<Answer>,
}

impl Peer {
    /// Starts Java with that version of the library for which `interop` has a folder; it answers once it has connected.
    pub(crate) async fn java(
        name: &'static str,
        library: &str,
        version: &str,
        server: &str,
    ) -> Result<Self, String> {
        let built = interop().join(library).join("target").join(version);
        let mut java = Command::new("java");
        java.args(["-Xmx256m", "-cp"])
            .arg(format!("{0}/peer.jar:{0}/lib/*", built.display()))
            .args(["oversell.Peer", server]);
        Self::start(name, java, &built, "peer.jar").await
    }

    /// Starts Python with kazoo; it answers once it has connected.
    pub(crate) async fn kazoo(server: &str) -> Result<Self, String> {
        let installed = interop().join("kazoo/venv");
        let mut python = Command::new(installed.join("bin/python"));
        python.arg(interop().join("kazoo/peer.py")).arg(server);
        Self::start("kazoo", python, &installed, "installed").await
    }

    /// Starts `program`, whose `folder` is ready once `made` is there.
    async fn start(
        name: &'static str,
        mut program: Command,
        folder: &Path,
        made: &str,
    ) -> Result<Self, String> {
        if !folder.join(made).exists() {
            return Err(format!(
                "{} is not built: run `make interop`",
                folder.display()
            ));
        }
        let log = File::create(folder.join(format!("{name}.log")))
            .map_err(|e| format!("{name}'s log: {e}"))?;
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| format!("{name}: {e}"))?;
        let (stdin, stdout) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or("no pipes")?;
        let (lines, to_write) = mpsc::unbounded_channel();
        let asked = Asked::default();
        tokio::spawn(write(stdin, to_write));
        tokio::spawn(read(BufReader::new(stdout).lines(), Arc::clone(&asked)));
        let peer = Self {
            name,
            child,
            lines,
            asked,
            next: AtomicU64::default(),
            test: AtomicU64::default(),
        };
        peer.ask("main", "owner").await?;
        Ok(peer)
    }

    /// From now on every thread is a new one: a test that failed has left its own behind, perhaps for ever in a wait.
    pub(crate) fn begin(&self) {
        self.test.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells the thread `who` what to do, and does not wait for it.
    pub(crate) fn tell(&self, who: &str, command: impl Into<String>) -> Pending {
        let (id, command) = (
            self.next.fetch_add(1, Ordering::Relaxed).to_string(),
            command.into(),
        );
        let (reply, answer) = oneshot::channel();
        let line = format!(
            "{id} {who}.{} {command}\n",
            self.test.load(Ordering::Relaxed)
        );
        self.asked.lock().insert(id, reply);
        // Where the process has ended, nobody answers, and that is what the test then says.
        self.lines.send(line).ok();
        Pending {
            peer: self.name,
            command,
            answer,
        }
    }

    /// Tells the thread `who` what to do, and waits for the answer.
    pub(crate) async fn ask(&self, who: &str, command: impl Into<String>) -> Answer {
        self.tell(who, command).answer().await
    }

    /// [`ask`](Self::ask), however long it takes.
    pub(crate) async fn ask_long(&self, who: &str, command: impl Into<String>) -> Answer {
        let Pending {
            peer,
            command,
            answer,
        } = self.tell(who, command);
        answer
            .await
            .unwrap_or_else(|_| Err(ENDED.into()))
            .map_err(|failed| format!("{peer}'s `{command}`: {failed}"))
    }

    /// [`ask`](Self::ask), where only one answer will do.
    pub(crate) async fn must(
        &self,
        who: &str,
        command: impl Into<String>,
        answer: &str,
    ) -> Verdict {
        let command = command.into();
        match self.ask(who, command.clone()).await? {
            got if got == answer => Ok(()),
            got => Err(format!(
                "{}'s `{command}` came to {got}, not to {answer}",
                self.name
            )),
        }
    }

    /// Ends the process, whoever still waits in it.
    pub(crate) async fn stop(mut self) {
        // The end of its stdin ends it; the writer goes with the sender.
        drop(self.lines);
        if timeout(SOON, self.child.wait()).await.is_err() {
            self.child.kill().await.ok();
        }
    }
}

impl Pending {
    /// The answer if it has come by now.
    pub(crate) fn came(&mut self) -> Option<Answer> {
        match self.answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => None,
            other => Some(other.unwrap_or_else(|_| Err(ENDED.into()))),
        }
    }

    pub(crate) async fn answer(self) -> Answer {
        let Self {
            peer,
            command,
            answer,
        } = self;
        match timeout(SOON, answer).await {
            Ok(Ok(answer)) => answer.map_err(|failed| format!("{peer}'s `{command}`: {failed}")),
            Ok(Err(_)) => Err(format!("{peer}'s `{command}`: {ENDED}")),
            Err(_) => Err(format!("{peer}'s `{command}` was not answered")),
        }
    }
}

fn interop() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../interop"))
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
            let answer = if outcome == Some("ok") {
                Ok(rest.to_owned())
            } else {
                Err(rest.to_owned())
            };
            reply.send(answer).ok();
        }
    }
    // Whoever still waits hears that nobody will answer.
    asked.lock().clear();
}
