//! Drafts: an object inside a tag, a channel or a marker is never the answer, one of two objects is never chosen, and what is
//! only wrapped or follows closed marks is read.
#![no_main]

use cog_fuzz::wrapping::{Reply, is_answer};
use cog_json::{End, Limits, Parser};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&size, data)) = data.split_first() else { return };
    let reply = Reply::new(data);
    let whole = read(&reply.text, reply.text.len().max(1));
    let split = read(&reply.text, usize::from(size % 24) + 1);
    assert_eq!(split, whole, "{:?}", reply.text);
    if let Some(found) = &whole {
        assert!(reply.answers.len() == 1 && is_answer(&reply, found), "{found} of {:?}", reply.text);
    }
    if reply.is_regular && reply.answers.len() == 1 {
        assert!(whole.is_some(), "refused: {:?}", reply.text);
    }
});

/// The document that a reply is read as.
fn read(text: &str, piece: usize) -> Option<String> {
    let mut parser = Parser::tolerant(Limits::model_output());
    for piece in text.as_bytes().chunks(piece) {
        parser.push(piece, &mut |_| {}).ok()?;
    }
    let end = parser.finish(&mut |_| {}).ok()?;
    let root = parser.root().filter(|_| end == End::Complete && !parser.has_second_object())?;
    Some(root.to_string())
}
