//! ZooKeeper's four-letter words: a word goes to a server's client port, and its answer comes back as text.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, ToSocketAddrs},
};

/// The answer of the server at `address` to `word`, such as `srvr`, `mntr` or `conf`. Without a time limit: a paused
/// server does not answer.
/// Errors: nobody listens there, or the connection broke.
pub async fn four_letter_command(address: impl ToSocketAddrs, word: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
