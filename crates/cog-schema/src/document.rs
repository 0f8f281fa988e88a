//! Prepares `schema.json` for the engine.
//!
//! References stay inside the file. The names `$schema` and `$id` are removed, so that nothing can be fetched by them
//! (ruling R13). The definition of the runtime is added to media inputs (ruling R14). Everything that would fail or loop later is
//! an error with location and suggestion here.

mod definitions;
mod lint;
mod reach;

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value};

pub use self::lint::without_unsupported_patterns;
use crate::{
    locate::context_pointers, rules::Rules, subschema::token, violation::SchemaError, wording::nearest,
};

/// A document that is ready to be compiled.
#[derive(Debug)]
pub(crate) struct Document {
    /// The complete document.
    pub(crate) value: Arc<Value>,
    /// The pointers of its parts.
    pub(crate) parts: Parts,
    /// The JSON pointer of each schema that its parts or definitions reach.
    pub(crate) schemas: Vec<String>,
    /// The JSON pointers of media inputs, to which the definition of the runtime was added.
    pub(crate) media: Vec<String>,
    /// The JSON pointers of the runtime's definitions of a handoff.
    pub(crate) handoffs: Handoffs,
    /// What has no effect or excludes every value.
    pub(crate) warnings: Vec<SchemaError>,
}

impl Document {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// Every error of the first step that fails.
    pub(crate) fn read(original: &Value, rules: &Rules) -> Result<Self, Vec<SchemaError>> {
        lint::check_size(original).map_err(|problem| vec![problem])?;
        let mut value = original.clone();
        let handoffs = define(&mut value, rules.documents);
        let parts = Parts::find(&value, rules)?;
        let reached = reach::reach(&value, &parts.roots(&value))?;
        let mut problems = lint::malformed(&value, &parts.roots(&value));
        problems.extend(lint::patterns(&value, &reached.schemas));
        problems.extend(reach::find_loops(&value, &reached));
        if !problems.is_empty() {
            return Err(problems);
        }
        let warnings = lint::warnings(&value, &parts, &reached);
        reach::localise(&mut value, &reached);
        let media = definitions::add(&mut value, &reached.schemas, rules.documents);
        let schemas = reach::reach(&value, &parts.roots(&value))?.schemas;
        Ok(Self { value: Arc::new(value), parts, schemas, media, handoffs, warnings })
    }
}

// The definitions of the runtime, which a schema refers to without defining them.

const KEYWORDS: [&str; 2] = ["$defs", "definitions"];

/// The pointers of the definitions of a handoff that were added to a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Handoffs {
    /// What a module emits.
    pub(crate) contexts: Vec<String>,
    /// The packet that a module receives.
    pub(crate) packets: Vec<String>,
}

/// Adds the definitions that the document refers to without defining them.
fn define(document: &mut Value, documents: bool) -> Handoffs {
    let missing = missing(document);
    let mut added = Handoffs::default();
    let takes_packet = missing.iter().any(|(_, name)| *name == definitions::PACKET);
    for (keyword, name) in missing {
        let pointer = format!("/{keyword}/{name}");
        let definition = match name {
            definitions::INPUT => definitions::input(documents),
            definitions::OUTPUT => definitions::output(),
            definitions::PACKET => {
                added.packets.push(pointer);
                definitions::packet()
            }
            _ => {
                added.contexts.push(pointer);
                definitions::context(!takes_packet)
            }
        };
        insert(document, keyword, name, definition);
    }
    added
}

fn insert(document: &mut Value, keyword: &str, name: &str, definition: Value) {
    let Some(members) = document.as_object_mut() else { return };
    let definitions = members.entry(keyword).or_insert_with(|| Value::Object(Map::new()));
    if let Some(definitions) = definitions.as_object_mut() {
        definitions.insert(name.to_owned(), definition);
    }
}

