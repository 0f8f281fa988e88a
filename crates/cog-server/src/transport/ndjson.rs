//! NDJSON: a chunk a line.

use axum::body::Bytes;
use cog_run::sessions::Batch;

/// An empty line.
pub(super) const HEARTBEAT: &[u8] = b"\n";

/// The entries as lines, in one piece.
pub(super) fn write(batch: &Batch) -> Bytes {
    Bytes::copy_from_slice(batch.lines().as_bytes())
}
