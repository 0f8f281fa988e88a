//! Parsing numbers as they arrive.

use crate::error::SyntaxErrorKind;
use crate::parser::Sink;
use crate::parser::machine::{Machine, Step, Token};
use crate::parser::tolerance::{LedgerTarget, Tolerance};
use crate::scan;
use crate::tape::Entry;

/// An incomplete number.
#[derive(Clone, Copy)]
pub(super) struct NumberToken {
    start: usize,
    phase: Phase,
    plain: bool,
    /// Whether it is written in a form that JSON does not have, such as `+5`, `.5` or `5.`.
    is_lenient: bool,
}

/// The part of the number that was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `+`, or `-`.
    Sign,
    /// A leading zero, which no digit may follow.
    Zero,
    Whole,
    Point,
    /// A point without a digit before it.
    LeadingPoint,
    Fraction,
    /// `e` or `E`.
    E,
    ExponentSign,
    Exponent,
}

impl Machine {
    pub(super) fn number<S: Sink>(&mut self, first: u8, sink: &mut S) -> Step {
        let phase = match first {
            b'-' | b'+' => Phase::Sign,
            b'.' => Phase::LeadingPoint,
            b'0' => Phase::Zero,
            _ => Phase::Whole,
        };
        let is_lenient = matches!(first, b'+' | b'.');
        let token = NumberToken { start: self.pos, phase, plain: first != b'.', is_lenient };
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
            let Some(phase) = token.phase.then(byte) else {
                if self.tolerant && token.phase == Phase::Sign && byte == b'.' {
                    token.phase = Phase::LeadingPoint;
                    token.is_lenient = true;
                    self.pos += 1;
                    continue;
                }
                break;
            };
            token.plain &= matches!(phase, Phase::Sign | Phase::Zero | Phase::Whole);
            token.phase = phase;
            self.pos += 1;
        }
        // `012`, `1.5kg` and `2024-05-01` are one bad token each, not a number and something after it.
        let sticks =
            bytes.get(self.pos).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        match token.phase.may_end(self.tolerant) && !sticks {
            true => self.add_number(token, sink),
            false => Err((SyntaxErrorKind::Number, self.pos)),
        }
    }

    /// Completes a number at the end of the text.
    pub(super) fn end_number<S: Sink>(&mut self, sink: &mut S) -> Step {
        match self.token {
            Token::Number(token) if token.phase.may_end(self.tolerant) => {
                self.token = Token::None;
                self.add_number(token, sink)
            }
            _ => Ok(true),
        }
    }

    fn add_number<S: Sink>(&mut self, token: NumberToken, sink: &mut S) -> Step {
        if token.is_lenient || token.phase == Phase::Point {
            return self.add_lenient_number(token.start, sink);
        }
        self.scalar(Entry::number(token.start, self.pos - token.start, token.plain), sink)
    }

    /// Adds a number as JSON writes it: `+5` is `5`, `.5` is `0.5`, and `5.` is `5`.
    #[cold]
    fn add_lenient_number<S: Sink>(&mut self, start: usize, sink: &mut S) -> Step {
        let source = self.tape.text.get(start..self.pos).unwrap_or_default();
        let digits = source.trim_start_matches(['+', '-']).trim_end_matches('.');
        let sign = if source.starts_with('-') { "-" } else { "" };
        let zero = if digits.starts_with('.') { "0" } else { "" };
        let literal = [sign, zero, digits].concat();
        let mut entry = Entry::number(start, literal.len(), !literal.contains(['.', 'e', 'E']));
        entry.set_decoded(self.tape.decoded.len());
        self.tape.decoded.push_str(&literal);
        let before = self.pos - start;
        let index = self.begin(entry, sink)?;
        self.note(Tolerance::NumberForm, LedgerTarget::Value, before, literal.len());
        self.complete(index, sink);
        Ok(true)
    }
}

impl Phase {
    #[inline]
    fn then(self, byte: u8) -> Option<Phase> {
        use Phase::{E, Exponent, ExponentSign, Fraction, LeadingPoint, Point, Sign, Whole, Zero};
        Some(match (self, byte) {
            (Sign, b'0') => Zero,
            (Sign, b'1'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | LeadingPoint, b'0'..=b'9') => Fraction,
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

    fn may_end(self, is_tolerant: bool) -> bool {
        self == Phase::Zero || self.repeats() || is_tolerant && self == Phase::Point
    }
}
