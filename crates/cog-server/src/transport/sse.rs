//! Server-sent events (ruling R51): `event`, `id`, and the chunk as one line of `data`.

use std::fmt::Write as _;

use axum::body::Bytes;
use cog_run::sessions::Batch;

/// After how many milliseconds a browser asks again where the connection broke.
pub(super) const HEAD: &str = "retry: 1000\n";
/// A comment.
pub(super) const HEARTBEAT: &[u8] = b":\n\n";
/// What stands around one chunk, about.
const AROUND: usize = 80;

/// The entries as events, in one piece.
pub(super) fn write(head: &str, session: &str, batch: &Batch) -> Bytes {
    let mut text = String::with_capacity(head.len() + batch.lines().len() + AROUND * batch.entries().count());
    text.push_str(head);
    for entry in batch.entries() {
        // Writing to a string does not fail.
        let _ = write!(text, "event: {}\nid: {session}:{}\ndata: {}\n\n", entry.event, entry.seq, entry.json);
    }
    text.into()
}
