//! Skipping over bytes eight at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The first byte at or after `from` that ends a plain run inside a string: the quote, a backslash or a control
/// character. The length of `bytes` when there is none.
pub(crate) fn string_run<const QUOTE: u8>(bytes: &[u8], mut from: usize) -> usize {
    while let Some(word) = word_at(bytes, from) {
        let stops = equals(word, QUOTE) | equals(word, b'\\') | below(word, 0x20);
        if stops != 0 {
            return from + first(stops);
        }
        from += 8;
    }
    let stop = |&byte: &u8| byte == QUOTE || byte == b'\\' || byte < 0x20;
    position(bytes, from, stop)
}

/// The first byte at or after `from` that is no JSON white space, or the length of `bytes`.
pub(crate) fn space(bytes: &[u8], mut from: usize) -> usize {
    while let Some(word) = word_at(bytes, from) {
        let spaces = exact(word, b' ') | exact(word, b'\n') | exact(word, b'\t') | exact(word, b'\r');
        if spaces != HIGHS {
            return from + first(!spaces & HIGHS);
        }
        from += 8;
    }
    position(bytes, from, |byte| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r'))
}

/// The first byte at or after `from` that is no digit, or the length of `bytes`.
#[inline]
pub(crate) fn digits(bytes: &[u8], from: usize) -> usize {
    position(bytes, from, |byte| !byte.is_ascii_digit())
}

#[inline]
fn position(bytes: &[u8], from: usize, stop: impl Fn(&u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(stop).unwrap_or(rest.len())
}

#[inline]
fn word_at(bytes: &[u8], from: usize) -> Option<u64> {
    bytes.get(from..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// High bit set in each byte that equals `byte`. Right up to and including the first such byte, which is all
/// that [`first`] looks at; a byte above it may be marked wrongly by the borrow.
#[inline]
const fn equals(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * byte as u64);
    zero.wrapping_sub(ONES) & !zero & HIGHS
}

/// High bit set in each byte below `limit` (at most 0x80), right up to and including the first such byte.
#[inline]
const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & HIGHS
}

/// High bit set in exactly the bytes that equal `byte`.
#[inline]
const fn exact(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * byte as u64);
    let low = (zero & !HIGHS).wrapping_add(!HIGHS);
    !(low | zero) & HIGHS
}

/// The index of the first marked byte.
#[inline]
const fn first(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_stopping_byte_at_each_place() {
        for at in 0..40 {
            for stop in [b'"', b'\\', 0, 0x1f, b'\n'] {
                let mut bytes = vec![b'!'; 41];
                bytes[at] = stop;
                assert_eq!(string_run::<b'"'>(&bytes, 0), at, "{stop:#x}");
                assert_eq!(string_run::<b'"'>(&bytes, at + 1), 41);
            }
        }
        assert_eq!(string_run::<b'\''>(b"\"\xff\x20\x7f'", 0), 4);
    }

    #[test]
    fn skips_exactly_the_four_white_space_characters() {
        for byte in 0..=255_u8 {
            let text = [b' ', b'\n', byte, b'\t', b'\r', b' ', b' ', b' ', b' ', b'x'];
            let white = matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
            assert_eq!(space(&text, 0), if white { 9 } else { 2 }, "{byte:#x}");
        }
    }
}
