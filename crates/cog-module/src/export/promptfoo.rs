//! A module with its golden tests as a configuration of promptfoo.

use std::collections::HashSet;

use cog_json::{Node, Path, Segment, ToJson as _};
use cog_spec::RUNTIME_KEYS;
use serde_json::{Value, json};

use super::{ExportError, envelope_schema, yaml};
use crate::{
    Module,
    golden::{self, Expected, is_envelope, operator, path},
};

/// A configuration of promptfoo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promptfoo {
    /// The text of `promptfooconfig.yaml`.
    pub text: String,
    /// What is not in it, one line each: golden tests that could not be read, and expectations that promptfoo does not
    /// have.
    pub left_out: Vec<String>,
}

/// Returns a module and its golden tests as a configuration of promptfoo. `target` is the module for `cog run`: its
/// name, or its path from the directory of the configuration.
///
/// # Errors
/// If `target` cannot be part of a command.
pub fn promptfoo(module: &Module, target: &str) -> Result<Promptfoo, ExportError> {
    if target.contains(|c: char| c.is_control() || matches!(c, '\'' | '"' | '$' | '`' | '\\')) {
        return Err(ExportError::Path { path: target.to_owned() });
    }
    let discovery = golden::discover(module);
    let mut left_out: Vec<String> =
        discovery.problems.iter().map(|problem| problem.message.clone()).collect();
    let fields = golden::property_names(&module.schema);
    let tests: Vec<Value> = discovery
        .cases
        .iter()
        .map(|case| {
            let found = expectations(&case.expected, &fields);
            let without = found.left_out.iter().map(|key| format!("{}: promptfoo has no `{key}`", case.name));
            left_out.extend(without);
            let schemas =
                found.schemas.into_iter().map(|schema| json!({ "type": "is-json", "value": schema }));
            let judged = case.criteria.iter().map(|one| json!({ "type": "llm-rubric", "value": plain(one) }));
            json!({
                "description": case.name,
                "vars": { "input": without_tags(&case.input.to_json()) },
                "assert": schemas.chain(judged).collect::<Vec<_>>(),
            })
        })
        .collect();
    let name = &module.manifest.name;
    let config = json!({
        "description": format!("Golden tests of {name}"),
        "prompts": ["{{input}}"],
        "providers": [{ "id": command(target), "label": format!("cog run {name}") }],
        "defaultTest": { "assert": [{ "type": "is-json", "value": envelope(module) }] },
        "tests": tests,
    });
    Ok(Promptfoo { text: yaml::text(&config), left_out })
}

/// Returns the provider. promptfoo adds the prompt as the first argument, and ignores the output of a program that
/// fails: exit code 1 is an envelope with an error.
fn command(target: &str) -> String {
    format!("exec: sh -c 'cog run \"{target}\" --input-json \"$0\" || test $? -eq 1'")
}

/// Returns the schema of the envelope as text: promptfoo resolves the references of an object from the start of the
/// file.
fn envelope(module: &Module) -> String {
    without_tags(&format!("{:#}", Value::Object(envelope_schema(module))))
}

/// Returns JSON without the tags of a template, which promptfoo would replace. They can only be inside strings.
fn without_tags(json: &str) -> String {
    json.replace("{{", "{\\u007b").replace("{%", "{\\u0025").replace("{#", "{\\u0023")
}

/// Returns text without the tags of a template, which promptfoo would replace.
fn plain(text: &str) -> String {
    text.replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
}

// Golden tests as JSON Schemas of the envelope.

/// What an answer must satisfy.
#[derive(Debug, Default, PartialEq)]
struct Expectations {
    /// The schemas of the envelope.
    schemas: Vec<Value>,
    /// The expectations that no schema expresses.
    left_out: Vec<String>,
}

/// Returns the expectations of a golden test. `fields` are the names of all fields in the module's schema.
fn expectations(expected: &Expected, fields: &HashSet<&str>) -> Expectations {
    let mut found = Expectations::default();
    match expected {
        Expected::Exact(answer) => found.exact(answer.node()),
        Expected::Schemas { fields, .. } => {
            for (path, schema) in fields {
                // A reference would start at another place.
                match schema.to_string().contains("\"$ref\"") {
                    true => found.left_out.push(format!("{path} with $ref")),
                    false => found.schemas.push(at(path, schema.clone())),
                }
            }
        }
        Expected::Assertions { assertions, .. } => {
            for (key, value) in assertions.members() {
                found.assertion(key, value, fields);
            }
        }
    }
    found
}

