use super::*;
use crate::protocol::MAX_FRAME_BYTES;

/// Returns the frames of a reply that arrives byte by byte, and checks that one push gives the same frames.
fn frames(make: fn(usize) -> Frames, bytes: &[u8]) -> Result<Vec<String>, DecodeError> {
    let read = |size: usize| {
        let mut frames = make(MAX_FRAME_BYTES);
        let mut told = Vec::new();
        let mut sink = |frame: Frame<'_>| {
            told.push(frame.text.to_owned());
            Ok(())
        };
        for piece in bytes.chunks(size.max(1)) {
            frames.push(piece, &mut sink)?;
        }
        frames.finish(&mut sink).map(|()| told)
    };
    let expected = read(bytes.len());
    assert_eq!(read(1), expected);
    expected
}

#[test]
fn events_lines_and_bodies_are_told_apart() {
    assert_eq!(frames(Frames::events, b"data: 1\n\ndata: 2\n\n").unwrap(), ["1", "2"]);
    assert_eq!(frames(Frames::events, b" \n{\"a\":\n1}").unwrap(), ["{\"a\":\n1}"]);
    assert_eq!(frames(Frames::lines, b"{\"a\":1}\r\n\n{\"a\":2}").unwrap(), ["{\"a\":1}", "{\"a\":2}"]);
}

#[test]
fn nothing_is_an_error() {
    assert_eq!(frames(Frames::events, b""), Err(DecodeError::Empty));
    assert_eq!(frames(Frames::lines, b" \r\n"), Err(DecodeError::Empty));
}

#[test]
fn a_web_page_is_told_by_its_title() {
    let page = b"<!doctype html><html><head><TITLE>Sign in\n to the WiFi</TITLE>";
    assert_eq!(frames(Frames::events, page), Err(DecodeError::WebPage("Sign in to the WiFi".to_owned())));
    let long = [b"<html><body>".as_slice(), &[b'x'; 9000]].concat();
    assert!(matches!(frames(Frames::lines, &long), Err(DecodeError::WebPage(words)) if words.len() == 80));
}

#[test]
fn another_text_is_told_by_its_first_words() {
    let error = frames(Frames::events, b"upstream connect error").unwrap_err();
    assert_eq!(error, DecodeError::NotJson("it begins with `upstream connect error`".to_owned()));
}

#[test]
fn a_reply_that_stops_short_was_cut() {
    for text in ["data: {\"a\"", "dat", ": ping\n\n", "{\"a\": [1,"] {
        assert_eq!(frames(Frames::events, text.as_bytes()), Err(DecodeError::Incomplete), "{text}");
    }
    assert_eq!(frames(Frames::lines, b"{\"a\":1}\n{\"a\""), Err(DecodeError::Incomplete));
}

#[test]
fn half_a_character_is_an_error() {
    assert_eq!(frames(Frames::events, b"{\"a\":\"\xC3\"}"), Err(DecodeError::NotUtf8));
    assert_eq!(frames(Frames::lines, b"{\"a\":\"\xC3\"}\n"), Err(DecodeError::NotUtf8));
}
