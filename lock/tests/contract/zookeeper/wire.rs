//! A proxy to ZooKeeper that counts requests and can hold one back.
//!
//! A frame is its length in 4 bytes and its content. A request begins with its number and its kind, an answer with the
//! number of its request; a notification has the number -1.

use crate::support::{Context, SOON, timeout};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    io::{Error, Result},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// The kinds of requests, by their numbers on the wire.
pub(crate) const DELETE: i32 = 2;
pub(crate) const GET_DATA: i32 = 4;
pub(crate) const LIST: i32 = 8;
pub(crate) const SYNC: i32 = 9;
const PING: i32 = 11;
pub(crate) const MULTI: i32 = 14;
const CREATE: i32 = 15;
/// ZooKeeper's own bound (`jute.maxbuffer`).
const LONGEST_FRAME: usize = 1024 * 1024;

/// The counts of one proxy, and the kind to hold back.
#[derive(Default)]
struct Counts {
    requests: Mutex<HashMap<i32, u64>>,
    notifications: AtomicU64,
    closed_to: watch::Sender<Option<i32>>,
    held: watch::Sender<u64>,
    numbers_below_0: AtomicBool,
}

/// A proxy that holds back every request of one kind while it is closed.
pub(crate) struct Wire {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Wire {
    /// An open proxy to `server`.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let wire = Self { address, counts: Arc::default() };
        let counts = wire.counts.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await?;
                tokio::spawn(counts.clone().forwards(client, server));
            }
            Result::Ok(())
        });
        wire
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn asked(&self, kind: i32) -> u64 {
        let requests = self.counts.requests.lock();
        requests.get(&kind).copied().unwrap_or_default()
    }

    /// The requests of all kinds so far, without heartbeats.
    pub(crate) fn requests(&self) -> u64 {
        let requests = self.counts.requests.lock();
        let asked = requests.iter().filter(|(kind, _)| ![PING, SYNC].contains(kind));
        asked.map(|(_, n)| n).sum()
    }

    pub(crate) fn notifications(&self) -> u64 {
        self.counts.notifications.load(SeqCst)
    }

    /// Holds back requests of this kind, and all later ones.
    pub(crate) fn close_to(&self, kind: i32) {
        self.counts.held.send_replace(0);
        self.counts.closed_to.send_replace(Some(kind));
    }

    pub(crate) async fn holds(&self) -> crate::support::Result {
        let mut held = self.counts.held.subscribe();
        let held = timeout(SOON, held.wait_for(|held| *held > 0)).await;
        held.context("what is to be held back never came")??;
        Ok(())
    }

    /// Makes the numbers of later nodes negative, as after 2^31 of them.
    pub(crate) fn number_below_0(&self) {
        self.counts.numbers_below_0.store(true, SeqCst);
    }

    pub(crate) fn open(&self) {
        self.counts.closed_to.send_replace(None);
    }
}

impl Counts {
    async fn forwards(self: Arc<Self>, client: TcpStream, server: TcpStream) -> Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((asked, client), (answered, server)) = (client.into_split(), server.into_split());
        tokio::select! {
            end = self.requests(asked, server) => end,
            end = self.answers(answered, client) => end,
        }
    }

    async fn requests(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
        // The first frame requests the session.
        to.write_all(&frame(&mut from).await?).await?;
        loop {
            let mut request = frame(&mut from).await?;
            let kind = number(&request, 8);
            if kind == CREATE && self.numbers_below_0.load(SeqCst) {
                lengthen_path(&mut request, b"-1");
            }
            let mut closed_to = self.closed_to.subscribe();
            if *closed_to.borrow_and_update() == Some(kind) {
                self.held.send_modify(|held| *held += 1);
                closed_to.wait_for(Option::is_none).await.ok();
            }
            *self.requests.lock().entry(kind).or_default() += 1;
            to.write_all(&request).await?;
        }
    }

    async fn answers(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
        to.write_all(&frame(&mut from).await?).await?;
        loop {
            let answer = frame(&mut from).await?;
            let notifies = number(&answer, 4) == -1;
            self.notifications.fetch_add(u64::from(notifies), SeqCst);
            to.write_all(&answer).await?;
        }
    }
}

async fn frame(from: &mut OwnedReadHalf) -> Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).await?;
    let length = usize::try_from(number(&frame, 0)).map_err(Error::other)?;
    // Another test's client may still use its own server's old port, and its bytes would be a length of 700 MB.
    if length > LONGEST_FRAME {
        return Err(Error::other("no frame of ZooKeeper's"));
    }
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..]).await?;
    Ok(frame)
}

fn number(frame: &[u8], at: usize) -> i32 {
    let bytes = frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_be_bytes)
}

/// A request's first field is its path; the server appends a node's number.
fn lengthen_path(request: &mut Vec<u8>, by: &[u8]) {
    let path = number(request, 12);
    let end = 16 + usize::try_from(path).expect("a length");
    request.splice(end..end, by.iter().copied());
    for at in [0, 12] {
        let longer = number(request, at) + i32::try_from(by.len()).expect("a length");
        request[at..at + 4].copy_from_slice(&longer.to_be_bytes());
    }
}
