//! A way to a server that can be cut and mended.

use super::port::Port;
use parking_lot::Mutex;
use tokio::{io::copy_bidirectional, net::TcpStream, task::JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Forwards connections; while it is cut it has none and refuses new ones.
pub(crate) struct Proxy {
    port: Port,
    server: String,
    open: Mutex<Option<DropGuard>>,
}

impl Proxy {
    /// A proxy before `server`, open.
    pub(crate) fn to(server: String) -> Self {
        let proxy = Self {
            port: Port::free(),
            server,
            open: Mutex::default(),
        };
        proxy.mend();
        proxy
    }

    /// Its own `host:port`.
    pub(crate) fn address(&self) -> String {
        self.port.address().to_string()
    }

    /// Closes every connection and refuses new ones.
    pub(crate) async fn cut(&self) {
        drop(self.open.lock().take());
        while TcpStream::connect(self.port.address()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Takes connections again.
    pub(crate) fn mend(&self) {
        let listener = self.port.listen();
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
