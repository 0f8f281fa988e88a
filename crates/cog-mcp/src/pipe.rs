//! The input and output of a program, with each message changed on its way.

use std::{borrow::Cow, io, str};

use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
        DuplexStream, duplex,
    },
    process::ChildStderr,
    task::JoinSet,
};

use crate::verbatim::{incoming_result, outgoing_call};

/// The maximum size of a message of a server, in bytes.
const MAX_MESSAGE: u64 = 16 << 20;
/// The bytes of a message that wait for their reader.
pub(crate) const BUFFER: usize = 64 << 10;

/// Returns what `rmcp` reads from a program and writes to it. The messages pass in tasks, which end with the connection.
pub(crate) fn verbatim(
    output: impl AsyncRead + Send + Unpin + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
    tasks: &mut JoinSet<()>,
) -> (DuplexStream, DuplexStream) {
    let (read, from_program) = duplex(BUFFER);
    let (write, to_program) = duplex(BUFFER);
    tasks.spawn(async move {
        let _ = pass(output, from_program, MAX_MESSAGE, incoming_result).await;
    });
    tasks.spawn(async move {
        let _ = pass(to_program, input, MAX_MESSAGE, outgoing_call).await;
    });
    (read, write)
}

/// Passes lines on until one of both sides is closed. A line over `limit` bytes is dropped.
pub(crate) async fn pass(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    limit: u64,
    change: fn(&str) -> Cow<'_, str>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut is_dropping = false;
    loop {
        let mut line = Vec::new();
        if (&mut from).take(limit).read_until(b'\n', &mut line).await? == 0 {
            return to.shutdown().await;
        }
        let is_end = line.ends_with(b"\n");
        let is_too_long = !is_end && line.len() as u64 == limit;
        if is_too_long && !is_dropping {
            tracing::error!(limit, "a message of MCP is too long; it is dropped");
        }
        if !is_dropping && !is_too_long {
            match str::from_utf8(&line) {
                Ok(text) => to.write_all(change(text).as_bytes()).await?,
                Err(_) => to.write_all(&line).await?,
            }
            to.flush().await?;
        }
        is_dropping = (is_dropping || is_too_long) && !is_end;
    }
}

/// Logs what a server writes, in parts of a bounded size, until it closes the stream.
pub(crate) async fn log_stderr(server: String, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    let mut part = [0_u8; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut part).await {
        let text = String::from_utf8_lossy(part.get(..length).unwrap_or_default());
        for line in text.lines() {
            tracing::debug!(server, "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_that_is_too_long_is_dropped() {
        let long = "x".repeat(usize::try_from(MAX_MESSAGE).unwrap() + 10);
        let text = format!("first\n{long}\nsecond\nthe end");
        let mut passed = Vec::new();
        pass(text.as_bytes(), &mut passed, MAX_MESSAGE, |line| Cow::Borrowed(line)).await.unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), "first\nsecond\nthe end");
    }
}
