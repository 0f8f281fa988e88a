//! Decoding bytes in any split to text.

use crate::error::SyntaxErrorKind;
use crate::limits::Limits;
use crate::parser::ErrorAt;

/// Checks UTF-8 and the length, and buffers an incomplete character.
pub(super) struct Input {
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
    /// The number of bytes that may still arrive.
    room: u64,
}

impl Input {
    pub(super) fn new(limits: Limits) -> Self {
        Input { held: Vec::new(), room: limits.bytes }
    }

    /// Appends the valid bytes to `text` before it reports an error.
    pub(super) fn take(&mut self, bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let fitting = bytes.get(..room).unwrap_or(bytes);
        self.room -= fitting.len() as u64;
        self.append(fitting, text)?;
        match fitting.len() == bytes.len() {
            true => Ok(()),
            false => Err((SyntaxErrorKind::TooLarge, text.len())),
        }
    }

    /// Whether no character is incomplete.
    pub(super) fn is_complete(&self) -> bool {
        self.held.is_empty()
    }

    fn append(&mut self, mut bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        while !self.held.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.held.push(byte);
            bytes = rest;
            let held = std::mem::take(&mut self.held);
            self.append_checked(&held, text)?;
        }
        self.append_checked(bytes, text)
    }

    fn append_checked(&mut self, bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        match str::from_utf8(bytes) {
            Ok(sound) => text.push_str(sound),
            Err(error) => {
                let (sound, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
                text.push_str(str::from_utf8(sound).unwrap_or_default());
                if error.error_len().is_some() {
                    return Err((SyntaxErrorKind::Utf8, text.len()));
                }
                self.held.extend_from_slice(rest);
            }
        }
        Ok(())
    }
}
