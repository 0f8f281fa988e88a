//! What a schema has against it before it is compiled.

use cog_json::Value as Tree;
use serde_json::Value;

use crate::engine::{self, Pattern};
use crate::finding::findings;
use crate::locate::Locator;
use crate::schema_error::SchemaError;
use crate::subschema::token;

/// Checks each root against the metaschema by itself: a check of the whole document does not look into its parts.
pub(super) fn malformed(document: &Value, roots: &[String]) -> Vec<SchemaError> {
    roots.iter().flat_map(|root| malformed_at(document, root)).collect()
}

fn malformed_at(document: &Value, root: &str) -> Vec<SchemaError> {
    let Some(schema) = document.pointer(root) else { return Vec::new() };
    let errors = engine::malformed(schema);
    if errors.is_empty() {
        return Vec::new();
    }
    let tree = Tree::from(schema);
    let findings = findings(&errors, &Locator::new(tree.node()), &Value::Null);
    findings
        .into_iter()
        .map(|finding| (finding.message.ends_with(" regex"), finding))
        .map(|(is_about_regex, finding)| SchemaError {
            pointer: format!("{root}{}", finding.at),
            message: format!("not valid JSON Schema (Draft-07): {}", finding.message),
            suggestion: finding.suggestion.or_else(|| is_about_regex.then(|| LINEAR.to_owned())),
        })
        .collect()
}

/// Compiles each pattern, so that what cannot be matched is reported with its place.
pub(super) fn patterns(document: &Value, schemas: &[String]) -> Vec<SchemaError> {
    schemas
        .iter()
        .filter_map(|pointer| Some((pointer, document.pointer(pointer)?)))
        .flat_map(|(pointer, schema)| patterns_of(pointer, schema))
        .filter_map(|(pointer, pattern)| Pattern::new(&pattern).err().map(|_| unusable(pointer, &pattern)))
        .collect()
}

/// The patterns right in a schema, each with its pointer.
fn patterns_of(pointer: &str, schema: &Value) -> Vec<(String, String)> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let own = own.map(|pattern| (format!("{pointer}/pattern"), pattern.to_owned()));
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|members| members.keys());
    let names = names.map(|name| (format!("{pointer}/patternProperties/{}", token(name)), name.clone()));
    own.into_iter().chain(names).collect()
}

/// What a pattern must do without.
const LINEAR: &str = "Check the brackets, and remove look-around, back-references and very large repeats. Patterns are matched in linear time.";

fn unusable(pointer: String, pattern: &str) -> SchemaError {
    SchemaError::new(pointer, format!("the pattern `{pattern}` is not supported")).suggest(LINEAR)
}
