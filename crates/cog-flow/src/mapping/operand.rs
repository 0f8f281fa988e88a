//! What gives the value of a field: `$.notes ?? 'none'`.

use cog_json::Value;
use cog_rules::{Cursor, TextError};

use crate::{
    PathError,
    json_path::{Document, JsonPath},
};

/// One of the values that `??` separates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    /// A path in the source.
    Path(JsonPath),
    /// `item`: a path in the element of the list.
    Item(JsonPath),
    /// `index`: the number of the element, from 0.
    Index,
    /// A value of the manifest.
    Constant(Value),
}

impl Operand {
    /// Parses the value of a field. `has_items` is whether the step runs for the elements of a list.
    ///
    /// # Errors
    /// When an operand is invalid, or follows one that always has a value.
    pub(crate) fn parse_all(text: &str, has_items: bool) -> Result<Vec<Self>, TextError> {
        let mut operands: Vec<Self> = Vec::new();
        for (start, part) in split(text) {
            let found = Self::parse(part.trim(), has_items);
            let indent = part.len() - part.trim_start().len();
            let shifted = |error: TextError| TextError {
                range: error.range.start + start + indent..error.range.end + start + indent,
                ..error
            };
            let operand = found.map_err(shifted)?;
            if operands.last().is_some_and(Self::is_certain) {
                let message = "the value before `??` is never missing";
                return Err(TextError::new(start..start + part.len(), message).suggest("Remove the default."));
            }
            operands.push(operand);
        }
        Ok(operands)
    }

    fn parse(text: &str, has_items: bool) -> Result<Self, TextError> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(Operand::Path);
        }
        let item = text.strip_prefix("item").filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if (item.is_some() || text == "index") && !has_items {
            let error = TextError::new(0..text.len(), "the step runs once: only a list has items");
            return Err(error.suggest("Add `each:` with the path of a list to the step."));
        }
        match item {
            Some(path) => return item_path(path).map(Operand::Item),
            None if text == "index" => return Ok(Operand::Index),
            None => {}
        }
        let mut cursor = Cursor::new(text);
        if let Some(Ok(string)) = cursor.string()
            && cursor.is_at_end()
        {
            return Ok(Operand::Constant(Value::from(serde_json::Value::from(string))));
        }
        Value::parse(text).map(Operand::Constant).map_err(|_| invalid(text))
    }

    /// Returns its path; none for a constant.
    pub(crate) fn path(&self) -> Option<&JsonPath> {
        match self {
            Operand::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns its value; none for a path.
    pub(crate) fn constant(&self) -> Option<&Value> {
        match self {
            Operand::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns whether it always has a value other than null.
    fn is_certain(&self) -> bool {
        match self {
            Operand::Path(path) | Operand::Item(path) => matches!(path, JsonPath::Many(..)),
            Operand::Index | Operand::Constant(_) => true,
        }
    }

    /// Returns its value in a source; none if its path finds nothing, or if it depends on the element of a list.
    ///
    /// # Errors
    /// When the values are too large.
    pub(crate) fn value(&self, document: &Document<'_>) -> Result<Option<Value>, PathError> {
        match self {
            Operand::Path(path) => path.select(document),
            Operand::Constant(value) => Ok(Some(value.clone())),
            Operand::Item(_) | Operand::Index => Ok(None),
        }
    }
}

/// Parses what follows `item`.
fn item_path(rest: &str) -> Result<JsonPath, TextError> {
    let moved = |at: usize| (at + "item".len()).saturating_sub("$".len());
    JsonPath::parse(&format!("${rest}"))
        .map_err(|error| TextError { range: moved(error.range.start)..moved(error.range.end), ..error })
}

fn invalid(text: &str) -> TextError {
    let error = TextError::new(0..text.len(), "neither a path nor a constant");
    let shown: String = text.chars().take(40).collect();
    match shown.as_str() {
        "" => error.suggest("Write a path such as `$.text`, or a constant such as `'none'`, `0` or `[]`."),
        shown if shown.starts_with(['\'', '"', '[', '{']) => {
            error.suggest("Write JSON, or a string in quotes.")
        }
        shown => error.suggest(format!("Write `$.{shown}` for a path, or `'{shown}'` for a string.")),
    }
}

/// Returns the parts between `??`, each with its start. `??` in quotes separates nothing.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut cursor = Cursor::new(text);
    while !cursor.is_at_end() {
        let at = cursor.at();
        if cursor.take("??") {
            parts.push((start, text.get(start..at).unwrap_or_default()));
            start = cursor.at();
        } else if !matches!(cursor.string(), Some(Ok(_))) {
            cursor = Cursor::new(text);
            cursor.skip(at);
            cursor.skip(cursor.next_range().len());
        }
    }
    parts.push((start, text.get(start..).unwrap_or_default()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_have_a_column_and_a_suggestion() {
        for (text, at, message, help) in [
            (
                "$.a ?? b.c",
                "b.c",
                "neither a path nor a constant",
                "Write `$.b.c` for a path, or `'b.c'` for a string.",
            ),
            (
                "$.a ??",
                "",
                "neither a path nor a constant",
                "Write a path such as `$.text`, or a constant such as `'none'`, `0` or `[]`.",
            ),
            (
                "$.a ?? $.b[",
                "[",
                "not a valid JSONPath",
                "Write a path such as `$.data.issues[*].id` (RFC 9535).",
            ),
            ("1 ?? $.a", " $.a", "the value before `??` is never missing", "Remove the default."),
            ("$.a[*] ?? []", " []", "the value before `??` is never missing", "Remove the default."),
            (
                "$.a ?? item.b[",
                "[",
                "not a valid JSONPath",
                "Write a path such as `$.data.issues[*].id` (RFC 9535).",
            ),
            (
                "items",
                "items",
                "neither a path nor a constant",
                "Write `$.items` for a path, or `'items'` for a string.",
            ),
            ("'it", "'it", "neither a path nor a constant", "Write JSON, or a string in quotes."),
        ] {
            let error = Operand::parse_all(text, true).unwrap_err();
            let found =
                (text.get(error.range.clone()).unwrap(), &*error.message, error.suggestion.as_deref());
            assert_eq!(found, (at, message, Some(help)), "{text}");
        }
        for text in ["item.a", "index", "$.a ?? item"] {
            let error = Operand::parse_all(text, false).unwrap_err();
            assert_eq!(error.message, "the step runs once: only a list has items", "{text}");
        }
    }
}
