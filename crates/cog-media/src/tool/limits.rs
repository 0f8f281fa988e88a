//! Resource limits of a process that reads untrusted content.

use std::time::Duration;

/// The maximum time to read a document or container.
pub(super) const READING: Duration = Duration::from_secs(30);

/// The maximum time of ffmpeg per media file.
pub(super) const CONVERTING: Duration = Duration::from_secs(120);
