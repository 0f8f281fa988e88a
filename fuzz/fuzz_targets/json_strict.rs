//! Strict parsing beside `serde_json`, in any split.
#![no_main]

use cog_json::{Limits, Parser, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let ours = Value::parse_bytes(text);
    // `serde_json` counts depth differently by one, and reads no further than 128.
    if !matches!(&ours, Err(error) if error.kind() == cog_json::SyntaxErrorKind::TooDeep) && depth(text) < 127 {
        let theirs = serde_json::from_slice::<serde_json::Value>(text);
        let is_out_of_range =
            theirs.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range"));
        assert!(ours.is_ok() == theirs.is_ok() || is_out_of_range, "{ours:?}");
    }
    let mut parser = Parser::strict(Limits::default());
    let fed = text.chunks(usize::from(first % 32) + 1).try_for_each(|piece| parser.push(piece, &mut |_| {}));
    let split = fed.and_then(|()| parser.finish(&mut |_| {}));
    assert_eq!(split.err(), ours.as_ref().err().copied());
    if let Ok(ours) = ours {
        assert_eq!(parser.into_value().as_ref(), Some(&ours));
        assert_eq!(Value::parse(&ours.to_string()).as_ref(), Ok(&ours));
        assert_eq!(Value::from(&ours.to_serde()).to_serde(), ours.to_serde());
    }
});

fn depth(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}
