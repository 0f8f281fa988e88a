//! Keys of the terminal, without Enter.

#[cfg(unix)]
use std::collections::VecDeque;
use std::io;

use crate::{error::CliError, output::Console};

/// Switches to the other screen of the terminal, without a cursor.
#[cfg(unix)]
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Switches back.
#[cfg(unix)]
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(any(unix, test)), expect(dead_code, reason = "no key is read on other systems"))]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    /// Ctrl-C, Ctrl-D, or the end of the input.
    Interrupt,
    Other,
}

/// Returns the keys of what was read at once. An escape sequence arrives at once, so an escape at the end is the key itself.
#[cfg(any(unix, test))]
fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut keys = Vec::new();
    let mut rest = text.as_ref();
    while let Some(first) = rest.chars().next() {
        let sent = match rest.strip_prefix("\x1b[").or_else(|| rest.strip_prefix("\x1bO")) {
            Some(body) => sequence(body),
            None => character(first),
        };
        keys.push(sent.key);
        rest = rest.get(sent.length..).unwrap_or_default();
    }
    keys
}

/// A key with the number of bytes that the terminal sent for it.
#[cfg(any(unix, test))]
struct SentKey {
    key: Key,
    length: usize,
}

#[cfg(any(unix, test))]
fn character(character: char) -> SentKey {
    let key = match character {
        '\x03' | '\x04' => Key::Interrupt,
        c if c.is_control() => Key::Other,
        c => Key::Char(c.to_ascii_lowercase()),
    };
    SentKey { key, length: character.len_utf8() }
}

/// Returns the key of an escape sequence, whose first two bytes are not in `body`.
#[cfg(any(unix, test))]
fn sequence(body: &str) -> SentKey {
    let end = body.find(|c: char| c.is_ascii_alphabetic() || c == '~').map_or(body.len(), |at| at + 1);
    let key = match body.get(..end).unwrap_or_default() {
        "A" => Key::Up,
        "B" => Key::Down,
        "5~" => Key::PageUp,
        "6~" => Key::PageDown,
        _ => Key::Other,
    };
    SentKey { key, length: end + 2 }
}

fn no_terminal() -> CliError {
    CliError::Usage {
        message: "`cog review` needs a terminal: stdin or stdout is a pipe or a file".to_owned(),
        suggestion: Some(
            "Without a terminal, use `cog logs show ID` and `cog logs label ID right`.".to_owned(),
        ),
    }
}

#[cfg(unix)]
pub(super) use self::unix::Keyboard;

#[cfg(unix)]
mod unix {
    use std::io::IsTerminal as _;

    use rustix::{
        io::{Errno, read},
        termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
    };

    use super::{CliError, Console, ENTER, Key, LEAVE, VecDeque, io, keys, no_terminal};

    /// The keyboard of the terminal. While it is entered, keys arrive at once and are not shown.
    pub(in crate::commands::review) struct Keyboard {
        /// The modes before.
        modes: Termios,
        is_entered: bool,
        pending: VecDeque<Key>,
    }

    impl Keyboard {
        /// Opens the keyboard.
        ///
        /// # Errors
        /// stdin or stdout is not a terminal, or one that cannot move its cursor.
        pub(in crate::commands::review) fn open(console: &Console) -> Result<Self, CliError> {
            if !io::stdin().is_terminal() || !console.out().is_terminal || console.is_append_only() {
                return Err(no_terminal());
            }
            let modes = tcgetattr(io::stdin()).map_err(io::Error::from)?;
            Ok(Self { modes, is_entered: false, pending: VecDeque::new() })
        }

        /// Takes the screen.
        pub(in crate::commands::review) fn enter(&mut self) -> io::Result<()> {
            let mut modes = self.modes.clone();
            // Ctrl-C is a key here: otherwise it would end the program with the terminal in this mode.
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
            self.is_entered = true;
            write(ENTER)
        }

        /// Gives the screen back.
        pub(in crate::commands::review) fn leave(&mut self) {
            if std::mem::take(&mut self.is_entered) {
                let _ = write(LEAVE);
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.modes);
            }
        }

        /// Waits for the next key.
        pub(in crate::commands::review) fn key(&mut self) -> io::Result<Key> {
            while self.pending.is_empty() {
                let mut bytes = [0; 64];
                match read(io::stdin(), &mut bytes) {
                    Ok(0) => return Ok(Key::Interrupt),
                    Ok(length) => self.pending.extend(keys(bytes.get(..length).unwrap_or_default())),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(self.pending.pop_front().unwrap_or(Key::Other))
        }
    }

    impl Drop for Keyboard {
        fn drop(&mut self) {
            self.leave();
        }
    }

    fn write(text: &str) -> io::Result<()> {
        use io::Write as _;
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[cfg(not(unix))]
pub(super) use self::absent::Keyboard;

/// Systems without such terminals.
#[cfg(not(unix))]
mod absent {
    use super::{CliError, Console, Key, io, no_terminal};

    pub(in crate::commands::review) enum Keyboard {}

    impl Keyboard {
        pub(in crate::commands::review) fn open(_: &Console) -> Result<Self, CliError> {
            Err(no_terminal())
        }

        pub(in crate::commands::review) fn enter(&mut self) -> io::Result<()> {
            match *self {}
        }

        pub(in crate::commands::review) fn leave(&mut self) {
            match *self {}
        }

        pub(in crate::commands::review) fn key(&mut self) -> io::Result<Key> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_one_by_one() {
        let expected = [Key::Char('r'), Key::Down, Key::PageUp, Key::Other, Key::Char('é'), Key::Interrupt];
        assert_eq!(keys("R\x1b[B\x1b[5~\x1b[1;5Cé\x03".as_bytes()), expected);
        assert_eq!(keys(b"\x1b"), [Key::Other]);
        assert_eq!(keys(b"\x1b["), [Key::Other]);
        assert_eq!(keys(b"\x1bOA"), [Key::Up]);
    }
}
