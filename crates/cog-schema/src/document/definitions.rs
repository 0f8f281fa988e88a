//! The definitions of the runtime: of media, which are the four sources of an input (docs/spec/media.md, ruling R14) and an output
//! (SPEC 2.3), and of a handoff, which are what a module emits and the packet that it receives (docs/handoff.md).

use cog_spec::media_type;
use serde_json::{Map, Value, json};

use crate::subschema::names;

/// A media input.
pub(super) const INPUT: &str = "MediaInput";

/// A media output.
pub(super) const OUTPUT: &str = "MediaOutput";

/// The branches of SPEC 2.3. A choice of all three also accepts an upload, as the runtime's definition does.
const SOURCES: [&str; 3] = ["url", "base64", "file"];

/// The `media_type` of SPEC 2.3.
const MEDIA_TYPES: &str = "^(image|audio|video)/[a-z0-9.+-]+$";

/// Adds the definition of the runtime to each media input, found by name or by structure, and to the media output, found by name.
/// Returns the pointers of the inputs.
///
/// The author's keywords stay, so that nothing is accepted that the author forbids (ruling R14).
pub(super) fn add(document: &mut Value, schemas: &[String], documents: bool) -> Vec<String> {
    let inputs = [format!("/$defs/{INPUT}"), format!("/definitions/{INPUT}")];
    let outputs = [format!("/$defs/{OUTPUT}"), format!("/definitions/{OUTPUT}")];
    let mut found = Vec::new();
    for pointer in schemas {
        if outputs.contains(pointer) {
            document.pointer_mut(pointer).and_then(Value::as_object_mut).into_iter().for_each(extend_output);
        }
        let Some(schema) = document.pointer(pointer) else { continue };
        let branches = branches(document, schema);
        if !inputs.contains(pointer) && !lists_sources(&branches) {
            continue;
        }
        if let Some(Value::Object(own)) = document.pointer_mut(pointer) {
            extend(own, branches, documents);
            found.push(pointer.clone());
        }
    }
    found
}

/// Returns the branches of a choice. One that only refers to a definition is that definition, because the definition may also
/// be used without this choice.
fn branches(document: &Value, schema: &Value) -> Vec<Value> {
    let branches = choice(schema).and_then(|keyword| schema.get(keyword)?.as_array());
    branches.into_iter().flatten().map(|branch| resolved(document, branch).clone()).collect()
}

fn resolved<'a>(document: &'a Value, branch: &'a Value) -> &'a Value {
    let target = branch.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    let is_alone = branch.as_object().is_some_and(|members| members.len() == 1);
    target.filter(|_| is_alone).and_then(|target| document.pointer(target)).unwrap_or(branch)
}

fn choice(schema: &Value) -> Option<&'static str> {
    ["oneOf", "anyOf"].into_iter().find(|keyword| schema.get(*keyword).is_some_and(Value::is_array))
}

fn type_of(branch: &Value) -> Option<&str> {
    branch.pointer("/properties/type/const")?.as_str()
}

/// Returns whether a choice lists the three sources of SPEC 2.3 by a constant `type`.
fn lists_sources(branches: &[Value]) -> bool {
    SOURCES.iter().all(|source| branches.iter().any(|branch| type_of(branch) == Some(source)))
}

/// Adds what the runtime requires of a source to the author's definition.
fn extend(own: &mut Map<String, Value>, mut branches: Vec<Value>, documents: bool) {
    let runtime = input(documents);
    let sources = runtime.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    widen(own, documents);
    let is_list = lists_sources(&branches);
    if is_list && !branches.iter().any(|branch| type_of(branch) == Some(UPLOAD)) {
        let file = branches.iter().find(|branch| type_of(branch) == Some("file"));
        let upload = file.map(upload_like);
        branches.extend(upload);
    }
    let own_types: Vec<&str> = branches.iter().filter_map(type_of).collect();
    let is_choice_of_sources = sources.iter().filter_map(type_of).any(|source| own_types.contains(&source));
    match choice(&Value::Object(own.clone())) {
        Some(keyword) if is_choice_of_sources => {
            for branch in &mut branches {
                let source = sources.iter().find(|source| type_of(source) == type_of(branch));
                if let (Some(source), Value::Object(branch)) = (source, &mut *branch) {
                    widen(branch, documents);
                    merge(branch, source);
                }
            }
            own.insert(keyword.to_owned(), Value::Array(branches));
        }
        // Branches of another form say for themselves what they accept.
        Some(_) => {}
        None if own.contains_key("$ref") || own.contains_key("allOf") => {}
        None => merge(own, &runtime),
    }
}

