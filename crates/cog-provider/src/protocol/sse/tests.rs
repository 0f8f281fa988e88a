use super::*;
use crate::protocol::MAX_FRAME_BYTES;

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
fn half_a_character_is_an_error() {
    assert_eq!(events([b"data: \xC3\n\n".as_slice()]), Err(DecodeError::NotUtf8));
}

#[test]
fn line_over_the_limit_is_an_error() {
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
