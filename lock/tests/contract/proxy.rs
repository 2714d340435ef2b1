//! A way to a server that can be cut and mended.

use parking_lot::Mutex;
use std::net::SocketAddr;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Forwards connections; while it is cut it has none and refuses new ones.
pub(crate) struct Proxy {
    address: SocketAddr,
    server: String,
    open: Mutex<Option<DropGuard>>,
}

impl Proxy {
    /// A proxy before `server`, open.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let proxy = Self { address: listener.local_addr().expect("an address"), server, open: Mutex::default() };
        proxy.serve(listener);
        proxy
    }

    /// Its own `host:port`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Closes every connection and refuses new ones.
    pub(crate) async fn cut(&self) {
        drop(self.open.lock().take());
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Takes connections again.
    pub(crate) async fn mend(&self) {
        let listener = TcpListener::bind(self.address).await.expect("the port is still ours");
        self.serve(listener);
    }

    fn serve(&self, listener: TcpListener) {
        let cut = CancellationToken::new();
        *self.open.lock() = Some(cut.clone().drop_guard());
        let server = self.server.clone();
        tokio::spawn(cut.run_until_cancelled_owned(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                connections.spawn(async move {
                    let mut server = TcpStream::connect(server).await?;
                    client.set_nodelay(true)?;
                    server.set_nodelay(true)?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        }));
    }
}
