//! The OpenAPI document: the routes as their handlers describe them, with the schemas of their bodies.

use std::collections::{BTreeMap, BTreeSet};

use cog_module::{
    Module,
    export::{envelope_schema, input_schema},
};
use cog_spec::{Code, Modality, Schema};
use serde_json::{Map, Value, json};
use utoipa::{
    IntoParams, IntoResponses,
    openapi::{
        ArrayBuilder, ContentBuilder, Header, HeaderBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder,
    },
};

/// The description of the document.
const DESCRIPTION: &str = "Runs Cognitive Modules. The answer of a language model is one validated envelope, or a stream \
    of chunks that are validated as they arrive. A failed request returns an envelope too: `error.code` and \
    `error.message` describe the problem, `error.suggestion` a solution.";

/// Returns the OpenAPI 3.1 document of these routes, as JSON with a newline at the end.
pub(crate) fn document_text(routes: OpenApi) -> String {
    text(&document(routes))
}

/// Adds schemas, security and general information to the document of the routes.
fn document(routes: OpenApi) -> Value {
    let mut document = members(serde_json::to_value(routes).unwrap_or_default());
    document.extend(members(json!({
        "info": info(),
        "servers": [{ "url": "/" }],
        "components": { "schemas": all(), "securitySchemes": { "token": token() } },
        // A server on loopback needs no token.
        "security": [{ "token": [] }, {}],
    })));
    require_bodies(&mut document);
    document.into()
}

/// Marks every request body as required.
fn require_bodies(document: &mut Map<String, Value>) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    let operations = paths.filter_map(|(_, operations)| operations.as_object_mut()).flatten();
    let bodies = operations.filter_map(|(_, operation)| operation.get_mut("requestBody")?.as_object_mut());
    bodies.for_each(|body| {
        body.insert("required".to_owned(), true.into());
    });
}

