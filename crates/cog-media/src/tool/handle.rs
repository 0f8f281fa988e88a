use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use symphonia::core::io::MediaSource;

use crate::store::read_at;

/// An open file that is read without moving the shared file position.
pub(super) struct Handle {
    file: File,
    length: u64,
    at: u64,
    /// The positions of four bytes, and what readers get in their place.
    replaced: Vec<(u64, [u8; 4])>,
}

impl Handle {
    /// Starts to read a file.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length, at: 0, replaced: Vec::new() })
    }

    /// Makes readers get these bytes at these positions.
    pub(super) fn replace(&mut self, bytes: Vec<(u64, [u8; 4])>) {
        self.replaced = bytes;
    }

    /// Returns the complete content.
    pub(super) fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Handle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = read_at(&self.file, into, self.at)?;
        let replaced = self.replaced.iter().flat_map(|(start, bytes)| (*start..).zip(*bytes));
        for (position, new) in replaced {
            let at = position.checked_sub(self.at).and_then(|at| usize::try_from(at).ok());
            if let Some(byte) = at.and_then(|at| into.get_mut(..length)?.get_mut(at)) {
                *byte = new;
            }
        }
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = crate::store::seek_position(self.at, self.length, to)?;
        Ok(self.at)
    }
}

impl MediaSource for Handle {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}
