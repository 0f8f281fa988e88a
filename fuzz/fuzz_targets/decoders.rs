//! Each protocol's decoder: no panic, and the same events in any split.
#![no_main]

use cog_fuzz::{chunks, joined};
use cog_provider::protocol::{MAX_FRAME_BYTES, ProtocolKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let kind = ProtocolKind::ALL[usize::from(first) % ProtocolKind::ALL.len()];
    let whole = decode(kind, text, text.len().max(1));
    assert_eq!(decode(kind, text, 1), whole, "{kind:?}");
    assert_eq!(decode(kind, text, usize::from(first) / ProtocolKind::ALL.len() + 2), whole, "{kind:?}");
});

fn decode(kind: ProtocolKind, text: &[u8], size: usize) -> String {
    let mut decoder = kind.protocol().decoder(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let read = chunks(text, size).try_for_each(|chunk| decoder.push(chunk, &mut events));
    let end = read.and_then(|()| decoder.finish(&mut events));
    format!("{} {end:?}", joined(&events))
}