impl Expectations {
    /// An envelope has its members, except those that the runtime adds; other values are the data.
    fn exact(&mut self, answer: Node<'_>) {
        if !is_envelope(answer) {
            return self.schemas.push(under(&["data"], equal(answer)));
        }
        for (key, value) in answer.members() {
            if key == "meta" {
                let own = value.members().filter(|(key, _)| !RUNTIME_KEYS.contains(key));
                self.schemas.extend(own.map(|(key, value)| under(&["meta", key], equal(value))));
            } else {
                self.schemas.push(under(&[key], equal(value)));
            }
        }
    }

    fn assertion(&mut self, key: &str, value: Node<'_>, fields: &HashSet<&str>) {
        if key == "required" {
            let paths = value.elements().filter_map(Node::as_str).filter_map(|text| path(text).ok());
            return self.schemas.extend(paths.map(|path| at(&path, json!(true))));
        }
        let is_field = fields.contains(key.rsplit('.').next().unwrap_or(key));
        let (field, rule) = operator(key).filter(|_| !is_field).unwrap_or((key, "equals"));
        match path(field).ok().and_then(|path| schema(&path, rule, value)) {
            Some(schema) => self.schemas.push(schema),
            None => self.left_out.push(key.to_owned()),
        }
    }
}

/// Returns the schema of a rule; none if there is no such schema.
fn schema(path: &Path, rule: &str, value: Node<'_>) -> Option<Value> {
    Some(match rule {
        "equals" => at(path, equal(value)),
        "not" => json!({ "not": at(path, equal(value)) }),
        "min" => at(
            path,
            amount(value.as_f64()?, ["minimum", "minLength", "minItems", "minProperties"], f64::ceil),
        ),
        "max" => at(
            path,
            amount(value.as_f64()?, ["maximum", "maxLength", "maxItems", "maxProperties"], f64::floor),
        ),
        "contains" => at(path, contains(value)),
        "matches" => at(path, pattern(value.as_str().filter(|pattern| is_common(pattern))?)),
        _ => return None,
    })
}

fn equal(value: Node<'_>) -> Value {
    json!({ "const": value.to_serde() })
}

/// Returns the schema of a number, or of the length of text, a list or an object.
fn amount(bound: f64, keywords: [&str; 4], whole: fn(f64) -> f64) -> Value {
    let [number, text, list, object] = keywords;
    let length = whole(bound).clamp(0.0, f64::from(u32::MAX)) as u32;
    json!({ "anyOf": [
        { "type": "number", number: bound },
        { "type": "string", text: length },
        { "type": "array", list: length },
        { "type": "object", object: length },
    ] })
}

fn contains(value: Node<'_>) -> Value {
    let list = json!({ "type": "array", "contains": equal(value) });
    match value.as_str() {
        Some(part) => json!({ "anyOf": [pattern(&escaped(part)), list] }),
        None => list,
    }
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// Returns whether a regular expression has no flags, which ECMAScript does not have inside an expression.
fn is_common(pattern: &str) -> bool {
    !pattern.contains("(?i")
        && !pattern.contains("(?s")
        && !pattern.contains("(?m")
        && !pattern.contains("(?x")
}

/// Returns a regular expression of ECMAScript for a string, also where it is read as Unicode.
fn escaped(text: &str) -> String {
    const SPECIAL: &str = r"\^$.|?*+()[]{}/";
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if SPECIAL.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Returns the schema of an envelope with a value at a path: `ok`, `meta` and `error` start at the envelope, others at
/// `data`.
fn at(path: &Path, schema: Value) -> Value {
    let starts_at_envelope =
        matches!(path.first(), Some(Segment::Key("ok" | "meta" | "error" | "partial_data" | "data")));
    let inner = path.segments().rev().fold(schema, |inner, segment| match segment {
        Segment::Key(key) => under(&[key], inner),
        Segment::Index(index) => element(index, inner),
    });
    if starts_at_envelope { inner } else { under(&["data"], inner) }
}

fn under(keys: &[&str], schema: Value) -> Value {
    keys.iter().rev().fold(
        schema,
        |inner, key| json!({ "type": "object", "required": [key], "properties": { *key: inner } }),
    )
}

/// Returns the schema of a list with this element.
fn element(index: usize, schema: Value) -> Value {
    let mut items = vec![json!(true); index];
    items.push(schema);
    json!({ "type": "array", "minItems": items.len(), "items": items })
}
