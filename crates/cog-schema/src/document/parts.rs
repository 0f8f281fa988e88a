//! Finds the four parts of a contract.

use serde_json::Value;

use crate::context_pointer;
use crate::rules::Rules;
use crate::schema_error::SchemaError;
use crate::subschema::token;
use crate::wording::nearest;

/// The JSON pointers of the parts of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) input: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) meta: Option<String>,
    pub(crate) error: Option<String>,
}

impl Parts {
    /// Finds the parts by the manifest's `io`, otherwise by name. `output` is read as the part in
    /// `compat.schema_output_alias` if that part is absent.
    pub(super) fn find(document: &Value, rules: &Rules) -> Result<Self, Vec<SchemaError>> {
        let Some(members) = document.as_object() else {
            let message = "the schema must be an object with the parts `input`, `data`, `meta` and `error`";
            return Err(vec![SchemaError::new("", message)]);
        };
        let mut problems = Vec::new();
        let mut part = |name: &str, pointer: &Option<String>| match pointer {
            Some(pointer) => resolved(document, name, pointer).map_err(|problem| problems.push(problem)).ok(),
            None if members.contains_key(name) => Some(format!("/{name}")),
            None if name == rules.output_alias && members.contains_key("output") => {
                Some("/output".to_owned())
            }
            None => None,
        };
        let parts = Self {
            input: part("input", &rules.io.input),
            data: part("data", &rules.io.data),
            meta: part("meta", &rules.io.meta),
            error: part("error", &rules.io.error),
        };
        if problems.is_empty() { Ok(parts) } else { Err(problems) }
    }

    /// Returns the schemas from which all others are reached: the parts and the definitions.
    pub(super) fn roots(&self, document: &Value) -> Vec<String> {
        let parts = [&self.input, &self.data, &self.meta, &self.error].into_iter().flatten().cloned();
        let mut roots: Vec<String> = parts.collect();
        for keyword in ["$defs", "definitions"] {
            let definitions = document.get(keyword).and_then(Value::as_object);
            let names = definitions.into_iter().flat_map(|members| members.keys());
            roots.extend(names.map(|name| format!("/{keyword}/{}", token(name))));
        }
        roots.extend(context_pointer::pointers(document));
        roots
    }
}

/// Returns the pointer in `io`, without the `#` of a fragment.
fn resolved(document: &Value, part: &str, pointer: &str) -> Result<String, SchemaError> {
    let pointer = pointer.strip_prefix('#').unwrap_or(pointer);
    match document.pointer(pointer) {
        Some(_) => Ok(pointer.to_owned()),
        None => Err(missing_target(document, pointer, &format!("`io.{part}` points to `{pointer}`"))),
    }
}

/// Returns the error of a pointer without a target, with the most similar existing name.
pub(super) fn missing_target(document: &Value, pointer: &str, subject: &str) -> SchemaError {
    let problem = SchemaError::new("", format!("{subject}, which does not exist"));
    let (outer, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    let siblings = document.pointer(outer).and_then(Value::as_object);
    let near = siblings.and_then(|members| nearest(name, members.keys().map(String::as_str)));
    match near {
        Some(near) => problem.suggest(format!("Did you mean `{outer}/{near}`?")),
        None => problem.suggest("Define the schema there, or correct the reference."),
    }
}
