use cog_module::{BuiltinModule, Origin, load};

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

#[test]
fn document_of_a_module_has_its_types() {
    for shipped in BuiltinModule::all() {
        let module = load(&Origin::BuiltIn(shipped)).unwrap();
        let document: Value = serde_json::from_str(&module_openapi(&module, "https://cog.example")).unwrap();
        let path = format!("/v1/modules/{}/execute", shipped.name);
        let operation = &document["paths"][path]["post"];
        assert_eq!(operation["operationId"], shipped.name);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["ModuleInput"]["type"], "object");
        assert!(schemas["ModuleEnvelope"]["properties"]["data"].is_object());
        assert_eq!(
            schemas["ModuleRequest"]["properties"]["input"]["$ref"],
            "#/components/schemas/ModuleInput"
        );
        assert!(schemas.get("ModuleList").is_none(), "a schema of another route");
        let mut references = Vec::new();
        collect(&document, &mut references);
        for reference in references {
            assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
        }
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
