//! No object inside a tag, a channel or a marker is ever the answer (ruling R82); `fuzz/` has the same property.

#[path = "../../../fuzz/src/wrapping.rs"]
pub mod wrapping;

use cog_json::{End, Limits, Parser};
use proptest::prelude::*;

use self::wrapping::{Reply, is_answer};

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answer_is_the_only_object_outside_drafts(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        piece in 1_usize..24,
    ) {
        let reply = Reply::new(&bytes);
        let found = read(&reply.text, piece);
        prop_assert_eq!(&read(&reply.text, usize::MAX), &found, "{}", reply.text);
        let is_single = reply.answers.len() == 1;
        if let Some(found) = &found {
            prop_assert!(is_single && is_answer(&reply, found), "{} of {}", found, reply.text);
        }
        prop_assert!(found.is_some() || !is_single || !reply.is_regular, "refused: {}", reply.text);
    }
}

/// The document that a reply is read as, if it is sent in pieces of this length.
fn read(text: &str, piece: usize) -> Option<String> {
    let mut parser = Parser::tolerant(Limits::model_output());
    for piece in text.as_bytes().chunks(piece) {
        parser.push(piece, &mut |_| {}).ok()?;
    }
    let end = parser.finish(&mut |_| {}).ok()?;
    let root = parser.root().filter(|_| end == End::Complete && !parser.has_second_object())?;
    Some(root.to_string())
}
