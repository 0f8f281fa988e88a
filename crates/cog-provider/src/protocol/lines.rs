//! A buffer for lines that arrive in several parts.

use super::DecodeError;

/// The part of a line received so far.
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// The maximum size of a line, in bytes.
    limit: usize,
}

impl LineBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a part of a line that is not complete.
    pub(super) fn append(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        self.check_size(part)?;
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Calls `read` with the complete line, of which `end` is the last part. A line that arrives at once is not copied.
    pub(super) fn complete<T>(
        &mut self,
        end: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.check_size(end)?;
        if self.bytes.is_empty() {
            return read(end);
        }
        self.bytes.extend_from_slice(end);
        let result = read(&self.bytes);
        self.bytes.clear();
        result
    }

    fn check_size(&self, part: &[u8]) -> Result<(), DecodeError> {
        match self.bytes.len() + part.len() > self.limit {
            true => Err(DecodeError::FrameTooLarge(self.limit)),
            false => Ok(()),
        }
    }
}
