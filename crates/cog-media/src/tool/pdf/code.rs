//! How long the codes of a composite font are: its `Encoding` says so, and not its map to Unicode (ISO 32000-1,
//! 9.7.6.2).

use lopdf::{Dictionary, Document, Object};

/// The maximum number of ranges of codes that are read.
const MAX_RANGES: usize = 256;
/// The maximum length of a code in bytes.
const MAX_LENGTH: usize = 4;

/// The lengths of the codes of a font.
pub(super) struct CodeLengths {
    ranges: Vec<Range>,
    /// The length of a code in no range.
    otherwise: usize,
}

/// The codes between two, byte by byte.
struct Range {
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Every code has one byte.
pub(super) static ONE_BYTE: CodeLengths = CodeLengths { ranges: Vec::new(), otherwise: 1 };

impl CodeLengths {
    /// Reads the encoding of a composite font. No stream of it is larger than `max_inflated` bytes.
    pub(super) fn read(document: &Document, font: &Dictionary, max_inflated: usize) -> Self {
        match font.get_deref(b"Encoding", document) {
            Ok(Object::Name(name)) => Self::of_name(name),
            Ok(Object::Stream(stream)) => {
                let content = stream.get_plain_content_with_limit(max_inflated).unwrap_or_default();
                let ranges = code_space(&content);
                let other = stream.dict.get_deref(b"UseCMap", document).and_then(Object::as_name);
                match other {
                    Ok(name) if ranges.is_empty() => Self::of_name(name),
                    _ => Self::of_ranges(ranges),
                }
            }
            _ => Self::of_ranges(Vec::new()),
        }
    }

    fn of_ranges(ranges: Vec<Range>) -> Self {
        let otherwise = ranges.iter().map(|range| range.first.len()).min().unwrap_or(2);
        Self { ranges, otherwise }
    }

    /// Returns the lengths of an encoding that PDF defines (table 118). Any other one has two bytes.
    fn of_name(name: &[u8]) -> Self {
        let ranges: &[(&[u8], &[u8])] = if has_part(name, b"UCS2") {
            &[]
        } else if has_part(name, b"UTF32") {
            &[(b"\0\0\0\0", b"\0\x10\xff\xff")]
        } else if has_part(name, b"UTF16") {
            &[(b"\0\0", b"\xd7\xff"), (b"\xe0\0", b"\xff\xff"), (b"\xd8\0\xdc\0", b"\xdb\xff\xdf\xff")]
        } else if has_part(name, b"RKSJ") {
            &[(b"\x00", b"\x80"), (b"\xa0", b"\xdf"), (b"\x81\x40", b"\x9f\xfc"), (b"\xe0\x40", b"\xfc\xfc")]
        } else if has_part(name, b"GBK2K") {
            &[(b"\0", b"\x7f"), (b"\x81\x40", b"\xfe\xfe"), (b"\x81\x30\x81\x30", b"\xfe\x39\xfe\x39")]
        } else if has_part(name, b"CNS") {
            &[(b"\0", b"\x80"), (b"\x8e\xa1\xa1\xa1", b"\x8e\xa7\xfe\xfe"), (b"\xa1\xa1", b"\xfe\xfe")]
        } else if has_part(name, b"EUC") || has_part(name, b"B5") || has_part(name, b"UHC") {
            &[(b"\0", b"\x80"), (b"\x81\x40", b"\xfe\xfe")]
        } else {
            &[]
        };
        let ranges = ranges.iter().map(|(first, last)| Range { first: first.to_vec(), last: last.to_vec() });
        Self { ranges: ranges.collect(), otherwise: if has_part(name, b"UTF32") { 4 } else { 2 } }
    }

    /// Returns the codes of a string.
    pub(super) fn codes<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let length = self.length_at(rest).min(rest.len());
            let (code, after) = rest.split_at_checked(length).filter(|(code, _)| !code.is_empty())?;
            rest = after;
            Some(code)
        })
    }

    /// Returns the length of the code at the start of these bytes.
    fn length_at(&self, bytes: &[u8]) -> usize {
        let range = self.ranges.iter().find(|range| {
            let bounds = range.first.iter().zip(&range.last);
            bytes.len() >= range.first.len()
                && bounds.zip(bytes).all(|((first, last), byte)| (first..=last).contains(&byte))
        });
        range.map_or(self.otherwise, |range| range.first.len())
    }
}

