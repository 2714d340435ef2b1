//! ZooKeeper's four-letter words: a word goes to a server's client port, and its answer comes back as text.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, ToSocketAddrs},
};

/// What the server at `address` answers to `word`, as `srvr`, `mntr` or `conf`. There is no time limit: a server that
/// is paused says nothing.
///
/// # Errors
///
/// Nobody listens there, or the connection broke.
pub async fn four_letters(address: impl ToSocketAddrs, word: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
