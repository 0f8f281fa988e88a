//! Runs of the parser in a form that can be compared: all that may depend on the split is joined.

use super::super::{Deviation, End, Parser};
use crate::error::SyntaxError;
use crate::event::{Event, EventKind};

/// What happened in one run, and what it left behind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) events: Vec<String>,
    pub(super) end: Result<End, SyntaxError>,
    pub(super) draft: Option<String>,
    pub(super) tolerated: Vec<Deviation>,
    pub(super) several: bool,
}

/// Feeds `chunks` and writes down what happens.
pub(super) fn run<'a>(mut parser: Parser, chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut events = Vec::new();
    let fed =
        chunks.into_iter().try_for_each(|chunk| parser.push(chunk, &mut |event| note(event, &mut events)));
    let end = fed.and_then(|()| parser.finish(&mut |event| note(event, &mut events)));
    Outcome {
        events,
        end,
        draft: parser.root().map(|root| root.to_string()),
        tolerated: parser.deviations().to_vec(),
        several: parser.has_second_object(),
    }
}

/// The same document in one chunk, in every two chunks, and byte by byte.
pub(super) fn run_every_split(parser: impl Fn() -> Parser, text: &[u8]) -> Outcome {
    let expected = run(parser(), [text]);
    for at in 0..=text.len() {
        let (left, right) = text.split_at(at);
        assert_eq!(
            run(parser(), [left, right]),
            expected,
            "split at {at} of {:?}",
            String::from_utf8_lossy(text)
        );
    }
    assert_eq!(run(parser(), text.chunks(1)), expected, "byte by byte: {:?}", String::from_utf8_lossy(text));
    expected
}

fn note(event: Event<'_>, events: &mut Vec<String>) {
    let path = event.path;
    match event.kind {
        EventKind::Open => events.push(format!("{path} open {}", event.node.kind())),
        EventKind::Text { delta, first: true } => events.push(format!("{path} text {delta}")),
        EventKind::Text { delta, first: false } => events.last_mut().unwrap().push_str(delta),
        EventKind::Complete => events.push(format!("{path} complete {}", event.node)),
        EventKind::Replaced => events.push(format!("{path} replaced")),
        EventKind::Retracted { .. } => events.push("retracted".to_owned()),
    }
}
