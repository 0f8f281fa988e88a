//! Checks of a document before it is compiled.

mod keywords;

use cog_json::Value as Tree;
use cog_spec::Risk;
use serde_json::Value;

use super::{Parts, Reached};
use crate::{
    engine::{self, Pattern},
    finding::findings,
    locate::Locator,
    subschema::token,
    violation::SchemaError,
    wording::{Suggestions, quoted},
};

/// Returns what a document contains that has no effect or excludes every value, at most 100 warnings.
pub(super) fn warnings(document: &Value, parts: &Parts, reached: &Reached) -> Vec<SchemaError> {
    let mut warnings = Warnings::default();
    sections(&mut warnings, document, parts, reached);
    for pointer in &reached.schemas {
        if let Some(schema) = document.pointer(pointer).and_then(Value::as_object) {
            keywords::check(&mut warnings, pointer, schema);
            keywords::check_values(&mut warnings, pointer, schema);
        }
    }
    keywords::check_required(&mut warnings, document, parts, reached);
    check(&mut warnings, document, parts.meta.as_ref());
    warnings.into_vec()
}

/// The sections of a document.
const SECTIONS: [&str; 6] = ["input", "data", "meta", "error", "$defs", "definitions"];

/// Warns about misspelt sections that nothing refers to.
fn sections(warnings: &mut Warnings, document: &Value, parts: &Parts, reached: &Reached) {
    let io = [&parts.input, &parts.data, &parts.meta, &parts.error].into_iter().flatten();
    let used: Vec<&String> = io.chain(reached.references.values()).collect();
    for name in document.as_object().into_iter().flat_map(|members| members.keys()) {
        let pointer = format!("/{}", token(name));
        let is_used = used.iter().any(|other| other.strip_prefix(&pointer).is_some_and(is_end));
        if SECTIONS.contains(&name.as_str()) || is_used {
            continue;
        }
        if let Some(help) = warnings.did_you_mean(name, SECTIONS) {
            warnings.add(&pointer, format!("unknown section {}: it has no effect", quoted(name)), help);
        }
    }
}

/// Returns whether a pointer ends here, or its next token starts.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

/// Checks each root against the metaschema; a check of the complete document would not check its parts.
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
    // `patterns` reports invalid patterns.
    let findings = findings.into_iter().filter(|finding| !finding.message.ends_with(" regex"));
    let problems = findings.map(|finding| SchemaError {
        pointer: format!("{root}{}", finding.at),
        message: format!("not valid JSON Schema (Draft-07): {}", finding.message),
        // The type of another language is known, and need not be similar.
        suggestion: advice(schema, &finding.at, &finding.rule).or(finding.suggestion),
    });
    problems.collect()
}

/// Returns the suggestion for common mistakes at a keyword.
fn advice(parent: &Value, at: &str, rule: &str) -> Option<String> {
    let value = parent.pointer(at)?;
    let mut names = at.rsplit('/');
    let keyword = names.next().filter(|_| names.next() != Some("properties"))?;
    match (keyword, value) {
        ("required", Value::Bool(_)) => {
            Some("List the name of the field in the `required` of its object.".to_owned())
        }
        ("items", Value::String(name)) => {
            Some(format!("Write a schema, such as `{{ \"type\": \"{name}\" }}`."))
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(is_exclusive)) => {
            let bound = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
            let (schema, _) = at.rsplit_once('/').unwrap_or_default();
            let number = parent
                .pointer(schema)
                .and_then(|schema| schema.get(bound))
                .filter(|number| number.is_number());
            Some(match (is_exclusive, number) {
                (true, Some(number)) => format!(
                    "This is Draft-04; in Draft-07, write `\"{keyword}\": {number}` instead of `{bound}` and this."
                ),
                (true, None) => format!("This is Draft-04; in Draft-07, `{keyword}` is the bound itself."),
                (false, _) => {
                    format!("This is Draft-04; in Draft-07, remove it: `{bound}` includes the bound.")
                }
            })
        }
        ("type", Value::String(name)) => type_name(name).map(|known| format!("Write {}.", quoted(known))),
        _ => without_quotes(value, rule),
    }
}

/// Returns the name in JSON Schema of a type of another language.
fn type_name(name: &str) -> Option<&'static str> {
    Some(match name.to_lowercase().as_str() {
        "text" | "str" | "string" | "varchar" | "char" | "date" | "datetime" => "string",
        "int" | "long" | "integer" => "integer",
        "float" | "double" | "decimal" | "number" => "number",
        "bool" | "boolean" => "boolean",
        "list" | "tuple" | "set" | "array" => "array",
        "dict" | "map" | "json" | "object" | "struct" | "record" => "object",
        "none" | "nil" | "null" => "null",
        _ => return None,
    })
}

/// Returns the suggestion for a number or boolean that is written as a string.
fn without_quotes(value: &Value, rule: &str) -> Option<String> {
    let text = value.as_str().filter(|_| rule == "type")?;
    let is_literal = matches!(serde_json::from_str(text), Ok(Value::Number(_) | Value::Bool(_)));
    is_literal.then(|| format!("Write {} without quotes.", quoted(text)))
}

