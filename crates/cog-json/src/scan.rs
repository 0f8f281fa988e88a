//! Skipping bytes, eight at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The first byte at or after `from` that ends a plain run inside a string: the quote, a backslash or a control
/// character. The length of `bytes` when there is none.
pub(crate) fn string_run<const QUOTE: u8>(bytes: &[u8], mut from: usize) -> usize {
    while let Some(word) = word_at(bytes, from) {
        let stops = string_stops::<QUOTE>(word);
        if stops != 0 {
            return from + first(stops);
        }
        from += 8;
    }
    position(bytes, from, |&byte| byte == QUOTE || byte == b'\\' || byte < 0x20)
}

/// High bit set in each byte that ends a plain run. Right up to and including the first such byte, which is all
/// that [`first`] looks at; a byte above it may be marked wrongly by the borrow.
///
/// Swapping the quote with the space puts it right above the control characters, so that one comparison finds
/// both; and nothing that is searched has its high bit set, so that one test is enough.
#[inline]
const fn string_stops<const QUOTE: u8>(word: u64) -> u64 {
    let low = (word ^ (ONES * (QUOTE ^ b' ') as u64)).wrapping_sub(ONES * (b' ' + 1) as u64);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (low | backslash) & !word & HIGHS
}

/// The first byte at or after `from` that is not JSON white space, or the length of `bytes`.
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

/// The first byte at or after `from` that is not a digit, or the length of `bytes`.
#[inline]
pub(crate) fn digits(bytes: &[u8], from: usize) -> usize {
    position(bytes, from, |byte| !byte.is_ascii_digit())
}

/// The first byte at or after `from` that matches `stop`, or the length of `bytes`.
#[inline]
pub(crate) fn position(bytes: &[u8], from: usize, stop: impl Fn(&u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(stop).unwrap_or(rest.len())
}

#[inline]
fn word_at(bytes: &[u8], from: usize) -> Option<u64> {
    bytes.get(from..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
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
    fn finds_each_stopping_byte_at_each_offset() {
        for at in 0..40 {
            for stop in [b'"', b'\\', 0, 0x1f, b'\n'] {
                let mut bytes = vec![b'!'; 41];
                bytes[at] = stop;
                assert_eq!(string_run::<b'"'>(&bytes, 0), at, "{stop:#x}");
                assert_eq!(string_run::<b'"'>(&bytes, at + 1), 41);
            }
        }
    }

    #[test]
    fn stops_at_exactly_the_bytes_that_end_a_plain_run() {
        for byte in 0..=255_u8 {
            let text = [b'!', 0xff, b' ', byte, 0x7f, b'%', b'!', b'!'];
            let stops = |quote| byte < 0x20 || byte == b'\\' || byte == quote;
            assert_eq!(string_run::<b'"'>(&text, 0), if stops(b'"') { 3 } else { 8 }, "{byte:#x}");
            assert_eq!(string_run::<b'\''>(&text, 0), if stops(b'\'') { 3 } else { 8 }, "{byte:#x}");
        }
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
