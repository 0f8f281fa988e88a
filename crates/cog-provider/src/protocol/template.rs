//! Reuses the structure of a frame for later frames that differ only in their text.

use std::ops::Range;

use super::frames::Frame;

/// The maximum size of a remembered frame, and of a text extracted from one, in bytes.
const MAX_LENGTH: usize = 4096;

/// The parts before and after the text in a frame that contained only text of the answer.
///
/// A vendor repeats the same members around each text. If a frame equals the remembered one except for that one
/// string, parsing it would find the same members. So its text is extracted without parsing: string contents without
/// quotes, escapes and control characters cannot change the structure around them.
#[derive(Default)]
pub(super) struct Template {
    event: String,
    /// The part up to the opening quote of the text; empty before the first frame.
    before: String,
    /// The part from the closing quote on.
    after: String,
}

impl Template {
    /// Remembers a frame that contained only text, at `range`.
    pub(super) fn learn(&mut self, frame: &Frame<'_>, range: Range<usize>) {
        let (Some(before), Some(after)) = (frame.text.get(..range.start), frame.text.get(range.end..)) else {
            return;
        };
        if frame.event.len() + before.len() + after.len() > MAX_LENGTH {
            return;
        }
        for (part, text) in
            [(&mut self.event, frame.event), (&mut self.before, before), (&mut self.after, after)]
        {
            part.clear();
            part.push_str(text);
        }
    }

    /// Returns the text of a frame that equals the remembered one except for its text, or `None`.
    pub(super) fn text_of<'a>(&self, frame: &Frame<'a>) -> Option<&'a str> {
        if self.before.is_empty() || frame.event != self.event {
            return None;
        }
        let text = frame.text.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        let is_plain = !text.is_empty() && text.len() <= MAX_LENGTH && text.bytes().fold(true, is_plain);
        is_plain.then_some(text)
    }
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
}