/// Adds what the runtime requires of a generated file to the author's definition. A definition with branches says for itself what it
/// accepts, and one of another type is no media object.
fn extend_output(own: &mut Map<String, Value>) {
    let has_branches =
        ["oneOf", "anyOf", "allOf", "$ref"].into_iter().any(|keyword| own.contains_key(keyword));
    let is_object = own.get("type").is_none_or(|kind| kind == "object");
    let is_closed = own.get("additionalProperties") == Some(&Value::Bool(false));
    if !has_branches && is_object && !is_closed {
        merge(own, &output());
    }
}

/// The source of SPEC 9: a file that was uploaded before.
const UPLOAD: &str = "upload_ref";

/// Returns the author's branch for files as the one for uploads, with everything else that it requires or forbids.
fn upload_like(file: &Value) -> Value {
    let mut upload = file.clone();
    if let Some(properties) = upload.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("path");
        properties.insert("type".to_owned(), json!({ "const": UPLOAD }));
    }
    if let Some(required) = upload.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "path");
    }
    upload
}

/// Leaves to the runtime what it checks itself, and accepts PDF where the author's `media_type` has the pattern of SPEC 2.3, and an
/// upload where all sources of SPEC 2.3 are listed.
fn widen(own: &mut Map<String, Value>, documents: bool) {
    let Some(properties) = own.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let pattern = properties.get_mut("media_type").and_then(|schema| schema.get_mut("pattern"));
    if let Some(pattern) = pattern.filter(|pattern| *pattern == MEDIA_TYPES) {
        *pattern = media_types(documents).into();
    }
    // The runtime decodes the data itself, and says what is wrong with it (E1013).
    if let Some(data) = properties.get_mut("data").and_then(Value::as_object_mut)
        && data.get("contentEncoding").is_some_and(|encoding| encoding == "base64")
    {
        data.remove("contentEncoding");
    }
    let types =
        properties.get_mut("type").and_then(|schema| schema.get_mut("enum")).and_then(Value::as_array_mut);
    if let Some(types) = types
        && SOURCES.iter().all(|source| types.iter().any(|one| one == source))
        && !types.iter().any(|one| one == UPLOAD)
    {
        types.push(UPLOAD.into());
    }
}

/// Adds the keywords of `other` that `own` does not have. Of `required` and `properties`, the members are added.
fn merge(own: &mut Map<String, Value>, other: &Value) {
    let is_closed = own.get("additionalProperties") == Some(&Value::Bool(false));
    let is_required = |name: &str| names(other.get("required")).any(|required| required == name);
    for (keyword, added) in other.as_object().into_iter().flatten() {
        match (own.get_mut(keyword), added) {
            (None, _) => drop(own.insert(keyword.clone(), added.clone())),
            (Some(Value::Array(names)), Value::Array(more)) if keyword == "required" => {
                names.extend(more.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
            }
            (Some(Value::Object(properties)), Value::Object(more)) if keyword == "properties" => {
                // An author who closes a definition forbids what the runtime only allows.
                for (name, schema) in more.iter().filter(|(name, _)| !is_closed || is_required(name)) {
                    merge_property(properties, name, schema);
                }
            }
            // The author's own pattern is checked too.
            (Some(pattern), _) if keyword == "pattern" && pattern != added => {
                own.entry("allOf").or_insert_with(|| json!([]));
                if let Some(all) = own.get_mut("allOf").and_then(Value::as_array_mut) {
                    all.push(json!({ "pattern": added }));
                }
            }
            (Some(_), _) => {}
        }
    }
}

fn merge_property(properties: &mut Map<String, Value>, name: &str, schema: &Value) {
    match properties.get_mut(name) {
        None | Some(Value::Bool(true)) => drop(properties.insert(name.to_owned(), schema.clone())),
        Some(Value::Object(own)) => merge(own, schema),
        Some(_) => {}
    }
}

/// Returns the definition of an input.
pub(super) fn input(documents: bool) -> Value {
    let text = json!({ "type": "string" });
    let url = json!({ "type": "string", "format": "uri" });
    let media_type = json!({ "type": "string", "pattern": media_types(documents) });
    let branches = [
        source("url", &[("url", &url)], &[("media_type", &text)]),
        source("base64", &[("media_type", &media_type), ("data", &text)], &[]),
        source("file", &[("path", &text)], &[("media_type", &text)]),
        source(UPLOAD, &[("upload_id", &text)], &[("media_type", &text)]),
    ];
    json!({ "type": "object", "required": ["type"], "oneOf": branches })
}

/// Returns the pattern of the types of an input, as people, browsers and servers write them: in capitals, and with
/// parameters. The content decides, and the runtime knows the names (ruling R61).
fn media_types(documents: bool) -> &'static str {
    if documents { media_type::PATTERN } else { media_type::PATTERN_WITHOUT_DOCUMENTS }
}

