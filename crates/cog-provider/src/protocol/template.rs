//! Reuses the structure of a frame for later frames that differ only in their text.

use std::ops::Range;

use super::frames::Frame;

/// The maximum size of a remembered frame, and of text extracted from one, in bytes.
const MAX_LENGTH: usize = 4096;

/// The maximum number of digits of a number that may differ.
const MAX_DIGITS: usize = 19;

/// The member that differs in every event of a Responses stream, and that no decoder reads.
const SEQUENCE: &str = "\"sequence_number\":";

/// The parts before and after the text in a frame that contained only text of the answer.
///
/// A vendor repeats the same members around each text, except for the number of the event. If a frame equals the
/// remembered one except for that number and that one string, parsing it would find the same members. So its text is
/// extracted without parsing: string contents without quotes, escapes and control characters cannot change the
/// structure around them.
#[derive(Default)]
pub(super) struct Template {
    event: String,
    /// The part up to the opening quote of the text; empty before the first frame.
    before: Part,
    /// The part from the closing quote on.
    after: Part,
}

/// The text before or after the answer's text, with at most one number that may differ.
#[derive(Default)]
struct Part {
    /// The text up to the number, or all of it.
    head: String,
    /// The text after the number.
    tail: String,
    /// Whether there is a number.
    is_numbered: bool,
}

impl Template {
    /// Remembers a frame that contained only text, at `range`.
    pub(super) fn learn(&mut self, frame: &Frame<'_>, range: Range<usize>) {
        let Some(before) = frame.text.get(..range.start) else { return };
        let Some(after) = frame.text.get(range.end..) else { return };
        if frame.event.len() + before.len() + after.len() > MAX_LENGTH {
            return;
        }
        frame.event.clone_into(&mut self.event);
        self.before.learn(before);
        self.after.learn(after);
    }

    /// Returns the text of a frame that equals the remembered one except for its text, or `None`.
    pub(super) fn text_of<'a>(&self, frame: &Frame<'a>) -> Option<&'a str> {
        if self.before.head.is_empty() || frame.event != self.event {
            return None;
        }
        let text = self.after.strip_suffix(self.before.strip_prefix(frame.text)?)?;
        let is_plain = !text.is_empty() && text.len() <= MAX_LENGTH && text.bytes().fold(true, is_plain);
        is_plain.then_some(text)
    }
}

impl Part {
    /// Remembers this text. Its memory is reused: each frame that is parsed is learned.
    fn learn(&mut self, text: &str) {
        let number = text.find(SEQUENCE).map(|start| text.split_at(start + SEQUENCE.len()));
        let parts = number.and_then(|(head, rest)| Some((head, without_number(rest)?)));
        let (head, tail) = parts.unwrap_or((text, ""));
        self.is_numbered = parts.is_some();
        head.clone_into(&mut self.head);
        tail.clone_into(&mut self.tail);
    }

    fn strip_prefix<'a>(&self, text: &'a str) -> Option<&'a str> {
        let rest = text.strip_prefix(self.head.as_str())?;
        if self.is_numbered { without_number(rest)?.strip_prefix(self.tail.as_str()) } else { Some(rest) }
    }

    fn strip_suffix<'a>(&self, text: &'a str) -> Option<&'a str> {
        if !self.is_numbered {
            return text.strip_suffix(self.head.as_str());
        }
        let rest = text.strip_suffix(self.tail.as_str())?;
        let start = rest.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        let (rest, number) = rest.split_at_checked(start)?;
        without_number(number)?;
        rest.strip_suffix(self.head.as_str())
    }
}

/// Returns what follows an integer as JSON writes it, or `None` if the text does not start with one.
fn without_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number = text.strip_suffix(rest)?;
    let is_integer = (1..=MAX_DIGITS).contains(&number.len()) && (number == "0" || !number.starts_with('0'));
    is_integer.then_some(rest)
}

/// Returns whether a string needs no unescaping, up to and including this byte.
fn is_plain(before: bool, byte: u8) -> bool {
    before & (byte >= b' ') & (byte != b'"') & (byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame<'_> {
        Frame { event: "", text }
    }

    fn learned() -> Template {
        let mut template = Template::default();
        template.learn(&frame(r#"{"a": "xyz", "b": 1}"#), 7..10);
        template
    }

    #[test]
    fn takes_text_of_frame_that_differs_only_there() {
        let template = learned();
        assert_eq!(template.text_of(&frame(r#"{"a": "é", "b": 1}"#)), Some("é"));
        assert_eq!(template.text_of(&frame(r#"{"a": "{'a': 1}", "b": 1}"#)), Some("{'a': 1}"));
    }

    #[test]
    fn rejects_every_other_frame() {
        let others = [
            r#"{"a": "", "b": 1}"#,
            r#"{"a": "x", "b": 2}"#,
            r#"{"c": "x", "b": 1}"#,
            r#"{"a": "x\n", "b": 1}"#,
            r#"{"a": "x", "a": "y", "b": 1}"#,
            "{\"a\": \"\u{1}\", \"b\": 1}",
            r#"{"a": "", "b": 1"#,
            r#"{"a": "#,
            "",
        ];
        for other in others {
            assert_eq!(learned().text_of(&frame(other)), None, "{other}");
        }
        assert_eq!(learned().text_of(&Frame { event: "ping", ..frame(r#"{"a": "x", "b": 1}"#) }), None);
        assert_eq!(Template::default().text_of(&frame("x")), None);
    }

    /// The number is before the text, and after it.
    const NUMBERED: [&str; 2] = [
        r#"{"type":"delta","sequence_number":9,"delta":"xyz","index":0}"#,
        r#"{"type":"delta","delta":"xyz","index":0,"sequence_number":9}"#,
    ];

    #[test]
    fn takes_text_of_frame_that_also_differs_in_its_number() {
        for text in NUMBERED {
            let mut template = Template::default();
            let start = text.find("xyz").unwrap();
            template.learn(&frame(text), start..start + 3);
            for number in ["0", "10", "1234567890123456789"] {
                let other = text.replace(":9", &format!(":{number}")).replace("xyz", "é 1");
                assert_eq!(template.text_of(&frame(&other)), Some("é 1"), "{other}");
            }
            for number in ["", "01", "-1", "1.5", "1e3", "\"1\"", " 1", "12345678901234567890"] {
                let other = text.replace(":9", &format!(":{number}"));
                assert_eq!(template.text_of(&frame(&other)), None, "{other}");
            }
            assert_eq!(template.text_of(&frame(&text.replace(":0", ":1"))), None);
        }
    }
}
