use std::time::SystemTime;

use cog_media::{Expected, Media, Store};
use tokio::time::Instant;

/// The number of bytes of an upload that stay in memory; the rest is on disk.
const IN_MEMORY: usize = 16 << 10;

/// A stored media file, or an upload in progress.
pub(super) struct Entry {
    /// The client that owns it.
    pub(super) owner: String,
    /// When it expires.
    pub(super) until: Instant,
    /// When it expires, as the time of day.
    pub(super) expires_at: SystemTime,
    /// Its run has ended and may be resumed: it is removed first when another upload needs the space.
    pub(super) is_retained: bool,
    /// What the client declared.
    pub(super) declared: Declared,
    /// The bytes received so far.
    pub(super) received: u64,
    /// The bytes that it may still grow to, which no other upload can use.
    pub(super) reserved: u64,
    pub(super) state: State,
}

impl Entry {
    /// Returns the bytes that count towards the limits.
    pub(super) fn size(&self) -> u64 {
        self.received.max(self.reserved)
    }

    /// Returns how much its size grows if this many bytes have been received.
    pub(super) fn growth_to(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.size())
    }
}

/// What a client declared of an upload.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    /// Type and checksum.
    pub(super) expected: Expected,
    /// Its length.
    pub(super) length: Option<u64>,
    /// Its maximum length.
    pub(super) max_bytes: u64,
}

/// The progress of an upload.
pub(super) enum State {
    /// It waits for more bytes.
    Open(Store),
    /// A request is sending bytes and has the store.
    Receiving,
    /// It is complete and valid.
    Complete(Media),
}

impl Declared {
    /// Creates the store for such an upload.
    pub(super) fn store(&self) -> Store {
        Store::with_limit(self.max_bytes).in_memory(IN_MEMORY)
    }
}
