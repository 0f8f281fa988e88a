use axum::http::{HeaderMap, header};
use cog_spec::{Code, ErrorBody};

/// The part of an upload that a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// All of it.
    Complete,
    /// The bytes from `first` to `last`, of `total` if known: `Content-Range: bytes 0-99/200`.
    Part { first: u64, last: u64, total: Option<u64> },
    /// No bytes: the client queries the progress (`Content-Range: bytes */200` or `*/*`).
    None,
}

impl Span {
    /// Reads `Content-Range` (RFC 9110 section 14.4).
    ///
    /// # Errors
    /// E1001 for an invalid header.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, ErrorBody> {
        let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(Self::Complete) };
        let text = value.to_str().unwrap_or("?").trim();
        Self::read(text).ok_or_else(|| wrong(text))
    }

    fn read(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let total = if total == "*" { None } else { Some(number(total)?) };
        if range == "*" {
            return Some(Self::None);
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let fits = first <= last && total.is_none_or(|total| last < total);
        fits.then_some(Self::Part { first, last, total })
    }

    /// Whether the upload is complete after this span.
    pub(super) fn is_last(self) -> bool {
        match self {
            Self::Complete => true,
            Self::Part { last, total, .. } => total == Some(last + 1),
            Self::None => false,
        }
    }
}

/// Parses up to 15 digits, more than any upload needs.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn wrong(text: &str) -> ErrorBody {
    let text: String = text.chars().take(60).collect();
    let message = format!("header Content-Range: `{}` is not valid", text.escape_debug());
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("Use `bytes FIRST-LAST/TOTAL`, or `bytes */TOTAL` to get the progress.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_content_ranges_only() {
        let part = |first, last, total| Some(Span::Part { first, last, total });
        assert_eq!(Span::read("bytes 0-99/200"), part(0, 99, Some(200)));
        assert_eq!(Span::read("bytes 7-7/*"), part(7, 7, None));
        assert_eq!(Span::read("bytes */200"), Some(Span::None));
        assert_eq!(Span::read("bytes */*"), Some(Span::None));
        for text in [
            "",
            "bytes",
            "bytes 0-9",
            "bytes 9-0/10",
            "bytes 0-10/10",
            "bytes -1-2/3",
            "bytes 0-1/x",
            "bytes +0-1/3",
            "items 0-1/3",
            "bytes 0-18446744073709551616/*",
        ] {
            assert_eq!(Span::read(text), None, "{text}");
        }
    }

    #[test]
    fn upload_ends_with_its_last_byte() {
        let span = |text| Span::read(text).unwrap();
        assert!(span("bytes 5-9/10").is_last() && Span::Complete.is_last());
        assert!(!span("bytes 5-8/10").is_last() && !span("bytes 5-9/*").is_last());
    }
}
