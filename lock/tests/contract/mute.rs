//! A way to a server on which requests arrive and answers do not: what "it may have run" means.

use super::proxy::Proxy;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Forwards both ways until it is muted; from then on it swallows what the server says.
pub(crate) struct Mute {
    front: Proxy,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    /// How many connections there were so far.
    connections: AtomicU64,
    /// Those with a lower number are muted.
    muted_below: AtomicU64,
    /// How often something came from a client.
    requests: AtomicU64,
    /// For so many milliseconds each answer is held back.
    delay: AtomicU64,
    /// A request with these words in it is the first that is not answered.
    last: Mutex<Option<&'static str>>,
}

impl Mute {
    /// A way to `server`, open.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let serving = tokio::spawn(serve(listener, server, state.clone()));
        Self {
            front: Proxy::to(address.to_string()),
            state,
            serving,
        }
    }

    /// Its own `host:port`.
    pub(crate) fn address(&self) -> String {
        self.front.address()
    }

    /// From now on nothing is answered.
    pub(crate) fn mute(&self) {
        self.state.muted_below.store(u64::MAX, SeqCst);
    }

    /// Nothing is answered from the next request on that has `words` in it: that one is carried out.
    pub(crate) fn mute_at(&self, words: &'static str) {
        *self.state.last.lock() = Some(words);
    }

    /// Answers again, on new connections: on the old ones an answer would be taken for another's.
    pub(crate) async fn heal(&self) {
        self.cut().await;
        self.mend();
    }

    /// Closes every connection and refuses new ones.
    pub(crate) async fn cut(&self) {
        self.front.cut().await;
    }

    /// Takes connections again, and answers on them.
    pub(crate) fn mend(&self) {
        self.state.muted_below.store(0, SeqCst);
        self.front.mend();
    }

    /// New connections are answered; those that are there stay as they are, as where a server vanished and another has
    /// its address.
    pub(crate) fn answer_new_connections(&self) {
        self.state
            .muted_below
            .store(self.state.connections.load(SeqCst), SeqCst);
    }

    /// From now on each answer comes so much later.
    pub(crate) fn delay(&self, by: Duration) {
        self.state
            .delay
            .store(by.as_millis().try_into().expect("a short time"), SeqCst);
    }

    /// How often something was sent to the server.
    pub(crate) fn requests(&self) -> u64 {
        self.state.requests.load(SeqCst)
    }
}

impl State {
    fn mute_if_last(&self, request: &[u8]) {
        let mut last = self.last.lock();
        if last.is_some_and(|words| {
            request
                .windows(words.len())
                .any(|part| part == words.as_bytes())
        }) {
            *last = None;
            self.muted_below.store(u64::MAX, SeqCst);
        }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, server: String, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, state) = (server.clone(), state.clone());
        let number = state.connections.fetch_add(1, SeqCst);
        tokio::spawn(async move {
            let server = TcpStream::connect(server).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let ((mut requests, mut client), (mut answers, mut server)) =
                (client.into_split(), server.into_split());
            let asked = async {
                let mut buffer = [0; 4096];
                loop {
                    let read = requests.read(&mut buffer).await?;
                    if read == 0 {
                        return std::io::Result::Ok(());
                    }
                    state.requests.fetch_add(1, SeqCst);
                    state.mute_if_last(&buffer[..read]);
                    server.write_all(&buffer[..read]).await?;
                }
            };
            let answered = async {
                let mut buffer = [0; 4096];
                loop {
                    let read = answers.read(&mut buffer).await?;
                    if read == 0 {
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(state.delay.load(SeqCst))).await;
                    if number >= state.muted_below.load(SeqCst) {
                        client.write_all(&buffer[..read]).await?;
                    }
                }
            };
            tokio::select! {
                end = asked => end,
                end = answered => end,
            }
        });
    }
}
