//! Server-sent events: line endings, comments and the split do not matter.
#![no_main]

use cog_fuzz::{chunks, joined};
use cog_provider::protocol::{MAX_FRAME_BYTES, ProtocolKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let expected = decode(&lines, lines.len().max(1));
    assert_eq!(decode(text, usize::from(first % 32) + 1), expected);
    assert_eq!(decode(&lines.replace('\n', "\r\n"), usize::from(first / 8) + 1), expected);
    // The first byte decides whether the reply is a stream, so both begin with a comment.
    if !text.starts_with('\u{feff}') {
        let expected = decode(&format!(":\n{lines}"), usize::MAX);
        assert_eq!(decode(&format!("\u{feff}:\n{}", lines.replace("\n", "\n:x\n")), usize::MAX), expected);
    }
});

/// What the decoder gives of a stream. A position in an error depends on the bytes before it, so it is left out.
fn decode(text: &str, size: usize) -> String {
    let mut decoder = ProtocolKind::OpenAiChat.protocol().decoder(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let read = chunks(text.as_bytes(), size).try_for_each(|chunk| decoder.push(chunk, &mut events));
    let end = read.and_then(|()| decoder.finish(&mut events));
    let kind = end.err().map(|error| std::mem::discriminant(&error));
    format!("{} {kind:?}", joined(&events))
}
