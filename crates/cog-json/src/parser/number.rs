//! Parsing numbers as they arrive.

use crate::error::SyntaxErrorKind;
use crate::parser::machine::{Machine, Step, Token};
use crate::parser::sink::Sink;
use crate::scan;
use crate::tape::Entry;

/// An incomplete number.
#[derive(Clone, Copy)]
pub(super) struct NumberToken {
    start: usize,
    phase: Phase,
    plain: bool,
}

/// The part of the number that was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Minus,
    /// A leading zero, which no digit may follow.
    Zero,
    Whole,
    Point,
    Fraction,
    /// `e` or `E`.
    E,
    ExponentSign,
    Exponent,
}

impl Machine {
    pub(super) fn number<S: Sink>(&mut self, first: u8, sink: &mut S) -> Step {
        let phase = match first {
            b'-' => Phase::Minus,
            b'0' => Phase::Zero,
            _ => Phase::Whole,
        };
        let token = NumberToken { start: self.pos, phase, plain: true };
        self.pos += 1;
        self.go_on_number(token, sink)
    }

    pub(super) fn go_on_number<S: Sink>(&mut self, mut token: NumberToken, sink: &mut S) -> Step {
        let bytes = self.tape.text.as_bytes();
        loop {
            if token.phase.repeats() {
                self.pos = scan::digits(bytes, self.pos);
            }
            let Some(&byte) = bytes.get(self.pos) else {
                self.token = Token::Number(token);
                return Ok(false);
            };
            let Some(phase) = token.phase.then(byte) else { break };
            token.plain &= matches!(phase, Phase::Minus | Phase::Zero | Phase::Whole);
            token.phase = phase;
            self.pos += 1;
        }
        let sticks =
            bytes.get(self.pos).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        match token.phase.may_end() && !sticks {
            true => self.add_number(token, sink),
            false => Err((SyntaxErrorKind::Number, self.pos)),
        }
    }

    /// Completes a number at the end of the text.
    pub(super) fn end_number<S: Sink>(&mut self, sink: &mut S) -> Step {
        match self.token {
            Token::Number(token) if token.phase.may_end() => {
                self.token = Token::None;
                self.add_number(token, sink)
            }
            _ => Ok(true),
        }
    }

    fn add_number<S: Sink>(&mut self, token: NumberToken, sink: &mut S) -> Step {
        self.scalar(Entry::number(token.start, self.pos - token.start, token.plain), sink)
    }
}

impl Phase {
    #[inline]
    fn then(self, byte: u8) -> Option<Phase> {
        use Phase::{E, Exponent, ExponentSign, Fraction, Minus, Point, Whole, Zero};
        Some(match (self, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => E,
            (E, b'+' | b'-') => ExponentSign,
            (E | ExponentSign, b'0'..=b'9') => Exponent,
            _ => return None,
        })
    }

    /// Whether any number of digits may follow.
    #[inline]
    fn repeats(self) -> bool {
        matches!(self, Phase::Whole | Phase::Fraction | Phase::Exponent)
    }

    fn may_end(self) -> bool {
        self == Phase::Zero || self.repeats()
    }
}
