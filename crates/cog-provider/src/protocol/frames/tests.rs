use proptest::prelude::*;

use super::*;
use crate::protocol::MAX_FRAME_BYTES;

/// The limit in these tests; longer than any frame but those that exceed it on purpose.
const LIMIT: usize = 1 << 10;

/// The frames of a reply, each as `name|text`, and the error that ended it.
type Outcome = (Vec<String>, Option<DecodeError>);

/// Reads a reply that arrives in these parts.
fn read<'a>(create: fn(usize) -> Frames, parts: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Outcome {
    let mut frames = create(limit);
    let mut found = Vec::new();
    let mut sink = |frame: Frame<'_>| {
        found.push(format!("{}|{}", frame.event, frame.text));
        Ok(())
    };
    let pushed = parts.into_iter().try_for_each(|part| frames.push(part, &mut sink));
    let result = pushed.and_then(|()| frames.finish(&mut sink));
    (found, result.err())
}

/// Returns the frames of a valid reply.
fn frames(create: fn(usize) -> Frames, bytes: &[u8]) -> Vec<String> {
    let (found, error) = read(create, [bytes], LIMIT);
    assert_eq!(error, None);
    found
}

/// Returns the error of an invalid reply.
fn error(create: fn(usize) -> Frames, bytes: &[u8]) -> DecodeError {
    read(create, [bytes], LIMIT).1.unwrap()
}

#[test]
fn detects_events_lines_and_bodies() {
    assert_eq!(frames(Frames::events, b"data: 1\n\ndata: 2\n\n"), ["|1", "|2"]);
    assert_eq!(frames(Frames::events, "\u{feff}data: 1\n\n".as_bytes()), ["|1"]);
    assert_eq!(frames(Frames::events, b" \n{\"a\":\n1}"), ["|{\"a\":\n1}"]);
    assert_eq!(frames(Frames::lines, b"{\"a\":1}\r\n\n{\"a\":2}"), ["|{\"a\":1}", "|{\"a\":2}"]);
}

#[test]
fn rejects_empty_reply() {
    assert_eq!(error(Frames::events, b""), DecodeError::Empty);
    assert_eq!(error(Frames::lines, b" \r\n"), DecodeError::Empty);
}

#[test]
fn web_page_is_reported_with_its_title() {
    let page = b"<!doctype html><html><head><TITLE>Sign in\n to the WiFi</TITLE>";
    assert_eq!(error(Frames::events, page), DecodeError::WebPage("Sign in to the WiFi".to_owned()));
    let long = [b"<html><body>".as_slice(), &[b'x'; 9000]].concat();
    assert!(matches!(error(Frames::lines, &long), DecodeError::WebPage(text) if text.len() == 80));
}

#[test]
fn other_text_is_reported_with_its_first_words() {
    let expected = DecodeError::NotJson("it begins with `upstream connect error`".to_owned());
    assert_eq!(error(Frames::events, b"upstream connect error"), expected);
}

#[test]
fn reply_without_its_end_is_incomplete() {
    for text in ["data: {\"a\"", "dat", ": ping\n\n", "{\"a\": [1,"] {
        assert_eq!(error(Frames::events, text.as_bytes()), DecodeError::Incomplete, "{text}");
    }
    assert_eq!(error(Frames::lines, b"{\"a\":1}\n{\"a\""), DecodeError::Incomplete);
}

#[test]
fn half_a_character_is_an_error() {
    assert_eq!(error(Frames::events, b"{\"a\":\"\xC3\"}"), DecodeError::NotUtf8);
    assert_eq!(error(Frames::lines, b"{\"a\":\"\xC3\"}\n"), DecodeError::NotUtf8);
}

#[test]
fn line_over_the_limit_is_an_error() {
    let line = |length: usize| [b"{\"a\":\"".as_slice(), &vec![b'x'; length - 8], b"\"}\n"].concat();
    assert_eq!(frames(Frames::lines, &line(LIMIT)).len(), 1);
    assert_eq!(error(Frames::lines, &line(LIMIT + 1)), DecodeError::FrameTooLarge(LIMIT));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_split_gives_the_frames_of_the_reference(bytes in reply_bytes(), sizes in part_sizes()) {
        for (create, reference) in [
            (Frames::events as fn(usize) -> Frames, reference_events as fn(&[u8]) -> Outcome),
            (Frames::lines, reference_lines),
        ] {
            let expected = reference(&bytes);
            prop_assert_eq!(&read(create, [bytes.as_slice()], SMALL), &expected, "at once");
            prop_assert_eq!(&read(create, split(&bytes, &sizes), SMALL), &expected, "split");
        }
    }
}

