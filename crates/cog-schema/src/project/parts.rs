//! The parts of an envelope for a model, with the fields that the specification adds.

use cog_spec::{Code, Form, RationalePlace};
use serde_json::{Map, Value, json};

use super::{Loss, LossKind, defs::flattened};
use crate::{
    contract::Contract,
    locate::context_pointer,
    subschema::{is_annotation, names, reference},
};

/// A part: its schema, and its pointer in the document.
pub(super) struct PartSchema {
    pub(super) schema: Value,
    pub(super) pointer: String,
}

/// Returns the module's meta schema with the three fields that every answer has (SPEC 6.1).
pub(super) fn meta(contract: &Contract, lost: &mut Vec<Loss>) -> PartSchema {
    let part = part(contract, contract.meta.as_ref().map(|part| part.pointer.as_str()), lost);
    with_fields(
        part,
        &[
            ("confidence", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            ("risk", json!({ "type": "string", "enum": ["none", "low", "medium", "high"] })),
            ("explain", json!({ "type": "string", "maxLength": 280 })),
        ],
        &["confidence", "risk", "explain"],
    )
}

/// The field that explains how a model arrived at its answer.
pub(super) const RATIONALE: &str = "rationale";

/// Returns the module's data schema in a form: with the rationale where the form has it, and in an envelope with insights if
/// overflow is enabled.
pub(super) fn data(contract: &Contract, form: &Form, lost: &mut Vec<Loss>) -> PartSchema {
    let mut fields = Vec::new();
    let mut required = Vec::new();
    if contract.rules().needs_rationale {
        fields.push((RATIONALE, json!({ "type": "string" })));
        required.push(RATIONALE);
    }
    // Insights are about the schema and no part of the answer itself: a small model repeats its input in them.
    if contract.rules().overflow.enabled && !form.is_data() {
        fields.push(("extensions", extensions(contract)));
    }
    let part = part(contract, contract.data.as_ref().map(|part| part.pointer.as_str()), lost);
    let mut part = with_fields(part, &fields, &required);
    place_rationale(&mut part.schema, form.rationale);
    part
}

/// Moves the rationale behind the other fields, or removes it.
fn place_rationale(schema: &mut Value, place: RationalePlace) {
    if place == RationalePlace::AsWritten {
        return;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        && let Some(rationale) = properties.shift_remove(RATIONALE)
        && place == RationalePlace::Last
    {
        properties.insert(RATIONALE.to_owned(), rationale);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut)
        && place == RationalePlace::Afterwards
    {
        required.retain(|name| name != RATIONALE);
    }
    for choice in ["oneOf", "anyOf"] {
        let branches = schema.get_mut(choice).and_then(Value::as_array_mut);
        branches.into_iter().flatten().for_each(|branch| place_rationale(branch, place));
    }
}

/// Returns the schema of the context that an answer emits; none if the module emits none.
pub(super) fn emitted(contract: &Contract) -> Option<PartSchema> {
    let names = &contract.rules().emits;
    let properties: Map<String, Value> =
        names.iter().map(|name| (name.clone(), schema_of_context(contract, name))).collect();
    let schema = json!({ "type": "object", "properties": properties });
    (!names.is_empty()).then(|| PartSchema { schema, pointer: String::new() })
}

/// Returns the schema of one type of emitted context: the module's own, or the usual form.
fn schema_of_context(contract: &Contract, name: &str) -> Value {
    let pointer = context_pointer("emits", name);
    if contract.document().pointer(&pointer).is_some() {
        return json!({ "$ref": reference(&pointer) });
    }
    if name != "conversation_history" {
        return json!({ "type": "object" });
    }
    let text = json!({ "type": "string" });
    let message = json!({
        "type": "object", "required": ["role", "content"], "properties": { "role": text, "content": text },
    });
    json!({ "type": "array", "items": message })
}

/// Returns the module's input schema.
pub(super) fn input(contract: &Contract, lost: &mut Vec<Loss>) -> PartSchema {
    let mut part = part(contract, contract.input.as_ref().map(|part| part.pointer.as_str()), lost);
    if let Some(members) = part.schema.as_object_mut() {
        members.entry("type").or_insert_with(|| Value::from("object"));
        members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    part
}

/// Returns the schema of an answer without an envelope.
pub(super) fn bare(contract: &Contract, lost: &mut Vec<Loss>) -> PartSchema {
    part(contract, contract.data.as_ref().map(|part| part.pointer.as_str()), lost)
}

/// Returns the module's error schema with code and message, without `details` of any form.
pub(super) fn error(contract: &Contract, lost: &mut Vec<Loss>) -> PartSchema {
    let part = part(contract, contract.error.as_ref().map(|part| part.pointer.as_str()), lost);
    let text = json!({ "type": "string" });
    let mut part = with_fields(part, &[("code", text.clone()), ("message", text)], &["code", "message"]);
    omit_free_details(&mut part, lost);
    if let Some(code) = part.schema.pointer_mut("/properties/code").and_then(Value::as_object_mut) {
        list_codes(contract, code);
    }
    part
}

/// Removes `details` if they are optional and may have any members: an engine would let a small model write them without end.
fn omit_free_details(part: &mut PartSchema, lost: &mut Vec<Loss>) {
    const DETAILS: &str = "details";
    let is_required = names(part.schema.get("required")).any(|key| key == DETAILS);
    let Some(properties) = part.schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let has_any_members = properties.get(DETAILS).is_some_and(|details| {
        let mut keywords = details.as_object().into_iter().flat_map(Map::keys);
        keywords.all(|keyword| keyword == "type" || is_annotation(keyword))
    });
    if !is_required && has_any_members {
        properties.shift_remove(DETAILS);
        lost.push(Loss {
            pointer: format!("{}/properties/{DETAILS}", part.pointer),
            keyword: String::new(),
            kind: LossKind::EnforcedLocally,
            reason: "the member is not sent: an object with members of any name".to_owned(),
        });
    }
}

impl Contract {
    /// Returns the codes that a model may report: the codes that the error schema lists, otherwise the codes of the
    /// specification that are offered to models, and the codes that the manifest declares.
    pub fn model_codes(&self) -> Vec<String> {
        let error = error(self, &mut Vec::new());
        let listed = error.schema.pointer("/properties/code/enum").and_then(Value::as_array);
        let codes = listed.map(|codes| codes.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        codes.unwrap_or_else(|| offered_codes(self).into_iter().map(str::to_owned).collect())
    }
}

/// Lists the codes that a model may report, unless the module lists them itself.
fn list_codes(contract: &Contract, code: &mut Map<String, Value>) {
    if ["enum", "const", "anyOf", "oneOf", "allOf", "$ref"].iter().any(|keyword| code.contains_key(*keyword))
    {
        return;
    }
    let codes = offered_codes(contract);
    if !codes.is_empty() {
        code.shift_remove("pattern");
        code.insert("enum".to_owned(), json!(codes));
    }
}

/// Returns the codes of the specification and of the manifest that the error schema accepts.
fn offered_codes<'a>(contract: &'a Contract) -> Vec<&'a str> {
    let has_media = contract.rules().media;
    let standard = Code::OF_MODELS.iter().map(|(code, _)| *code);
    let standard = standard.filter(|code| has_media || *code != Code::MediaDecodeFailed);
    let standard = standard.map(|code| -> &'a str { code.as_str() });
    let declared = contract.rules().error_codes.iter().map(String::as_str);
    let schemas = contract.error.as_ref().map(|error| contract.graph.members(error.id, "code"));
    let mut codes: Vec<&str> = standard.chain(declared).collect();
    codes.retain(|code| {
        let value = cog_json::to_value(code).unwrap_or_default();
        schemas.iter().flatten().all(|id| contract.accepts_unshared(*id, value.node()))
    });
    codes
}

fn part(contract: &Contract, pointer: Option<&str>, lost: &mut Vec<Loss>) -> PartSchema {
    let pointer = pointer.unwrap_or_default();
    let schema = match contract.document().pointer(pointer) {
        Some(schema) if !pointer.is_empty() => flattened(contract.document(), schema, pointer, lost),
        _ => json!({ "type": "object" }),
    };
    PartSchema { schema, pointer: pointer.to_owned() }
}

/// Adds missing fields. In a choice between objects (`oneOf`) they are added at the top, from where they are merged into
/// each branch.
fn with_fields(mut part: PartSchema, fields: &[(&str, Value)], required: &[&str]) -> PartSchema {
    let Some(members) = part.schema.as_object_mut() else { return part };
    members.entry("type").or_insert_with(|| Value::from("object"));
    if let Some(properties) =
        members.entry("properties").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
    {
        for (name, schema) in fields {
            properties.entry(*name).or_insert_with(|| schema.clone());
        }
    }
    if let Some(keys) = members.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        let new: Vec<Value> =
            required.iter().map(|key| Value::from(*key)).filter(|key| !keys.contains(key)).collect();
        keys.extend(new);
    }
    part
}

fn extensions(contract: &Contract) -> Value {
    let overflow = contract.rules().overflow;
    let mut required = vec!["text"];
    if overflow.require_suggested_mapping {
        required.push("suggested_mapping");
    }
    let insight = json!({
        "type": "object",
        "properties": { "text": { "type": "string" }, "suggested_mapping": { "type": "string" } },
        "required": required,
    });
    json!({
        "type": "object",
        "properties": { "insights": { "type": "array", "items": insight, "maxItems": overflow.max_items } },
        "required": ["insights"],
    })
}
