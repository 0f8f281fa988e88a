//! Server-sent events (ruling R51): `event`, `id`, and the chunk as one line of `data`.

use std::fmt::Write as _;

use axum::body::Bytes;
use cog_run::sessions::Batch;

/// The first lines of a stream: the time after which a browser reconnects, in milliseconds.
pub(super) const PREAMBLE: &str = "retry: 1000\n";
/// A comment, which clients ignore.
pub(crate) const KEEPALIVE: &[u8] = b":\n\n";
/// The approximate size of an event without its chunk.
const OVERHEAD: usize = 80;

/// Returns the entries as events, in one buffer.
pub(super) fn write(preamble: &str, session: &str, batch: &Batch) -> Bytes {
    let mut text =
        String::with_capacity(preamble.len() + batch.lines().len() + OVERHEAD * batch.entries().count());
    text.push_str(preamble);
    for entry in batch.entries() {
        // Writing to a string does not fail.
        let _ = write!(text, "event: {}\nid: {session}:{}\ndata: {}\n\n", entry.event, entry.seq, entry.json);
    }
    text.into()
}