/// The limit in the property test, which some replies exceed.
const SMALL: usize = 24;

/// Generates replies from the tokens of both formats, valid or not, and from arbitrary bytes.
fn reply_bytes() -> impl Strategy<Value = Vec<u8>> {
    let first = prop::sample::select(vec!["data: 1", "{\"a\":1}", "[1]", "<p>", "\u{feff}event: e", " ", ""]);
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "\n", "\n\n", "\r", "\r\n", "data: x", "data:", "data", "event: e", "event", ": c", "id: 7", ":", " ",
            "{\"a\":\"é\"}", "{", "}", "[1]", "\"", "é漢🙂", "\u{feff}", "[DONE]", "xxxxxxxxxxxxxxxx",
        ]).prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    (first, prop::collection::vec(token, 0..24))
        .prop_map(|(first, tokens)| [first.as_bytes().to_vec(), tokens.concat()].concat())
}

/// Generates the sizes of the parts in which a reply arrives; the last size repeats.
fn part_sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..12, 1..40)
}

fn split<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    for size in sizes.iter().chain(std::iter::repeat(&sizes[sizes.len() - 1])) {
        if rest.is_empty() {
            break;
        }
        let (part, after) = rest.split_at((*size).min(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}

/// Reads a complete reply of a protocol that streams events.
fn reference_events(bytes: &[u8]) -> Outcome {
    let text = significant(bytes);
    match text.first() {
        None => (Vec::new(), Some(DecodeError::Empty)),
        Some(b'<') => (Vec::new(), Some(web_page(&text[..text.len().min(MAX_EXCERPT)]))),
        Some(b'{' | b'[') if text.len() > SMALL => (Vec::new(), Some(DecodeError::FrameTooLarge(SMALL))),
        Some(b'{' | b'[') => outcome([last_line(text)]),
        Some(_) => reference_sse(text),
    }
}

/// Reads a complete reply of a protocol that streams lines.
fn reference_lines(bytes: &[u8]) -> Outcome {
    let text = significant(bytes);
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return reference_events(bytes);
    }
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let lines = lines.into_iter().map(|line| too_large(line).and_then(|()| plain(line)));
    outcome(lines.chain([too_large(last).and_then(|()| last_line(last))]))
}

/// Skips the bytes before the first significant one.
fn significant(bytes: &[u8]) -> &[u8] {
    let skipped = b" \n\r\t\x0C\xEF\xBB\xBF";
    let start = bytes.iter().position(|byte| !skipped.contains(byte)).unwrap_or(bytes.len());
    &bytes[start..]
}

/// Collects frames up to the first error.
fn outcome(results: impl IntoIterator<Item = Result<Option<String>, DecodeError>>) -> Outcome {
    let mut found = Vec::new();
    for result in results {
        match result {
            Ok(frame) => found.extend(frame),
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

fn too_large(bytes: &[u8]) -> Result<(), DecodeError> {
    if bytes.len() > SMALL { Err(DecodeError::FrameTooLarge(SMALL)) } else { Ok(()) }
}

fn plain(line: &[u8]) -> Result<Option<String>, DecodeError> {
    let text = std::str::from_utf8(line).map_err(|_| DecodeError::NotUtf8)?.trim();
    Ok((!text.is_empty()).then(|| format!("|{text}")))
}

/// Reads the last line or the only body, which may be incomplete.
fn last_line(line: &[u8]) -> Result<Option<String>, DecodeError> {
    let frame = plain(line)?;
    let is_cut_off =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).is_err_and(|error| error.is_eof());
    match &frame {
        Some(text) if is_cut_off(&text[1..]) => Err(DecodeError::Incomplete),
        _ => Ok(frame),
    }
}

/// Reads server-sent events from a complete text, step by step as the WHATWG specification describes.
fn reference_sse(text: &[u8]) -> Outcome {
    let lines = sse_lines(text);
    let mut found = Vec::new();
    let mut name = Vec::new();
    let mut data = None::<Vec<u8>>;
    let count = lines.len();
    for (index, line) in lines.into_iter().enumerate() {
        let is_last = index + 1 == count;
        let result = too_large(line).and_then(|()| match line {
            // The last line has no ending, so its event is dropped.
            _ if is_last => Ok(()),
            [] => {
                let data = data.take();
                let name = std::mem::take(&mut name);
                let Some(data) = data else { return Ok(()) };
                let text = |bytes| String::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8);
                found.push(format!("{}|{}", text(name)?, text(data)?));
                Ok(())
            }
            line => {
                let colon = line.iter().position(|byte| *byte == b':');
                let field = &line[..colon.unwrap_or(line.len())];
                let value = colon.map(|at| &line[at + 1..]);
                let value = value.unwrap_or_default();
                let value = value.strip_prefix(b" ").unwrap_or(value);
                match field {
                    b"event" => name = value.to_vec(),
                    b"data" => match &mut data {
                        None => data = Some(value.to_vec()),
                        Some(data) => data.extend([b"\n", value].concat()),
                    },
                    _ => {}
                }
                too_large(data.as_deref().unwrap_or_default())
            }
        });
        if let Err(error) = result {
            return (found, Some(error));
        }
    }
    let error = found.is_empty().then(|| no_events(&text[..text.len().min(MAX_EXCERPT)]));
    (found, error)
}

/// Splits text at CR, LF and CRLF.
fn sse_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    lines.push(rest);
    lines
}

/// Returns the events of the parts, each as `name|data`.
fn events<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, DecodeError> {
    let mut reader = SseReader::new(MAX_FRAME_BYTES);
    let mut found = Vec::new();
    for part in parts {
        reader.push(part, &mut |event| {
            found.push(format!("{}|{}", event.name, event.data));
            Ok(())
        })?;
    }
    Ok(found)
}

/// Returns the events of text, and checks that every split into two parts and into single bytes gives the same.
fn all_splits(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let expected = events([bytes]).unwrap();
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(events([left, right]).unwrap(), expected, "split at {at}");
    }
    assert_eq!(events(bytes.chunks(1)).unwrap(), expected);
    expected
}

