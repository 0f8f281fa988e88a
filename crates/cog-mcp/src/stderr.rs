//! What a server writes to standard error.

use tokio::io::{AsyncReadExt, BufReader};

/// Logs what a server writes, in parts of a bounded size, until it closes the stream.
pub(crate) async fn log(server: String, stderr: tokio::process::ChildStderr) {
    let (mut stderr, mut part) = (BufReader::new(stderr), [0_u8; 4096]);
    while let Ok(length @ 1..) = stderr.read(&mut part).await {
        let text = String::from_utf8_lossy(part.get(..length).unwrap_or_default());
        for line in text.lines() {
            tracing::debug!(server, "{line}");
        }
    }
}
