//! A proxy on which requests arrive and answers do not: what "it may have run" means.

use oversell_lab::clients::proxy::{Condition, Piece, Proxy};
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// Forwards both directions until it is muted; then it drops the server's answers.
pub(crate) struct Mute {
    front: Proxy,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    connections: AtomicU64,
    /// Connections with a lower number are muted.
    muted_below: AtomicU64,
    requests: AtomicU64,
    /// The answers from a request with these words on are dropped.
    last: Mutex<Option<&'static str>>,
}

impl Mute {
    /// An open proxy to `server`.
    pub(crate) fn to(server: String) -> io::Result<Self> {
        let state = Arc::<State>::default();
        let seen = Arc::clone(&state);
        let front = Proxy::filtered(server, move |piece| seen.passes(piece))?;
        Ok(Self { front, state })
    }

    pub(crate) fn address(&self) -> String {
        self.front.address()
    }

    /// Drops all answers from now on.
    pub(crate) fn mute(&self) {
        self.state.muted_below.store(u64::MAX, SeqCst);
    }

    /// Drops all answers from the next request with `words` on; that one is carried out.
    pub(crate) fn mute_at(&self, words: &'static str) {
        *self.state.last.lock() = Some(words);
    }

    /// Whether the request of [`mute_at`](Self::mute_at) has come.
    pub(crate) fn has_muted(&self) -> bool {
        self.state.last.lock().is_none()
    }

    /// Answers again, on new connections: an old one would take an answer for another's.
    pub(crate) fn heal(&self) {
        self.cut();
        self.mend();
    }

    /// Closes every connection, and refuses new ones.
    pub(crate) fn cut(&self) {
        self.front.cut();
    }

    /// Accepts connections again, and answers on them, whatever [`mute_at`](Self::mute_at) has said.
    pub(crate) fn mend(&self) {
        *self.state.last.lock() = None;
        self.state.muted_below.store(0, SeqCst);
        self.front.mend();
    }

    /// Answers new connections; present ones stay muted, as if the server had vanished and another had its address.
    pub(crate) fn answer_new_connections(&self) {
        let so_far = self.state.connections.load(SeqCst);
        self.state.muted_below.store(so_far, SeqCst);
    }

    pub(crate) fn delay(&self, by: Duration) {
        self.front.set_condition(Condition::Slow(by));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.requests.load(SeqCst)
    }
}

impl State {
    fn passes(&self, piece: Piece<'_>) -> bool {
        self.connections.fetch_max(piece.connection + 1, SeqCst);
        if piece.from_server {
            return piece.connection >= self.muted_below.load(SeqCst);
        }
        self.requests.fetch_add(1, SeqCst);
        self.mute_if_last(piece.bytes);
        true
    }

    fn mute_if_last(&self, request: &[u8]) {
        let mut last = self.last.lock();
        let has = |words: &str| request.windows(words.len()).any(|part| part == words.as_bytes());
        if last.is_some_and(has) {
            *last = None;
            self.muted_below.store(u64::MAX, SeqCst);
        }
    }
}