#[test]
fn lines_end_with_lf_cr_or_crlf() {
    for ending in ["\n", "\r", "\r\n"] {
        let text = ["event: a", "data: 1", "", "data: 2", "", ""].join(ending);
        assert_eq!(all_splits(&text), ["a|1", "|2"], "{ending:?}");
    }
    assert_eq!(all_splits("data: 1\r\n\rdata: 2\n\r\n"), ["|1", "|2"]);
}

#[test]
fn data_lines_are_joined() {
    assert_eq!(all_splits("data: a\ndata\ndata:  b\n\n"), ["|a\n\n b"]);
    assert_eq!(all_splits("data:a:b\n\n"), ["|a:b"]);
}

#[test]
fn skips_comments_and_unknown_fields() {
    assert_eq!(all_splits("data: 1\n\n: ping\n\nid: 7\nretry: 3\nfoo\n\ndata: 2\n\n"), ["|1", "|2"]);
}

#[test]
fn event_without_data_is_dropped_with_its_name() {
    assert_eq!(all_splits("event: a\n\ndata: 1\n\n"), ["|1"]);
}

#[test]
fn empty_data_is_an_event() {
    assert_eq!(all_splits("data:\n\n"), ["|"]);
}

#[test]
fn event_without_blank_line_is_dropped() {
    assert_eq!(all_splits("data: 1\n\ndata: 2\n"), ["|1"]);
    assert_eq!(all_splits("data: 1\n\ndata: 2"), ["|1"]);
}

#[test]
fn characters_may_be_split() {
    assert_eq!(all_splits("data: aé漢🙂\n\n"), ["|aé漢🙂"]);
}

#[test]
fn half_a_character_in_an_event_is_an_error() {
    assert_eq!(events([b"data: \xC3\n\n".as_slice()]), Err(DecodeError::NotUtf8));
}

#[test]
fn line_of_an_event_over_the_limit_is_an_error() {
    let event = |length: usize| [b"data:".as_slice(), &vec![b'x'; length], b"\n\n"].concat();
    assert_eq!(events([event(MAX_FRAME_BYTES - 5).as_slice()]).unwrap().len(), 1);
    let long = events([event(MAX_FRAME_BYTES - 4).as_slice()]);
    assert_eq!(long, Err(DecodeError::FrameTooLarge(MAX_FRAME_BYTES)));
    let endless = std::iter::repeat_n([b'x'; 4096].as_slice(), MAX_FRAME_BYTES / 4096 + 1);
    assert_eq!(events(endless), Err(DecodeError::FrameTooLarge(MAX_FRAME_BYTES)));
}

#[test]
fn data_over_the_limit_is_an_error() {
    let line = format!("data: {}\n", "x".repeat(1023));
    let data = |lines: usize| events(std::iter::repeat_n(line.as_bytes(), lines));
    assert_eq!(data(MAX_FRAME_BYTES / 1024), Ok(Vec::new()));
    assert_eq!(data(MAX_FRAME_BYTES / 1024 + 1), Err(DecodeError::FrameTooLarge(MAX_FRAME_BYTES)));
}
