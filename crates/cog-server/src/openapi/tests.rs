use super::*;

#[test]
fn every_reference_resolves() {
    let document: Value = serde_json::from_str(crate::openapi()).unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
