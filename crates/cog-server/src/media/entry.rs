use std::time::SystemTime;

use cog_media::{Expected, Media, Store};
use tokio::time::Instant;

/// What stands in memory of each upload, in bytes; all else is on disk.
const IN_MEMORY: usize = 16 << 10;

/// Something that is kept.
pub(super) struct Entry {
    /// Whose it is.
    pub(super) owner: String,
    /// Until when.
    pub(super) until: Instant,
    /// The same for who is told.
    pub(super) expires_at: SystemTime,
    /// The run that it came with is over, and may be asked again: it is kept only where nothing else needs its place.
    pub(super) is_left: bool,
    /// What was said of it.
    pub(super) said: Said,
    /// How many bytes are there.
    pub(super) received: u64,
    pub(super) state: State,
}

/// What was said of an upload beforehand.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// Type and checksum.
    pub(super) expected: Expected,
    /// Its length.
    pub(super) length: Option<u64>,
    /// The most bytes that it may have.
    pub(super) most: u64,
}

/// How far it is.
pub(super) enum State {
    /// It waits for more bytes.
    Open(Store),
    /// A request is sending it, and has its bytes.
    Receiving,
    /// It is all there, and was checked.
    Complete(Media),
}

impl Said {
    /// A store for such an upload.
    pub(super) fn store(&self) -> Store {
        Store::with_limit(self.most).in_memory(IN_MEMORY)
    }
}
