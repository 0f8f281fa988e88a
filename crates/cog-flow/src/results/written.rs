//! Writes values that are put together.

use cog_json::{Limits, Value, Writer};

/// Returns a value that is written. Everything that is written was read within limits.
pub(super) fn written(write: impl FnOnce(&mut Writer<'_>)) -> Value {
    let mut text = String::new();
    write(&mut Writer::compact(&mut text));
    Value::parse_within(text.as_bytes(), Limits::unbounded()).unwrap_or_default()
}
