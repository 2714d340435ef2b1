//! A server's certificate, and the authority that vouches for it: made by `openssl` for one test.

use super::support::*;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// A folder of one test's, with `ca.pem`, `server.pem` and `server.key` for 127.0.0.1.
pub(crate) async fn folder(of: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{of}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
            -keyout ca.key -out ca.pem && \
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=server \
            -CA ca.pem -CAkey ca.key -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
            -keyout server.key -out server.pem";
    let made = Command::new("sh").args(["-c", make]).current_dir(&folder).output().await?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr).into_owned());
    Ok(folder)
}
