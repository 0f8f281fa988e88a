//! From bytes in any split to text.

use crate::error::SyntaxErrorKind;
use crate::limits::Limits;
use crate::parser::Fault;

/// Checks UTF-8 and the length, and keeps back a character that has not arrived as a whole.
pub(super) struct Input {
    /// The first bytes of a character.
    held: Vec<u8>,
    /// Bytes that may still come.
    room: u64,
}

impl Input {
    pub(super) fn new(limits: Limits) -> Self {
        Input { held: Vec::new(), room: limits.bytes }
    }

    /// Appends as much as is sound to `text`, and only then tells a fault.
    pub(super) fn take(&mut self, bytes: &[u8], text: &mut String) -> Result<(), Fault> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let fitting = bytes.get(..room).unwrap_or(bytes);
        self.room -= fitting.len() as u64;
        self.append(fitting, text)?;
        match fitting.len() == bytes.len() {
            true => Ok(()),
            false => Err((SyntaxErrorKind::TooLarge, text.len())),
        }
    }

    /// Whether no character is waiting for its end.
    pub(super) fn is_whole(&self) -> bool {
        self.held.is_empty()
    }

    fn append(&mut self, mut bytes: &[u8], text: &mut String) -> Result<(), Fault> {
        while !self.held.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.held.push(byte);
            bytes = rest;
            let held = std::mem::take(&mut self.held);
            self.append_whole(&held, text)?;
        }
        self.append_whole(bytes, text)
    }

    fn append_whole(&mut self, bytes: &[u8], text: &mut String) -> Result<(), Fault> {
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
