//! The OpenAPI document of one module, with its own types.

use std::collections::BTreeSet;

use cog_module::{
    Module,
    export::{envelope_schema, input_schema},
};
use cog_spec::Modality;
use serde_json::{Map, Value, json};

use super::members;

/// The path in the document of every server.
const EXECUTE: &str = "/v1/modules/{name}/execute";
/// The names of the schemas of a module.
const INPUT: &str = "ModuleInput";
const REQUEST: &str = "ModuleRequest";
const ENVELOPE: &str = "ModuleEnvelope";

/// Returns the OpenAPI 3.1 document of a module at a server, as JSON with a newline at the end. The types of the input and of the
/// envelope are those of the module.
pub fn module_openapi(module: &Module, server: &str) -> String {
    let whole: Value = serde_json::from_str(crate::openapi()).unwrap_or_default();
    let operation = operation(&whole, module);
    let mut schemas = members(whole.pointer("/components/schemas").cloned().unwrap_or_default());
    let request = request(schemas.get("ExecuteRequest"));
    schemas.insert(REQUEST.to_owned(), request);
    schemas.insert(INPUT.to_owned(), rebased(input_schema(module).into(), INPUT));
    schemas.insert(ENVELOPE.to_owned(), rebased(envelope_schema(module).into(), ENVELOPE));
    let used = used(&operation, &schemas);
    schemas.retain(|name, _| used.contains(name));
    let path = EXECUTE.replace("{name}", &module.manifest.name);
    super::text(&json!({
        "openapi": whole.get("openapi"),
        "info": {
            "title": module.manifest.name,
            "version": module.manifest.version,
            "description": module.manifest.responsibility,
        },
        "servers": [{ "url": server }],
        "paths": { path: { "post": operation } },
        "components": {
            "schemas": schemas,
            "securitySchemes": whole.pointer("/components/securitySchemes"),
        },
        "security": whole.get("security"),
    }))
}

/// Returns the operation that runs a module, with the types of this one.
fn operation(whole: &Value, module: &Module) -> Value {
    let execute = whole.get("paths").and_then(|paths| paths.get(EXECUTE)?.get("post")).cloned();
    let mut operation = members(execute.unwrap_or_default());
    operation.remove("tags");
    operation.insert("operationId".to_owned(), module.manifest.name.as_str().into());
    if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| parameter.get("in") != Some(&Value::from("path")));
    }
    let mut operation = Value::Object(operation);
    if let Some(bodies) = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut) {
        let takes_media = module.manifest.modalities.input.iter().any(|kind| *kind != Modality::Text);
        bodies.retain(|kind, _| kind == "application/json" || takes_media);
    }
    let json = "application~1json/schema";
    for (at, name) in [("/requestBody/content", REQUEST), ("/responses/200/content", ENVELOPE)] {
        if let Some(schema) = operation.pointer_mut(&format!("{at}/{json}")) {
            *schema = reference(name);
        }
    }
    operation
}

/// Returns the body of a request, with the input of the module.
fn request(general: Option<&Value>) -> Value {
    let mut request = members(general.cloned().unwrap_or_default());
    request.remove("examples");
    if let Some(properties) = request.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("input".to_owned(), reference(INPUT));
    }
    request.into()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns a schema whose references start at its place in the document.
fn rebased(mut schema: Value, name: &str) -> Value {
    let mut open = vec![&mut schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get_mut("$ref")
                    && let Some(pointer) = target.strip_prefix('#')
                {
                    *target = format!("#/components/schemas/{name}{pointer}");
                }
                open.extend(members.values_mut());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    schema
}

/// Returns the names of the schemas that an operation refers to, also through other schemas.
fn used(operation: &Value, schemas: &Map<String, Value>) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut open = vec![operation];
    while let Some(value) = open.pop() {
        let name =
            value.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix("#/components/schemas/"));
        let name = name.and_then(|rest| rest.split('/').next());
        if let Some((name, schema)) = name.and_then(|name| schemas.get_key_value(name))
            && used.insert(name.clone())
        {
            open.push(schema);
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    used
}
