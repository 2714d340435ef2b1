//! A way to a server on which requests arrive and answers do not: what "it may have run" means.

use super::proxy::Proxy;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Forwards both ways until it is muted; from then on it swallows what the server says.
pub(crate) struct Mute {
    front: Proxy,
    muted: Arc<AtomicBool>,
    serving: JoinHandle<()>,
}

impl Mute {
    /// A way to `server`, open.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let muted = Arc::new(AtomicBool::new(false));
        let serving = tokio::spawn(serve(listener, server, muted.clone()));
        Self { front: Proxy::to(address.to_string()).await, muted, serving }
    }

    /// Its own `host:port`.
    pub(crate) fn address(&self) -> String {
        self.front.address()
    }

    /// From now on nothing is answered.
    pub(crate) fn mute(&self) {
        self.muted.store(true, SeqCst);
    }

    /// Answers again, on new connections: on the old ones an answer would be taken for another's.
    pub(crate) async fn heal(&self) {
        self.front.cut().await;
        self.muted.store(false, SeqCst);
        self.front.mend().await;
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, server: String, muted: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, muted) = (server.clone(), muted.clone());
        tokio::spawn(async move {
            let server = TcpStream::connect(server).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let ((mut requests, mut client), (mut answers, mut server)) = (client.into_split(), server.into_split());
            let answered = async {
                let mut buffer = [0; 4096];
                loop {
                    let read = answers.read(&mut buffer).await?;
                    if read == 0 {
                        return Ok(());
                    }
                    if !muted.load(SeqCst) {
                        client.write_all(&buffer[..read]).await?;
                    }
                }
            };
            tokio::select! {
                end = copy(&mut requests, &mut server) => end.map(|_| ()),
                end = answered => end,
            }
        });
    }
}
