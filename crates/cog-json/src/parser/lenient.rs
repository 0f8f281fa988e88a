//! The deviations from JSON that the tolerant parser reads (ruling R24).

use crate::parser::machine::{Expect, Machine, Step, Token};
use crate::parser::sink::Sink;
use crate::parser::tolerance::Tolerance;
use crate::path::Path;
use crate::tape::Tag;

/// An incomplete comment.
#[derive(Clone, Copy)]
pub(super) struct CommentToken {
    start: usize,
    block: bool,
}

/// The maximum length of the keys in a path of the ledger, in bytes.
const MAX_PATH: usize = 1024;

impl Machine {
    /// Reads at a byte that JSON does not allow here, if the tolerant parser does.
    pub(super) fn tolerate<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Option<Step> {
        if !self.tolerant {
            return None;
        }
        let value = matches!(self.expect, Expect::Value | Expect::FirstElement | Expect::Element);
        let key = matches!(self.expect, Expect::FirstKey | Expect::Key);
        match byte {
            _ if self.expect == Expect::End => Some(Ok(false)),
            b'/' | b'#' => self.comment(byte),
            b'\'' if value => Some(self.string_value(byte, sink)),
            b'\'' if key => Some(self.string_key(byte, sink)),
            b'N' if value => Some(self.python("None", Tag::Null, sink)),
            b'T' if value => Some(self.python("True", Tag::True, sink)),
            b'F' if value => Some(self.python("False", Tag::False, sink)),
            b']' if self.expect == Expect::Element => Some(self.trailing_comma(sink)),
            b'}' if self.expect == Expect::Key => Some(self.trailing_comma(sink)),
            _ => None,
        }
    }

    fn trailing_comma<S: Sink>(&mut self, sink: &mut S) -> Step {
        self.note(Tolerance::TrailingComma, LedgerTarget::Container, 1, 0);
        self.close(sink)
    }

    fn python<S: Sink>(&mut self, word: &str, tag: Tag, sink: &mut S) -> Step {
        let Some(entry) = self.word(word, tag)? else { return Ok(false) };
        let index = self.begin(entry, sink)?;
        self.note(Tolerance::PythonLiteral, LedgerTarget::Value, word.len(), word.len());
        self.complete(index, sink);
        Ok(true)
    }

    fn comment(&mut self, byte: u8) -> Option<Step> {
        let next = self.tape.text.as_bytes().get(self.pos + 1);
        let block = match (byte, next) {
            (b'#', _) | (_, Some(b'/')) => false,
            (_, Some(b'*')) => true,
            // The second character of the comment is still missing.
            (_, None) => return Some(Ok(false)),
            _ => return None,
        };
        let start = self.pos;
        self.pos += if byte == b'#' { 1 } else { 2 };
        Some(self.go_on_comment(CommentToken { start, block }))
    }

    pub(super) fn go_on_comment(&mut self, token: CommentToken) -> Step {
        let text = &self.tape.text;
        let end = if token.block { "*/" } else { "\n" };
        let Some(length) = text.get(self.pos..).and_then(|rest| rest.find(end)) else {
            let half = token.block && text.len() > self.pos && text.ends_with('*');
            self.pos = text.len() - usize::from(half);
            self.token = Token::Comment(token);
            return Ok(false);
        };
        // The line break is white space, not part of the comment.
        self.pos += length + if token.block { end.len() } else { 0 };
        self.note(Tolerance::Comment, LedgerTarget::Container, self.pos - token.start, 0);
        Ok(true)
    }

    pub(super) fn note(&mut self, rule: Tolerance, target: LedgerTarget, before: usize, after: usize) {
        let mut ledger = std::mem::take(&mut self.ledger);
        ledger.note(rule, || self.target_path(target), before, after);
        self.ledger = ledger;
    }

    fn target_path(&self, target: LedgerTarget) -> String {
        let mut path = Path::root();
        let mut room = MAX_PATH;
        let inner = match target {
            LedgerTarget::Value => self.frames.len(),
            LedgerTarget::Container => self.frames.len().saturating_sub(1),
        };
        for (outer, frame) in self.frames.iter().take(inner).enumerate() {
            if !frame.object {
                path.push_index(frame.count.saturating_sub(1) as usize);
                continue;
            }
            let key = self.tape.string(self.tape.entry(frame.key));
            match room.checked_sub(key.len()) {
                Some(left) => room = left,
                None => break,
            }
            if !self.is_wrapper(outer + 1, key) {
                path.push_key(key);
            }
        }
        path.to_string()
    }
}

/// The value to which an entry of the ledger refers.
#[derive(Clone, Copy)]
pub(super) enum LedgerTarget {
    /// The current value, or the member of the current key.
    Value,
    /// The current container.
    Container,
}
