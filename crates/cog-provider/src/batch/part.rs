//! The entries of one job.

use bytes::Bytes;

use super::EntryError;
use crate::WireRequest;

/// The limits of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// The maximum number of requests.
    pub requests: usize,
    /// The maximum size, in bytes.
    pub bytes: usize,
}

impl BatchLimits {
    /// Returns the lower of two limits.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self { requests: self.requests.min(other.requests), bytes: self.bytes.min(other.bytes) }
    }
}

/// The entries of one job, within its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPart {
    limits: BatchLimits,
    target: String,
    entries: Vec<String>,
    bytes: usize,
}

/// The bytes of a request beside its entries, and those between two entries.
const FRAME: usize = 1_024;

impl BatchPart {
    /// Creates a part without entries.
    #[must_use]
    pub fn new(limits: BatchLimits) -> Self {
        Self { limits, target: String::new(), entries: Vec::new(), bytes: FRAME }
    }

    /// Adds an entry. Returns false if the part has no room for it, or has requests to another endpoint or model.
    ///
    /// # Errors
    /// Fails if no part can contain the entry.
    pub fn push(&mut self, target: String, entry: String) -> Result<bool, EntryError> {
        let size = entry.len() + 1;
        if FRAME + size > self.limits.bytes {
            return Err(EntryError::TooLarge { bytes: entry.len(), limit: self.limits.bytes });
        }
        let is_full = self.entries.len() >= self.limits.requests || self.bytes + size > self.limits.bytes;
        if !self.entries.is_empty() && (is_full || self.target != target) {
            return Ok(false);
        }
        self.bytes += size;
        self.target = target;
        self.entries.push(entry);
        Ok(true)
    }

    /// Returns the size of the entries, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the endpoint or the model of the requests.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.entries
    }
}

/// The upload of the entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// The first request.
    pub request: WireRequest,
    /// What is sent to the URL in the reply to the first request; none if that contains it.
    pub content: Option<Bytes>,
}
