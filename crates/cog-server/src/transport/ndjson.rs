//! NDJSON: one chunk per line.

use axum::body::Bytes;
use cog_run::sessions::Batch;

/// An empty line, which clients ignore.
pub(super) const KEEPALIVE: &[u8] = b"\n";

/// Returns the entries as lines, in one buffer.
pub(super) fn write(batch: &Batch) -> Bytes {
    Bytes::copy_from_slice(batch.lines().as_bytes())
}