/// Compiles each pattern, and returns an error for each unsupported one.
pub(super) fn patterns(document: &Value, schemas: &[String]) -> Vec<SchemaError> {
    schemas
        .iter()
        .filter_map(|pointer| Some((pointer, document.pointer(pointer)?)))
        .flat_map(|(pointer, schema)| patterns_of(pointer, schema))
        .filter_map(|(pointer, pattern)| Pattern::new(&pattern).err().map(|_| unusable(pointer, &pattern)))
        .collect()
}

/// Returns the patterns of a schema itself, with their pointers.
fn patterns_of(pointer: &str, schema: &Value) -> Vec<(String, String)> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let own = own.map(|pattern| (format!("{pointer}/pattern"), pattern.to_owned()));
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|members| members.keys());
    let names = names.map(|name| (format!("{pointer}/patternProperties/{}", token(name)), name.clone()));
    own.into_iter().chain(names).collect()
}

/// The suggestion for unsupported patterns.
pub(super) const LINEAR: &str = "Check the brackets, and remove look-around, back-references and very large repeats. Patterns are matched in linear time.";

fn unusable(pointer: String, pattern: &str) -> SchemaError {
    SchemaError::new(pointer, format!("the pattern `{pattern}` is not supported")).suggest(LINEAR)
}

/// The maximum bytes of all keys and strings. Larger schemas are mistakes or attacks.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of values.
const MAX_VALUES: usize = 10_000;
/// The maximum nesting.
const MAX_LEVELS: usize = 64;

/// Checks the size of a document, before anything else walks over it.
pub(super) fn check_size(document: &Value) -> Result<(), SchemaError> {
    let mut values = 0;
    let mut bytes = 0;
    let mut open = vec![(document, 1)];
    while let Some((value, depth)) = open.pop() {
        values += 1;
        bytes += own_bytes(value);
        let counts =
            [("values", values, MAX_VALUES), ("bytes", bytes, MAX_BYTES), ("levels", depth, MAX_LEVELS)];
        if let Some((unit, _, max)) = counts.into_iter().find(|(_, count, max)| count > max) {
            let message = format!("the schema is too large: more than {max} {unit}");
            return Err(SchemaError::new("", message).suggest("Split the module, or simplify its schema."));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn own_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Object(members) => members.keys().map(String::len).sum(),
        _ => 0,
    }
}

/// The maximum number of warnings of a document.
const MAX_WARNINGS: usize = 100;

/// The warnings so far.
#[derive(Default)]
struct Warnings {
    found: Vec<SchemaError>,
    suggestions: Suggestions,
}

impl Warnings {
    fn add(&mut self, pointer: &str, message: String, help: String) {
        if self.found.len() < MAX_WARNINGS {
            self.found.push(SchemaError::new(pointer, message).suggest(help));
        }
    }

    fn did_you_mean<'a>(&self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let near = self.suggestions.nearest(name, known)?;
        Some(format!("Did you mean {}?", quoted(near)))
    }

    fn into_vec(self) -> Vec<SchemaError> {
        self.found
    }
}

// Warnings about a `meta` that differs from the form that every envelope has.

/// Warns about a confidence that is not from 0 to 1, and about unknown levels of risk.
fn check(warnings: &mut Warnings, document: &Value, meta: Option<&String>) {
    let Some(pointer) = meta else { return };
    let Some(fields) = document.pointer(pointer).and_then(|meta| meta.get("properties")) else { return };
    if let Some(keyword) = fields.get("confidence").and_then(excluding_keyword) {
        let message = "`confidence` is always a number from 0 to 1".to_owned();
        let at = format!("{pointer}/properties/confidence/{keyword}");
        let help = "Write `\"type\": \"number\", \"minimum\": 0, \"maximum\": 1`.";
        warnings.add(&at, message, help.to_owned());
    }
    let levels = fields.pointer("/risk/enum").and_then(Value::as_array).into_iter().flatten();
    for (index, level) in levels.enumerate() {
        let Some(name) = level.as_str().filter(|name| !Risk::NAMES.contains(name)) else { continue };
        let message = format!("{} is not a level of risk", quoted(name));
        let at = format!("{pointer}/properties/risk/enum/{index}");
        warnings.add(&at, message, format!("The levels are {}.", Risk::NAMES.join(", ")));
    }
}

/// Returns the keyword of a schema that excludes fractions, or allows more than 1.
fn excluding_keyword(schema: &Value) -> Option<&'static str> {
    let is_number =
        |kind: &Value| kind == "number" || kind.as_array().is_some_and(|all| all.contains(&"number".into()));
    if schema.get("type").is_some_and(|kind| !is_number(kind)) {
        return Some("type");
    }
    ["maximum", "minimum"]
        .into_iter()
        .find(|keyword| schema.get(*keyword).and_then(Value::as_f64).is_some_and(|bound| bound > 1.0))
}

#[cfg(test)]
mod tests;
