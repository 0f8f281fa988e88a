//! The answer of a part of a composition as a line of a log.

use cog_json::{Value, Writer};
use cog_spec::{PartAnswer, PartProgress};
use serde::Deserialize as _;

/// Writes the answer that the progress of a part contains, as a line without its line break. Returns whether it has one.
pub(crate) fn write(part: &PartProgress, text: &mut String) -> bool {
    let Some(answer) = &part.answer else { return false };
    Writer::compact(text).object(|w| {
        w.field("part", &part.path);
        w.field("part_answer", answer);
    });
    true
}

/// Reads the path of a part and its answer from a line; none if the line has another form.
pub(crate) fn read(line: &str) -> Option<(String, PartAnswer)> {
    let value = Value::parse(line).ok()?;
    let answer = PartAnswer::deserialize(value.get("part_answer")?).ok()?;
    Some((value.get("part")?.as_str()?.to_owned(), answer))
}
