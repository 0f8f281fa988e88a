//! The decoder that all protocols share: bytes to frames, frames to JSON, JSON to the events of one reply.

use std::ops::Range;

use cog_json::{Limits, Node, Reader};
use cog_spec::ModelEvent;
use memchr::memchr;

use super::{
    DecodeError, Decoder, VendorError,
    frames::{Frame, Frames},
    reply::{Reply, ReplyState},
};

/// One event, line or body of a reply, as JSON.
pub(crate) struct Event<'a> {
    /// The name that the transport gives it; empty for lines and bodies.
    name: &'a str,
    pub(crate) node: Node<'a>,
}

impl<'a> Event<'a> {
    /// Returns the type in the event, otherwise its name: some servers send only one of them.
    pub(crate) fn kind(&self) -> &'a str {
        self.node.get_str("type").unwrap_or(self.name)
    }
}

/// The function with which a protocol reads one event.
pub(crate) type ReadEvent = fn(&mut Reply<'_>, Event<'_>) -> Result<(), DecodeError>;

/// The text that OpenAI's servers send after the last event. Gateways also send it in the protocols of other vendors,
/// which have a final event of their own: there it ends the reply and says nothing else.
const DONE: &str = "[DONE]";

/// The name of an event that reports an error, in every protocol.
const ERROR: &str = "error";

/// Splits the bytes into frames and reads each of them.
pub(crate) struct FrameDecoder {
    frames: Frames,
    reader: FrameReader,
}

/// The state of a reply between two frames.
struct FrameReader {
    state: ReplyState,
    read: ReadEvent,
    json: Reader,
    template: Template,
    surrogates: SurrogateJoiner,
}

impl FrameDecoder {
    /// Creates the decoder of a protocol that streams server-sent events, of at most `limit` bytes each.
    pub(crate) fn events(limit: usize, read: ReadEvent) -> Box<dyn Decoder> {
        Self::boxed(Frames::events(limit), read)
    }

    /// Creates the decoder of a protocol that streams lines of JSON, of at most `limit` bytes each.
    pub(crate) fn lines(limit: usize, read: ReadEvent) -> Box<dyn Decoder> {
        Self::boxed(Frames::lines(limit), read)
    }

    fn boxed(frames: Frames, read: ReadEvent) -> Box<dyn Decoder> {
        let reader = FrameReader {
            state: ReplyState::default(),
            read,
            json: Reader::new(Limits::default()),
            template: Template::default(),
            surrogates: SurrogateJoiner::default(),
        };
        Box::new(Self { frames, reader })
    }
}

impl FrameReader {
    fn read(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        // Most frames of a reply differ only in their text. They skip the JSON parser.
        if let Some(text) = self.template.text_of(frame) {
            self.state.writer(out).push_text(text);
            return if self.surrogates.is_waiting() { Err(half_a_character()) } else { Ok(()) };
        }
        match frame.text.trim() {
            DONE => return self.state.writer(out).end(),
            // Some gateways send the comments of their keep-alive as data: `data: : PROCESSING`.
            comment if comment.is_empty() || comment.starts_with(':') => return Ok(()),
            _ => {}
        }
        let before = out.len();
        let joined = self.surrogates.join(frame.text);
        let text = joined.as_deref().unwrap_or(frame.text);
        self.read_json(&Frame { event: frame.event, text }, out)?;
        // Frames without text, such as a ping, may come between the halves; text may not.
        if self.surrogates.is_overdue() && out.iter().skip(before).any(has_text) {
            return Err(half_a_character());
        }
        Ok(())
    }

    fn read_json(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        self.state.begin_frame();
        let node = match self.json.read(frame.text) {
            Ok(node) => node,
            // A proxy that fails after the head of a reply has been sent reports its error as text.
            Err(_) if frame.event == ERROR => {
                return Err(DecodeError::Vendor(VendorError::from_text(frame.text.trim())));
            }
            Err(error) => return Err(DecodeError::NotJson(error.to_string())),
        };
        if frame.event == ERROR {
            return Err(DecodeError::Vendor(VendorError::of_event(node)));
        }
        (self.read)(&mut self.state.writer(out), Event { name: frame.event, node })?;
        if let Some(range) = self.state.only_text() {
            self.template.learn(frame, range);
        }
        Ok(())
    }
}

fn has_text(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::Text(text) if !text.is_empty())
}

fn half_a_character() -> DecodeError {
    DecodeError::NotJson("half of a character: an unpaired surrogate".to_owned())
}

impl Decoder for FrameDecoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.push(bytes, &mut |frame| reader.read(&frame, out))
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let Self { frames, reader } = self;
        frames.finish(&mut |frame| reader.read(&frame, out))?;
        if reader.surrogates.is_waiting() {
            return Err(half_a_character());
        }
        reader.state.writer(out).close()
    }
}

// Halves of a character, which a server may split between two frames. JavaScript strings consist of UTF-16 units: a
// server that splits them writes `\ud83d` at the end of text and `\ude00` at the start of the next one, which are not
// characters.

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
    /// Returns the text of a frame with the half of an earlier frame, and without a half at the end of a string. None
    /// if nothing is changed.
    pub(super) fn join(&mut self, text: &str) -> Option<String> {
        let mut earlier = self.high.take();
        let mut joined = String::new();
        let mut copied = 0;
        let mut at = 0;
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

    /// Returns whether a half waits for its other half.
    pub(super) fn is_waiting(&self) -> bool {
        self.high.is_some()
    }

    /// Returns whether a half of an earlier frame was not joined in the last one.
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

/// Returns whether a string starts before `start`: with a quote that is not part of the escape before `escaped`.
fn starts_string(text: &str, escaped: usize, start: usize) -> bool {
    text.get(escaped..start).is_some_and(|between| between.ends_with('"'))
}

// Reuses the structure of a frame for later frames that differ only in their text.

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

#[cfg(test)]
mod template_tests {
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
