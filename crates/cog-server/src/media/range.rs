use axum::http::{HeaderMap, Method, header};

/// The part of a media file that a request selects (RFC 9110 section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// The complete file: no range, or one that is not supported, such as several parts.
    Complete,
    /// The bytes from `first` to `last`, inclusive.
    Part { first: u64, last: u64 },
    /// A range that begins past the end of the file.
    PastEnd,
}

impl Range {
    /// Returns the range of a request for a file of this length and entity tag. `If-Range` with another tag, or with a date,
    /// selects the complete file.
    pub(super) fn new(method: &Method, headers: &HeaderMap, length: u64, tag: &str) -> Self {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
        let is_current = text(header::IF_RANGE).is_none_or(|known| known == tag);
        match text(header::RANGE).filter(|_| method == Method::GET && is_current) {
            Some(range) => Self::read(range, length).unwrap_or(Self::Complete),
            None => Self::Complete,
        }
    }

    fn read(text: &str, length: u64) -> Option<Self> {
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        let (first, last) = match (first, last) {
            ("", count) => (length.saturating_sub(number(count)?), u64::MAX),
            (first, "") => (number(first)?, u64::MAX),
            (first, last) => (number(first)?, number(last)?),
        };
        match length.checked_sub(1) {
            _ if last < first => None,
            Some(end) if first <= end => Some(Self::Part { first, last: last.min(end) }),
            _ => Some(Self::PastEnd),
        }
    }
}

/// Parses digits only; a number that is too large counts as the end of the file.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(headers: &[(&'static str, &'static str)]) -> Range {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Range::new(&Method::GET, &headers.collect(), 10, "\"tag\"")
    }

    #[test]
    fn parses_every_form_of_one_range() {
        for (text, first, last) in [
            ("bytes=0-0", 0, 0),
            ("bytes=2-5", 2, 5),
            ("bytes=2-99", 2, 9),
            ("bytes=9-", 9, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-99", 0, 9),
            ("Bytes= 0-99999999999999999999", 0, 9),
        ] {
            assert_eq!(range_of(&[("range", text)]), Range::Part { first, last }, "{text}");
        }
    }

    #[test]
    fn range_past_the_end_fails_and_unsupported_range_is_ignored() {
        for text in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(range_of(&[("range", text)]), Range::PastEnd, "{text}");
        }
        for text in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "bytes=+1-2", "items=0-1"]
        {
            assert_eq!(range_of(&[("range", text)]), Range::Complete, "{text}");
        }
    }

    #[test]
    fn if_range_requires_the_same_etag() {
        let with = |tag| range_of(&[("range", "bytes=0-1"), ("if-range", tag)]);
        assert_eq!(with("\"tag\""), Range::Part { first: 0, last: 1 });
        for other in ["\"other\"", "W/\"tag\"", "Wed, 04 Feb 2026 12:00:00 GMT"] {
            assert_eq!(with(other), Range::Complete, "{other}");
        }
        let headers = HeaderMap::from_iter([(header::RANGE, "bytes=0-1".parse().unwrap())]);
        assert_eq!(Range::new(&Method::HEAD, &headers, 10, "\"tag\""), Range::Complete);
    }
}