fn has_part(name: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(name, part).is_some()
}

/// Returns the code space of an encoding: pairs of numbers between `begincodespacerange` and `endcodespacerange`.
fn code_space(content: &[u8]) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut rest = content;
    while let Some(begin) = memchr::memmem::find(rest, b"begincodespacerange") {
        rest = rest.get(begin + b"begincodespacerange".len()..).unwrap_or_default();
        let end = memchr::memmem::find(rest, b"endcodespacerange").unwrap_or(rest.len());
        let mut numbers =
            rest.get(..end).unwrap_or_default().split(|byte| *byte == b'<').skip(1).map(hexadecimal);
        while let (Some(first), Some(last)) = (numbers.next(), numbers.next()) {
            if ranges.len() < MAX_RANGES
                && first.len() == last.len()
                && (1..=MAX_LENGTH).contains(&first.len())
            {
                ranges.push(Range { first, last });
            }
        }
    }
    ranges
}

/// Returns the bytes of a number that `>` ends.
fn hexadecimal(text: &[u8]) -> Vec<u8> {
    let digits = text.iter().take_while(|byte| **byte != b'>');
    let digits = digits.filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> =
        digits.filter_map(|digit| u8::try_from(digit).ok()).take(2 * MAX_LENGTH + 2).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit)).collect()
}

#[cfg(test)]
mod tests {
    use lopdf::{Stream, dictionary};

    use super::*;

    fn codes(encoding: Object, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut document = Document::new();
        let encoding = document.add_object(encoding);
        let font = dictionary! { "Encoding" => encoding };
        let lengths = CodeLengths::read(&document, &font, 1 << 20);
        lengths.codes(bytes).map(<[u8]>::to_vec).collect()
    }

    fn lengths(name: &str, bytes: &[u8]) -> Vec<usize> {
        codes(Object::Name(name.as_bytes().to_vec()), bytes).iter().map(Vec::len).collect()
    }

    #[test]
    fn name_of_the_encoding_decides() {
        assert_eq!(lengths("Identity-H", b"\0A\0B\0"), [2, 2, 1]);
        assert_eq!(lengths("UniGB-UCS2-H", b"\0A\x4e\x2d"), [2, 2]);
        assert_eq!(lengths("UniJIS-UTF16-V", b"\0A\xd8\x40\xdc\x0b\0B"), [2, 4, 2]);
        assert_eq!(lengths("90ms-RKSJ-H", b"A\x82\xa0\xb1"), [1, 2, 1]);
        assert_eq!(lengths("GBK-EUC-H", b"A\xd6\xd0B"), [1, 2, 1]);
        assert_eq!(lengths("EUC-H", b"A\x8e\xb1\xb0\xa1"), [1, 2, 2]);
        assert_eq!(lengths("CNS-EUC-V", b"A\x8e\xa2\xb0\xa1\xc4\xe3"), [1, 4, 2]);
        assert_eq!(lengths("GBK2K-V", b"A\x81\x30\x81\x30\x81\x40"), [1, 4, 2]);
        assert_eq!(lengths("ETen-B5-H", b"A\xa4\x40B"), [1, 2, 1]);
        assert_eq!(lengths("H", b"\x30\x21\x30\x22"), [2, 2]);
    }

    #[test]
    fn code_space_of_an_embedded_encoding_decides() {
        let map = |space: &str| {
            let text = format!("1 begincodespacerange {space} endcodespacerange");
            Object::from(Stream::new(Dictionary::new(), text.into_bytes()))
        };
        assert_eq!(codes(map("<00> <FF>"), b"AB"), [b"A", b"B"]);
        assert_eq!(codes(map("<00><7f>\n<8000> <ffFF>"), b"A\x80B\x7f"), [&b"A"[..], b"\x80B", b"\x7f"]);
        for damaged in ["", "<", "<00", "<0> <1> <00> <000000>", "<000000000000> <000000000000>"] {
            assert!(codes(map(damaged), b"ABC").concat() == b"ABC", "{damaged}");
        }
    }
}
