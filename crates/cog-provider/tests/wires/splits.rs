//! Tests that any text, in any chunks and over any packets, is decoded unchanged.

use cog_provider::protocol::{MAX_FRAME_BYTES, ProtocolKind};
use cog_spec::ModelEvent;
use cog_testkit::{Reply, Wire};
use proptest::prelude::*;

const KINDS: [(Wire, ProtocolKind); 5] = [
    (Wire::OpenAi, ProtocolKind::OpenAiChat),
    (Wire::OpenAiResponses, ProtocolKind::OpenAiResponses),
    (Wire::Anthropic, ProtocolKind::Anthropic),
    (Wire::Gemini, ProtocolKind::Gemini),
    (Wire::Ollama, ProtocolKind::Ollama),
];

proptest! {
    #[test]
    fn text_is_decoded_unchanged(text in ".{0,60}", reasoning in ".{0,20}", chunk in 1_usize..9, packet in 1_usize..90) {
        let reply = Reply::text(&text).reasoning(&reasoning).chunk_size(chunk);
        for (wire, kind) in KINDS {
            let bytes = wire.stream(&reply).concat().into_bytes();
            let mut decoder = kind.protocol().decoder(MAX_FRAME_BYTES);
            let mut events = Vec::new();
            for packet in bytes.chunks(packet) {
                decoder.push(packet, &mut events).unwrap();
            }
            decoder.finish(&mut events).unwrap();
            prop_assert_eq!(texts(&events), (text.clone(), reasoning.clone()), "{}", wire.name());
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for kind in ProtocolKind::ALL {
            let mut decoder = kind.protocol().decoder(MAX_FRAME_BYTES);
            let mut events = Vec::new();
            if decoder.push(&bytes, &mut events).is_ok() {
                prop_assert!(decoder.finish(&mut events).is_err());
            }
        }
    }
}

/// Returns the text and the reasoning of a reply.
fn texts(events: &[ModelEvent]) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for event in events {
        match event {
            ModelEvent::Text(chunk) => text.push_str(chunk),
            ModelEvent::Reasoning(chunk) => reasoning.push_str(chunk),
            _ => {}
        }
    }
    (text, reasoning)
}
