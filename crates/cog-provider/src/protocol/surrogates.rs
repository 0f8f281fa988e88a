//! Joins the halves of a character that a server splits between two frames.
//!
//! JavaScript strings consist of UTF-16 units. A server that splits them writes `\ud83d` at the end of a text and `\ude00`
//! at the start of the next one, which are not characters.

use memchr::memchr;

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// Joins halves of characters across the frames of a reply.
#[derive(Default)]
pub(super) struct SurrogateJoiner {
    /// The escape of a first half, without its second half.
    high: Option<String>,
    /// The half has not been joined in a later frame.
    is_overdue: bool,
}

impl SurrogateJoiner {
    /// Returns the text of a frame with the half of an earlier frame, and without a half at the end of a string. None if
    /// nothing is changed.
    pub(super) fn join(&mut self, text: &str) -> Option<String> {
        let mut earlier = self.high.take();
        let (mut joined, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(start) = next_escape(text, at) {
            let end = start + ESCAPE;
            match unit(text, start) {
                Some(0xd800..=0xdbff) if matches!(unit(text, end), Some(0xdc00..=0xdfff)) => {
                    at = end + ESCAPE;
                    continue;
                }
                Some(0xd800..=0xdbff) if text.get(end..).is_some_and(|rest| rest.starts_with('"')) => {
                    joined.push_str(text.get(copied..start).unwrap_or_default());
                    copied = end;
                    self.high = text.get(start..end).map(str::to_owned);
                }
                Some(0xdc00..=0xdfff) if starts_string(text, at, start) && earlier.is_some() => {
                    joined.push_str(text.get(copied..start).unwrap_or_default());
                    joined.push_str(&earlier.take().unwrap_or_default());
                    copied = start;
                }
                None => {
                    at = start + 2;
                    continue;
                }
                Some(_) => {}
            }
            at = end;
        }
        self.is_overdue = earlier.is_some();
        self.high = self.high.take().or(earlier);
        (copied > 0).then(|| joined + text.get(copied..).unwrap_or_default())
    }

    /// Whether a half waits for its other half.
    pub(super) fn is_waiting(&self) -> bool {
        self.high.is_some()
    }

    /// Whether a half of an earlier frame was not joined in the last one.
    pub(super) fn is_overdue(&self) -> bool {
        self.is_overdue
    }
}

/// Returns the offset of the next backslash.
fn next_escape(text: &str, from: usize) -> Option<usize> {
    memchr(b'\\', text.as_bytes().get(from..)?).map(|found| from + found)
}

/// Returns the UTF-16 unit of the escape at an offset.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Whether a string starts before `start`: with a quote that is not part of the escape before `escaped`.
fn starts_string(text: &str, escaped: usize, start: usize) -> bool {
    text.get(escaped..start).is_some_and(|between| between.ends_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_halves_of_two_frames() {
        let mut joiner = SurrogateJoiner::default();
        assert_eq!(joiner.join(r#"{"t":"a\ud83d"}"#).as_deref(), Some(r#"{"t":"a"}"#));
        assert!(joiner.is_waiting() && !joiner.is_overdue());
        assert_eq!(joiner.join(r#"{"ping":"\n"}"#), None);
        assert!(joiner.is_overdue());
        assert_eq!(joiner.join(r#"{"t":"\ude00b\uD83D"}"#).as_deref(), Some(r#"{"t":"\ud83d\ude00b"}"#));
        assert_eq!(joiner.join(r#"{"t":"\uDE00"}"#).as_deref(), Some(r#"{"t":"\uD83D\uDE00"}"#));
        assert!(!joiner.is_waiting() && !joiner.is_overdue());
    }

    #[test]
    fn leaves_other_escapes_as_they_are() {
        let mut joiner = SurrogateJoiner::default();
        for text in [
            r#"{"t":"\ud83d\ude00 \\ud83d"}"#,
            r#"{"t":"\ud83d x"}"#,
            r#"{"t":"x\ude00"}"#,
            r#"{"t":"\"\ude00"}"#,
            r#"{"t":"\ud8"#,
            "é\\u12é\"",
        ] {
            assert_eq!(joiner.join(text), None, "{text}");
            assert!(!joiner.is_waiting(), "{text}");
        }
    }
}
