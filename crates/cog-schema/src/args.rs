use serde_json::Value;

use crate::contract::Contract;
use crate::shape::{Id, SchemaNode};

/// The property that takes the text of `--args` before any other.
const ARGUMENTS: &str = "$ARGUMENTS";

impl Contract {
    /// The field of the input that the text of `--args` becomes (docs/spec/modules.md): `$ARGUMENTS` if the
    /// schema names it, else `query`, else the only required text, else the only text.
    ///
    /// # Errors
    /// The candidates, when there is none or more than one; the caller makes E1001 of it.
    pub fn args_target(&self) -> Result<&str, Vec<String>> {
        let Some(input) = self.input.as_ref().map(|part| part.shape) else { return Err(Vec::new()) };
        let named = |key: &str| self.shapes.possible(input).any(|shape| shape.property(key).is_some());
        if let Some(key) = [ARGUMENTS, "query"].into_iter().find(|key| named(key)) {
            return Ok(key);
        }
        let texts = self.text_fields(input);
        let required: Vec<&str> = texts.iter().copied().filter(|key| self.requires(input, key)).collect();
        match (required.as_slice(), texts.as_slice()) {
            ([only], _) | ([], [only]) => Ok(only),
            ([], many) | (many, _) => Err(many.iter().map(|key| (*key).to_owned()).collect()),
        }
    }

    /// The fields of an object that take text, in the order of the schema.
    fn text_fields(&self, object: Id) -> Vec<&str> {
        let mut fields = Vec::new();
        for (key, id) in self.shapes.possible(object).flat_map(|shape| shape.properties()) {
            if self.takes_text(id) && !fields.contains(&key) {
                fields.push(key);
            }
        }
        fields
    }

    fn takes_text(&self, id: Id) -> bool {
        self.shapes.certain(id).any(|shape| {
            let kind = self.document().pointer(&shape.pointer).and_then(|schema| schema.get("type"));
            match kind {
                Some(Value::String(kind)) => kind == "string",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
                _ => false,
            }
        })
    }

    /// Whether an object must have a field, for certain.
    pub(crate) fn requires(&self, object: Id, key: &str) -> bool {
        self.shapes.certain(object).any(|shape| self.requires_here(shape, key))
    }

    /// Whether this very schema requires a field.
    pub(crate) fn requires_here(&self, shape: &SchemaNode, key: &str) -> bool {
        let required = self.document().pointer(&shape.pointer).and_then(|schema| schema.get("required"));
        required.and_then(Value::as_array).is_some_and(|keys| keys.iter().any(|other| other == key))
    }
}

#[cfg(test)]
mod tests;
