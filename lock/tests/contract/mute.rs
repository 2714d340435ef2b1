//! A way to a server on which requests arrive and answers do not: what "it may have run" means.

use oversell::lab::{Condition, Piece, Proxy};
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// Forwards both ways until it is muted; from then on it swallows what the server says.
pub(crate) struct Mute {
    front: Proxy,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many connections there were so far.
    connections: AtomicU64,
    /// Those with a lower number are muted.
    muted_below: AtomicU64,
    /// How often something came from a client.
    requests: AtomicU64,
    /// A request with these words in it is the first that is not answered.
    last: Mutex<Option<&'static str>>,
}

impl Mute {
    /// A way to `server`, open.
    pub(crate) fn to(server: String) -> io::Result<Self> {
        let state = Arc::<State>::default();
        let seen = Arc::clone(&state);
        let front = Proxy::filtered(server, move |piece| seen.passes(piece))?;
        Ok(Self { front, state })
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
    pub(crate) fn heal(&self) {
        self.cut();
        self.mend();
    }

    /// Closes every connection, and new ones as soon as they are made.
    pub(crate) fn cut(&self) {
        self.front.cut();
    }

    /// Takes connections again, and answers on them.
    pub(crate) fn mend(&self) {
        self.state.muted_below.store(0, SeqCst);
        self.front.mend();
    }

    /// New connections are answered; those that are there stay as they are, as where a server vanished and another has
    /// its address.
    pub(crate) fn answer_new_connections(&self) {
        let so_far = self.state.connections.load(SeqCst);
        self.state.muted_below.store(so_far, SeqCst);
    }

    /// From now on each answer comes so much later.
    pub(crate) fn delay(&self, by: Duration) {
        self.front.set_condition(Condition::Slow(by));
    }

    /// How often something was sent to the server.
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
        let has = |words: &str| {
            request
                .windows(words.len())
                .any(|part| part == words.as_bytes())
        };
        if last.is_some_and(has) {
            *last = None;
            self.muted_below.store(u64::MAX, SeqCst);
        }
    }
}
