//! The limits of the context that one owner may store.

use std::io;

/// The maximum context that the runs of one owner may store.
///
/// At a limit, further values are not stored until stored ones expire. A value with the key of a stored one replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextLimits {
    /// The maximum number of values.
    pub max_values: usize,
    /// The maximum bytes of all values, with their keys.
    pub max_bytes: usize,
}

impl Default for ContextLimits {
    /// 100 values and 8 MiB.
    fn default() -> Self {
        Self { max_values: 100, max_bytes: 8 << 20 }
    }
}

/// The stored context of one owner, without the value that is replaced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stored {
    pub(super) values: usize,
    pub(super) bytes: usize,
}

impl ContextLimits {
    /// Checks whether the owner may store another value of this size.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(super) fn check(&self, stored: Stored, bytes: usize) -> io::Result<()> {
        let Self { max_values, max_bytes } = *self;
        if stored.values >= max_values {
            return Err(full(format!("this client has stored {max_values} values, the maximum")));
        }
        if stored.bytes.saturating_add(bytes) > max_bytes {
            let message = format!(
                "this client has stored {} bytes, and {bytes} more exceed the maximum of {max_bytes}",
                stored.bytes
            );
            return Err(full(message));
        }
        Ok(())
    }
}

fn full(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, format!("{message}; they are removed when they expire"))
}

impl Stored {
    /// Adds a value.
    pub(super) fn add(self, bytes: usize) -> Self {
        Self { values: self.values + 1, bytes: self.bytes + bytes }
    }
}
