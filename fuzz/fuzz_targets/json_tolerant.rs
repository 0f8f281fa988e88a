//! Tolerant parsing: the same in any split, and a superset of strict parsing.
#![no_main]

use cog_json::{Deviation, End, Limits, Parser, SyntaxError, Tolerance, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let whole = read(text, text.len().max(1));
    assert_eq!(read(text, usize::from(first % 32) + 1), whole);
    if let Ok(strict) = Value::parse_bytes(text) {
        assert_eq!(
            (whole.end, whole.draft.as_deref()),
            (Ok(End::Complete), Some(strict.to_string().as_str()))
        );
        assert!(whole.tolerated.iter().all(|it| it.rule == Tolerance::DuplicateKey) && !whole.several);
    }
    if let Some(draft) = whole.draft {
        let again = read(draft.as_bytes(), draft.len().max(1));
        assert_eq!((again.end, again.draft, again.tolerated), (Ok(End::Complete), Some(draft), Vec::new()));
    }
});

#[derive(Debug, PartialEq)]
struct Read {
    end: Result<End, SyntaxError>,
    draft: Option<String>,
    tolerated: Vec<Deviation>,
    several: bool,
}

fn read(text: &[u8], piece: usize) -> Read {
    let mut parser = Parser::tolerant(Limits::model_output());
    let fed = text.chunks(piece).try_for_each(|piece| parser.push(piece, &mut |_| {}));
    let end = fed.and_then(|()| parser.finish(&mut |_| {}));
    let draft = parser.root().map(|root| root.to_string());
    Read { end, draft, tolerated: parser.deviations().to_vec(), several: parser.has_second_object() }
}
