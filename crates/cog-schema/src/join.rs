use serde_json::{Value, json};

use crate::subschema::{children, reference, target};

/// Builds one document of the two schema files of a v0 module (docs/spec/modules.md): `input` and `output`, each
/// with its own definitions, so that `#/definitions/X` in a file still means that file's.
pub fn join(input: Value, output: Value) -> Value {
    json!({ "input": moved(input, "/input"), "output": moved(output, "/output") })
}

/// A document that stands further in: its references to itself start there.
fn moved(mut document: Value, to: &str) -> Value {
    let mut open = vec![String::new()];
    while let Some(pointer) = open.pop() {
        let Some(schema) = document.pointer_mut(&pointer) else { continue };
        let local = schema.get("$ref").and_then(Value::as_str).and_then(target);
        if let (Some(local), Some(moved)) = (local, schema.get_mut("$ref")) {
            *moved = Value::from(reference(&format!("{to}{local}")));
        }
        open.extend(children(schema).into_iter().map(|child| format!("{pointer}{}", child.pointer)));
    }
    document
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Manifest};

    use super::*;
    use crate::{Contract, Rules};

    #[test]
    fn each_file_keeps_its_own_definitions() {
        let file = |kind: &str| {
            let definitions = json!({ "word": { "type": kind } });
            json!({ "properties": { "a": { "$ref": "#/definitions/word" } }, "definitions": definitions })
        };
        let joined = join(file("string"), file("integer"));
        let rules = Rules::from(&Manifest::with_defaults("old", Format::V0, None));
        let contract = Contract::compile(&joined, &rules).unwrap();
        let value = cog_json::Value::parse(r#"{"a": "x"}"#).unwrap();
        assert_eq!(contract.check_input(value.node()), []);
        assert_eq!(contract.check_data(value.node()).violations.len(), 1);
    }
}