fn info() -> Value {
    json!({
        "title": "cog",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

fn token() -> Value {
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the operator's `--token-file`. A browser's WebSocket sends it as the subprotocol \
            `cog.token.TOKEN`, together with `cog`."
    })
}

fn text(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the members of a JSON object; none for any other value.
fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

// The headers that several operations accept.

/// Selects the response mode.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `negotiate` reads the header")]
pub(crate) struct ModeHeader {
    /// One envelope (`sync`) or a stream (`streaming`). Overrides `_options.response_mode`, the query and `Accept`.
    #[param(rename = "X-Cognitive-Response-Mode", required = false, pattern = "^(sync|streaming)$")]
    mode: String,
}

/// Names the last chunk that the client has.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, not read: `request::recovery_from_headers` reads them")]
pub(crate) struct RecoveryHeaders {
    /// The last event received, `SESSION:SEQ`. A browser's EventSource sends it when it reconnects.
    #[param(rename = "Last-Event-ID", required = false)]
    event: String,
    /// The session of the stream, without `Last-Event-ID`.
    #[param(rename = "X-Cognitive-Recovery-Session", required = false)]
    session: String,
    /// The number of the last chunk received.
    #[param(rename = "X-Cognitive-Recovery-Seq", required = false, pattern = "^[0-9]{1,19}$")]
    seq: String,
}

// The schemas of the document: from the specification, and for the HTTP interface.

/// The schemas of the HTTP interface.
const HTTP: &str = include_str!("../schemas/http.json");
/// The schemas of the specification that HTTP uses. Each may use the definitions of an earlier one.
const SPECIFIED: [Schema; 3] = [Schema::Envelope, Schema::Chunk, Schema::Capabilities];

/// All schemas, by name.
fn all() -> Map<String, Value> {
    let mut all = Map::new();
    let mut shared = Map::new();
    for schema in SPECIFIED {
        specified(schema, &mut shared, &mut all);
    }
    all.extend(members(serde_json::from_str(HTTP).unwrap_or_default()));
    all
}

/// Adds a schema and its definitions. A definition that differs from an earlier one of the same name gets the name of its
/// schema as a prefix.
fn specified(schema: Schema, shared: &mut Map<String, Value>, all: &mut Map<String, Value>) {
    let mut document = members(serde_json::from_str(schema.text()).unwrap_or_default());
    document.remove("$schema");
    let title = capitalized(schema.as_str());
    let definitions = members(document.remove("definitions").unwrap_or_default());
    let name = |key: &str, shared: &Map<String, Value>| match shared.get(key) == definitions.get(key) {
        true => capitalized(key),
        false => format!("{title}{}", capitalized(key)),
    };
    // First all names, because a definition may refer to a later one.
    for (key, definition) in &definitions {
        shared.entry(key).or_insert_with(|| definition.clone());
    }
    for (key, definition) in &definitions {
        all.insert(name(key, shared), with_references(definition.clone(), &|key| name(key, shared)));
    }
    all.insert(title.clone(), with_references(Value::Object(document), &|key| name(key, shared)));
}

/// Returns the schema with its references pointing to the document.
fn with_references(schema: Value, name: &impl Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(members) => Value::Object(
            members.into_iter().map(|(key, value)| renamed_reference(key, value, name)).collect(),
        ),
        Value::Array(items) => items.into_iter().map(|item| with_references(item, name)).collect(),
        other => other,
    }
}

fn renamed_reference(key: String, value: Value, name: &impl Fn(&str) -> String) -> (String, Value) {
    let target = value.as_str().filter(|_| key == "$ref").and_then(|it| it.strip_prefix("#/definitions/"));
    let target = target.map(|target| Value::from(format!("#/components/schemas/{}", name(target))));
    let value = target.unwrap_or_else(|| with_references(value, name));
    (key, value)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

// The failure responses of an operation: an envelope for every status, with its codes.

/// The failures of every operation: access checks and limits.
pub(crate) struct Refused;

/// The failures of an operation that runs a module: those, and every code of a run.
pub(crate) struct RunFailed;

/// The response of a run: one envelope, or its chunks.
pub(crate) struct Executed;

/// The chunks of a session.
pub(crate) struct Chunks;

type Responses = BTreeMap<String, RefOr<Response>>;

/// The statuses of access checks and limits.
const GUARDS: [(u16, &str); 6] = [
    (400, "The request is malformed, the Host header is missing, or there is more than one token"),
    (401, "The token is missing or wrong"),
    (403, "The Host or the Origin is not allowed, or the token may not use the route"),
    (408, "The body did not arrive in time"),
    (429, "Too many requests, or too many streams"),
    (500, "Internal server error"),
];

/// The status of an unknown name or id.
const NOT_FOUND: (u16, &str) = (404, "Not found");

impl IntoResponses for Refused {
    fn responses() -> Responses {
        let all = GUARDS.into_iter().chain([NOT_FOUND]);
        all.map(|(status, why)| (status.to_string(), envelope(status, why.to_owned()).into())).collect()
    }
}

impl IntoResponses for RunFailed {
    fn responses() -> Responses {
        let mut statuses: BTreeMap<u16, Vec<String>> =
            GUARDS.into_iter().map(|(status, why)| (status, vec![why.to_owned()])).collect();
        for code in Code::ALL {
            statuses.entry(code.http_status()).or_default().push(format!(
                "{} {}",
                code.as_str(),
                code.name()
            ));
        }
        statuses.entry(422).or_default().insert(0, "Any error that the model reports".to_owned());
        statuses
            .into_iter()
            .map(|(status, reasons)| (status.to_string(), envelope(status, reasons.join("; ")).into()))
            .collect()
    }
}

impl IntoResponses for Executed {
    fn responses() -> Responses {
        let envelope = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope"))).build();
        let response = chunks("The envelope, or a stream of chunks").content("application/json", envelope);
        let warning =
            header("A fallback: one envelope instead of a stream, or a new run instead of a resumed one");
        BTreeMap::from([("200".to_owned(), response.header("X-Cognitive-Warning", warning).build().into())])
    }
}

impl IntoResponses for Chunks {
    fn responses() -> Responses {
        BTreeMap::from([(
            "200".to_owned(),
            chunks("A stream: one Event per chunk, or one Chunk per line. Empty lines are keep-alives")
                .build()
                .into(),
        )])
    }
}

/// A stream as server-sent events or NDJSON.
fn chunks(description: &str) -> ResponseBuilder {
    let events = ContentBuilder::new().schema(Some(Ref::from_schema_name("Event"))).build();
    let lines = ArrayBuilder::new().items(Ref::from_schema_name("Chunk"));
    ResponseBuilder::new()
        .description(description)
        .header("X-Session-Id", header("The session of the stream"))
        .content("text/event-stream", events)
        .content("application/x-ndjson", ContentBuilder::new().schema(Some(lines)).build())
}

/// A response with an envelope.
fn envelope(status: u16, description: String) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Envelope"))).build();
    let response = ResponseBuilder::new().description(description).content("application/json", content);
    match status {
        429 | 503 => response.header("Retry-After", header("Seconds to wait")),
        401 => response.header("WWW-Authenticate", header("`Bearer`")),
        _ => response,
    }
    .build()
}

fn header(description: &str) -> Header {
    HeaderBuilder::new().description(Some(description)).build()
}

// The OpenAPI document of one module, with its own types.

/// The path in the document of every server.
const EXECUTE: &str = "/v1/modules/{name}/execute";
/// The names of the schemas of a module.
const INPUT: &str = "ModuleInput";
const REQUEST: &str = "ModuleRequest";
const ENVELOPE: &str = "ModuleEnvelope";

/// Returns the OpenAPI 3.1 document of a module at a server, as JSON with a newline at the end. The types of the input and of the
/// envelope are the module's own.
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
    text(&json!({
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

#[cfg(test)]
mod tests;
