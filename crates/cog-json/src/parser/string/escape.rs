//! Escapes inside strings.

use crate::error::SyntaxErrorKind;

/// The result of reading at a backslash.
pub(super) enum Escape {
    /// A character, and its length in the source.
    Char(char, usize),
    /// The text ends before the escape does.
    Unfinished,
    Bad(SyntaxErrorKind),
}

/// Returns the length of the escape that a control character needs.
pub(super) fn length(control: u8) -> usize {
    match control {
        b'\n' | b'\t' | b'\r' | 0x08 | 0x0c => 2,
        _ => 6,
    }
}

/// Reads the escape whose backslash is at `at`. A single quote has an escape only in tolerant mode.
pub(super) fn read(bytes: &[u8], at: usize, is_tolerant: bool) -> Escape {
    let Some(letter) = bytes.get(at + 1) else { return Escape::Unfinished };
    let char = match letter {
        b'"' | b'\\' | b'/' => char::from(*letter),
        b'\'' if is_tolerant => '\'',
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(bytes, at),
        _ => return Escape::Bad(SyntaxErrorKind::Escape),
    };
    Escape::Char(char, 2)
}

fn unicode(bytes: &[u8], at: usize) -> Escape {
    let high = match unit(bytes, at) {
        Ok(unit) => unit,
        Err(problem) => return problem,
    };
    match high {
        0xd800..=0xdbff => pair(bytes, at, high),
        _ => {
            char::from_u32(high).map_or(Escape::Bad(SyntaxErrorKind::Surrogate), |char| Escape::Char(char, 6))
        }
    }
}

/// The first half of a surrogate pair was read: the second must follow.
fn pair(bytes: &[u8], at: usize, high: u32) -> Escape {
    match unit(bytes, at + 6) {
        Ok(low @ 0xdc00..=0xdfff) => {
            let scalar = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            char::from_u32(scalar)
                .map_or(Escape::Bad(SyntaxErrorKind::Surrogate), |char| Escape::Char(char, 12))
        }
        Err(Escape::Unfinished) => Escape::Unfinished,
        _ => Escape::Bad(SyntaxErrorKind::Surrogate),
    }
}

/// The 16 bits of `\uXXXX`.
fn unit(bytes: &[u8], at: usize) -> Result<u32, Escape> {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk::<6>() {
        Some([b'\\', b'u', digits @ ..]) => hex(digits).ok_or(Escape::Bad(SyntaxErrorKind::Escape)),
        Some(_) => Err(Escape::Bad(SyntaxErrorKind::Escape)),
        None if may_become_unit(rest) => Err(Escape::Unfinished),
        None => Err(Escape::Bad(SyntaxErrorKind::Escape)),
    }
}

fn hex(digits: &[u8; 4]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}

fn may_become_unit(start: &[u8]) -> bool {
    let (marker, digits) = start.split_at(start.len().min(2));
    b"\\u".starts_with(marker) && digits.iter().all(u8::is_ascii_hexdigit)
}