/// Returns the definitions that are missing, each with the keyword that it is below.
fn missing(document: &Value) -> Vec<(&'static str, &'static str)> {
    let references = references(document);
    let names = [definitions::INPUT, definitions::OUTPUT, definitions::CONTEXT, definitions::PACKET];
    let mut missing = Vec::new();
    for keyword in KEYWORDS {
        for name in names {
            let pointer = format!("/{keyword}/{name}");
            if references.contains(format!("#{pointer}").as_str()) && document.pointer(&pointer).is_none() {
                missing.push((keyword, name));
            }
        }
    }
    missing
}

/// Returns the references in a document.
fn references(document: &Value) -> HashSet<&str> {
    let mut references = HashSet::new();
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                references.extend(members.get("$ref").and_then(Value::as_str));
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    references
}

// Finds the four parts of a contract.

/// The JSON pointers of the parts of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) input: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) meta: Option<String>,
    pub(crate) error: Option<String>,
}

impl Parts {
    /// Finds the parts by the manifest's `io`, otherwise by name. `output` is read as the part in
    /// `compat.schema_output_alias` if that part is absent.
    fn find(document: &Value, rules: &Rules) -> Result<Self, Vec<SchemaError>> {
        let Some(members) = document.as_object() else {
            let message = "the schema must be an object with the parts `input`, `data`, `meta` and `error`";
            return Err(vec![SchemaError::new("", message)]);
        };
        let mut parts = Self::default();
        let mut problems = Vec::new();
        for (name, given, part) in [
            ("input", &rules.io.input, &mut parts.input),
            ("data", &rules.io.data, &mut parts.data),
            ("meta", &rules.io.meta, &mut parts.meta),
            ("error", &rules.io.error, &mut parts.error),
        ] {
            *part = match given {
                Some(pointer) => match resolved(document, name, pointer) {
                    Ok(pointer) => Some(pointer),
                    Err(problem) => {
                        problems.push(problem);
                        None
                    }
                },
                None if members.contains_key(name) => Some(format!("/{name}")),
                None if name == rules.output_alias && members.contains_key("output") => {
                    Some("/output".to_owned())
                }
                None => None,
            };
        }
        if problems.is_empty() { Ok(parts) } else { Err(problems) }
    }

    /// Returns the schemas from which all others are reached: the parts and the definitions.
    fn roots(&self, document: &Value) -> Vec<String> {
        let parts = [&self.input, &self.data, &self.meta, &self.error].into_iter().flatten().cloned();
        let mut roots: Vec<String> = parts.collect();
        for keyword in ["$defs", "definitions"] {
            let definitions = document.get(keyword).and_then(Value::as_object);
            let names = definitions.into_iter().flat_map(|members| members.keys());
            roots.extend(names.map(|name| format!("/{keyword}/{}", token(name))));
        }
        roots.extend(context_pointers(document));
        roots
    }
}

/// Returns the pointer in `io`, without the `#` of a fragment.
fn resolved(document: &Value, part: &str, pointer: &str) -> Result<String, SchemaError> {
    let pointer = pointer.strip_prefix('#').unwrap_or(pointer);
    match document.pointer(pointer) {
        Some(_) => Ok(pointer.to_owned()),
        None => Err(missing_target(document, pointer, &format!("`io.{part}` points to `{pointer}`"))),
    }
}

/// Returns the error of a pointer without a target, with the most similar existing name.
fn missing_target(document: &Value, pointer: &str, subject: &str) -> SchemaError {
    let problem = SchemaError::new("", format!("{subject}, which does not exist"));
    let (outer, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    let siblings = document.pointer(outer).and_then(Value::as_object);
    let near = siblings.and_then(|members| nearest(name, members.keys().map(String::as_str)));
    match near {
        Some(near) => problem.suggest(format!("Did you mean `{outer}/{near}`?")),
        None => problem.suggest("Define the schema there, or correct the reference."),
    }
}

#[cfg(test)]
mod tests;