/// Returns the definition of an output: SPEC 2.3 with the members of SPEC 4.3.
pub(super) fn output() -> Value {
    json!({
        "type": "object",
        "required": ["type", "media_type"],
        "properties": {
            "type": { "type": "string", "enum": ["url", "base64", "file"] },
            "media_type": { "type": "string", "pattern": MEDIA_TYPES },
            "url": { "type": "string", "format": "uri" },
            "data": { "type": "string" },
            "path": { "type": "string" },
            "width": { "type": "integer" },
            "height": { "type": "integer" },
            "duration_ms": { "type": "integer" },
            "expires_at": { "type": "string" },
            "generation_params": { "type": "object" },
        },
    })
}

/// Returns one branch: an object of this `type` with its required and optional fields.
fn source(name: &str, required: &[(&str, &Value)], optional: &[(&str, &Value)]) -> Value {
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
    for (key, schema) in required.iter().chain(optional).chain(&[("checksum", &checksum())]) {
        properties.insert((*key).to_owned(), (*schema).clone());
    }
    let required: Vec<&str> = ["type"].into_iter().chain(required.iter().map(|(key, _)| *key)).collect();
    json!({ "properties": properties, "required": required })
}

fn checksum() -> Value {
    json!({
        "type": "object",
        "required": ["algorithm", "value"],
        "properties": {
            "algorithm": { "enum": ["sha256", "md5", "crc32"] },
            "value": { "type": "string" },
        },
    })
}

// Handoffs.

/// The context of a packet, which a module emits.
pub(super) const CONTEXT: &str = "Handoff";

/// A complete packet.
pub(super) const PACKET: &str = "HandoffPacket";

/// Returns the definition of the context that a module emits. A module that receives a packet hands over its objective unchanged, so
/// the model may omit it.
///
/// Every object is closed and no member is a map, so that each dialect can express it.
pub(super) fn context(requires_objective: bool) -> Value {
    let objective = requires_objective.then_some("primary_objective");
    let required: Vec<&str> = objective.into_iter().chain(["constraints", "artifacts"]).collect();
    json!({
        "type": "object",
        "description": "What another agent needs to take over the task, without the conversation so far.",
        "required": required,
        "additionalProperties": false,
        "properties": {
            "primary_objective": text("The task. It never changes when it is handed over again."),
            "status": text("How far the task is, such as `in_progress`."),
            "completed_steps": texts("The steps that are completed, with their result."),
            "next_immediate_step": text("The step to begin with."),
            "constraints": texts("What the receiver must obey. Every constraint that was received stays, word for word."),
            "artifacts": {
                "type": "array",
                "description": "Files and pages that the receiver needs. Only references, never content.",
                "items": {
                    "type": "object",
                    "required": ["name", "reference"],
                    "additionalProperties": false,
                    "properties": {
                        "name": text("A short name, such as `design_doc`."),
                        "reference": text("A path or a URL."),
                    },
                },
            },
            "history_summary": text("What was discussed and decided, in a few sentences."),
        },
    })
}

/// Returns the definition of a packet. Its hashes and limits are checked elsewhere.
pub(super) fn packet() -> Value {
    let reference = json!({
        "anyOf": [
            { "type": "string", "minLength": 1 },
            {
                "type": "object",
                "properties": {
                    "url": { "type": "string" },
                    "path": { "type": "string" },
                    "media_type": { "type": "string" },
                    "sha256": { "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" },
                },
            },
        ],
    });
    json!({
        "type": "object",
        "description": "A handoff packet: a task of another agent, with its state.",
        "required": ["protocol", "meta", "context"],
        "properties": {
            "protocol": { "type": "string", "const": "harmony_handoff_v1" },
            "meta": {
                "type": "object",
                "required": ["source_agent", "target_agent", "timestamp"],
                "properties": {
                    "source_agent": text("The agent that hands over."),
                    "target_agent": text("The agent that takes over."),
                    "timestamp": { "type": "string", "format": "date-time" },
                },
            },
            "context": {
                "type": "object",
                "required": ["primary_objective", "constraints", "artifacts"],
                "properties": {
                    "primary_objective": text("The task, which does not change."),
                    "status": text("How far the task is."),
                    "completed_steps": texts("The steps that are completed."),
                    "next_immediate_step": text("The step to begin with."),
                    "constraints": texts("What the receiver must obey."),
                    "artifacts": {
                        "type": "object",
                        "description": "Files and pages by name: a path or a URL.",
                        "additionalProperties": reference,
                    },
                },
            },
            "history_summary": text("What was discussed and decided."),
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "description": description })
}
