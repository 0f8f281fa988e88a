//! What gives the value of a field: `$.notes ?? 'none'`.

use cog_json::Value;

use crate::{
    PathError,
    cursor::{Cursor, TextError},
    json_path::{Document, JsonPath},
};

/// One of the values that `??` separates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    /// A path in the source.
    Path(JsonPath),
    /// A value of the manifest.
    Constant(Value),
}

impl Operand {
    /// Parses the value of a field.
    ///
    /// # Errors
    /// When an operand is invalid, or follows one that always has a value.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, TextError> {
        let mut operands: Vec<Self> = Vec::new();
        for (start, part) in split(text) {
            let found = Self::parse(part.trim());
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

    fn parse(text: &str) -> Result<Self, TextError> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(Operand::Path);
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
            Operand::Constant(_) => None,
        }
    }

    /// Returns its value; none for a path.
    pub(crate) fn constant(&self) -> Option<&Value> {
        match self {
            Operand::Path(_) => None,
            Operand::Constant(value) => Some(value),
        }
    }

    /// Returns whether it always has a value other than null.
    fn is_certain(&self) -> bool {
        match self {
            Operand::Path(path) => matches!(path, JsonPath::Many(..)),
            Operand::Constant(_) => true,
        }
    }

    /// Returns its value; none if its path finds nothing.
    ///
    /// # Errors
    /// When the values are too large.
    pub(crate) fn value(&self, document: &Document<'_>) -> Result<Option<Value>, PathError> {
        match self {
            Operand::Path(path) => path.select(document),
            Operand::Constant(value) => Ok(Some(value.clone())),
        }
    }
}

fn invalid(text: &str) -> TextError {
    let error = TextError::new(0..text.len(), "neither a path nor a constant");
    let shown: String = text.chars().take(40).collect();
    match shown.as_str() {
        "" => error.suggest("Write a path such as `$.text`, or a constant such as `'none'`, `0` or `[]`."),
        shown if shown.starts_with(['\'', '"', '[', '{']) => {
            error.suggest("Write JSON, or a text in quotes.")
        }
        shown => error.suggest(format!("Write `$.{shown}` for a path, or `'{shown}'` for a text.")),
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
                "Write `$.b.c` for a path, or `'b.c'` for a text.",
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
            ("'it", "'it", "neither a path nor a constant", "Write JSON, or a text in quotes."),
        ] {
            let error = Operand::parse_all(text).unwrap_err();
            let found =
                (text.get(error.range.clone()).unwrap(), &*error.message, error.suggestion.as_deref());
            assert_eq!(found, (at, message, Some(help)), "{text}");
        }
    }
}
