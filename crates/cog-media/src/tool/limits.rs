//! What a process that reads untrusted bytes may use.

use std::time::Duration;

/// How long a document or container may be read.
pub(super) const READING: Duration = Duration::from_secs(30);

/// How long ffmpeg may work on one medium.
pub(super) const CONVERTING: Duration = Duration::from_secs(120);
