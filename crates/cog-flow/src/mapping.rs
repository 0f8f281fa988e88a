//! `mapping`: the fields of a target, each with the path of its value.

use cog_json::{Limits, Value};

use crate::{
    PathError,
    json_path::{Document, JsonPath},
};

/// The maximum size of all values of a mapping, as JSON: 64 MB.
const MAX_MAPPED: usize = 64 << 20;

/// A parsed mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    fields: Vec<MappedField>,
    /// Whether it has all fields of the manifest: no path was invalid.
    pub(crate) is_complete: bool,
}

/// A field of the target and the path of its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappedField {
    pub(crate) name: String,
    /// The path as it is written.
    pub(crate) text: String,
    pub(crate) path: JsonPath,
}

impl Mapping {
    pub(crate) fn new(fields: Vec<MappedField>, is_complete: bool) -> Self {
        Self { fields, is_complete }
    }

    pub(crate) fn fields(&self) -> &[MappedField] {
        &self.fields
    }

    /// Returns the object for the target. A field whose path finds nothing is absent.
    ///
    /// # Errors
    /// When a path, or all of them, select too much.
    pub(crate) fn apply(&self, document: &Value) -> Result<Value, PathError> {
        self.apply_within(document, MAX_MAPPED)
    }

    fn apply_within(&self, document: &Value, max_bytes: usize) -> Result<Value, PathError> {
        let document = Document::new(document);
        let mut text = String::from("{");
        for field in &self.fields {
            let Some(value) = field.path.select(&document)? else { continue };
            if text.len() > 1 {
                text.push(',');
            }
            text += &serde_json::Value::from(field.name.as_str()).to_string();
            text.push(':');
            value.node().write(&mut text);
            if text.len() > max_bytes {
                return Err(PathError { max_bytes });
            }
        }
        text.push('}');
        Value::parse_within(text.as_bytes(), Limits::unbounded()).map_err(|_| PathError { max_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(fields: &[(&str, &str)]) -> Mapping {
        let field = |(name, text): &(&str, &str)| MappedField {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
            path: JsonPath::parse(text).unwrap(),
        };
        Mapping::new(fields.iter().map(field).collect(), true)
    }

    #[test]
    fn absent_fields_are_left_out_and_names_are_escaped() {
        let document = Value::parse(r#"{"a": [1, 2.50], "b": {"c": "x"}}"#).unwrap();
        let fields = [("none", "$.d"), ("a \"b\"", "$.b.c"), ("list", "$.a[*]"), ("all", "$.a")];
        let found = mapping(&fields).apply(&document).unwrap();
        assert_eq!(found.to_string(), r#"{"a \"b\"":"x","list":[1,2.5],"all":[1,2.50]}"#);
        assert_eq!(mapping(&[]).apply(&document).unwrap().to_string(), "{}");
    }

    #[test]
    fn values_of_all_fields_are_bounded() {
        let document = Value::parse(&format!("{{\"text\": \"{}\"}}", "x".repeat(100))).unwrap();
        let twice = mapping(&[("a", "$.text"), ("b", "$.text")]);
        assert_eq!(twice.apply_within(&document, 200), Err(PathError { max_bytes: 200 }));
        assert!(twice.apply_within(&document, 300).is_ok());
    }
}
