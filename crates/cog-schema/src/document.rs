//! Prepares `schema.json` for the engine.
//!
//! References stay inside the file. The names `$schema` and `$id` are removed, so that nothing can be fetched by them
//! (ruling R13). The definition of the runtime is added to media inputs (ruling R14). Everything that would fail or loop later is
//! an error with location and suggestion here.

mod definitions;
mod lint;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    locate::context_pointers,
    rules::Rules,
    subschema::{children, is_in_place, reference, target, token},
    violation::SchemaError,
    wording::nearest,
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
        let reached = reach(&value, &parts.roots(&value))?;
        let mut problems = lint::malformed(&value, &parts.roots(&value));
        problems.extend(lint::patterns(&value, &reached.schemas));
        problems.extend(find_loops(&value, &reached));
        if !problems.is_empty() {
            return Err(problems);
        }
        let warnings = lint::warnings(&value, &parts, &reached);
        localise(&mut value, &reached);
        let media = definitions::add(&mut value, &reached.schemas, rules.documents);
        let schemas = reach(&value, &parts.roots(&value))?.schemas;
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

// Finds every schema of a document and the references between them.

/// The pointers of named schemas (`"$id": "#name"`).
type Anchors = HashMap<String, String>;

/// The schemas that the roots of a document reach.
#[derive(Debug, Default)]
struct Reached {
    /// Each schema once, as a JSON pointer.
    schemas: Vec<String>,
    /// The target of each schema with `$ref`, by pointer.
    references: HashMap<String, String>,
}

/// Walks from the roots through subschemas and references.
///
/// # Errors
/// An error for each reference without a target in the document.
fn reach(document: &Value, roots: &[String]) -> Result<Reached, Vec<SchemaError>> {
    let mut walk =
        Walk { document, anchors: anchors(document), reached: Reached::default(), problems: Vec::new() };
    let mut open: Vec<String> = roots.iter().rev().cloned().collect();
    let mut seen = HashSet::new();
    while let Some(pointer) = open.pop() {
        if seen.insert(pointer.clone()) {
            walk.visit(pointer, &mut open);
        }
    }
    if walk.problems.is_empty() { Ok(walk.reached) } else { Err(walk.problems) }
}

/// The maximum length of a chain of references. Each adds a level to a check, so longer chains are shortened to their end.
const MAX_CHAIN: usize = 2;

/// Replaces each reference by a pointer inside the document, and removes `$schema` and `$id`. There are no circular
/// references.
fn localise(document: &mut Value, reached: &Reached) {
    for pointer in &reached.schemas {
        let Some(members) = document.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        members.remove("$schema");
        members.remove("$id");
        if let Some(target) = reached.end_of(pointer) {
            members.insert("$ref".to_owned(), Value::from(reference(target)));
        }
    }
    if let Some(members) = document.as_object_mut() {
        members.remove("$schema");
        members.remove("$id");
    }
}

impl Reached {
    /// Returns the target of the reference of a schema, or the end of a long chain of references.
    fn end_of(&self, pointer: &str) -> Option<&String> {
        let first = self.references.get(pointer)?;
        let mut chain = std::iter::successors(Some(first), |next| self.references.get(*next));
        match chain.nth(MAX_CHAIN) {
            Some(next) => chain.last().or(Some(next)),
            None => Some(first),
        }
    }
}

struct Walk<'a> {
    document: &'a Value,
    anchors: Anchors,
    reached: Reached,
    problems: Vec<SchemaError>,
}

impl Walk<'_> {
    fn visit(&mut self, pointer: String, open: &mut Vec<String>) {
        let Some(schema) = self.document.pointer(&pointer) else { return };
        let inner: Vec<String> =
            children(schema).into_iter().map(|child| format!("{pointer}{}", child.pointer)).collect();
        open.extend(inner.into_iter().rev());
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            match self.resolve(reference) {
                Ok(target) => {
                    open.push(target.clone());
                    self.reached.references.insert(pointer.clone(), target);
                }
                Err(problem) => {
                    self.problems.push(SchemaError { pointer: format!("{pointer}/$ref"), ..problem });
                }
            }
        }
        self.reached.schemas.push(pointer);
    }

    fn resolve(&self, reference: &str) -> Result<String, SchemaError> {
        let own_name = self.document.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let local = own_name.and_then(|name| reference.strip_prefix(name)).unwrap_or(reference);
        if let Some(pointer) = self.anchors.get(local) {
            return Ok(pointer.clone());
        }
        match target(if local.is_empty() { "#" } else { local }) {
            Some(pointer) if self.document.pointer(&pointer).is_some() => Ok(pointer),
            Some(pointer) => {
                Err(missing_target(self.document, &pointer, &format!("`{reference}` points to `{pointer}`")))
            }
            None => {
                let message = format!("`{reference}` points outside this file; references are never fetched");
                let suggestion = "Copy the schema into `$defs` and refer to it as `#/$defs/NAME`.";
                Err(SchemaError::new("", message).suggest(suggestion))
            }
        }
    }
}

fn anchors(document: &Value) -> Anchors {
    let mut anchors = Anchors::new();
    let mut open = vec![(String::new(), document)];
    while let Some((pointer, value)) = open.pop() {
        if let Some(name) =
            value.get("$id").and_then(Value::as_str).filter(|id| id.len() > 1 && id.starts_with('#'))
        {
            anchors.insert(name.to_owned(), pointer.clone());
        }
        match value {
            Value::Object(members) => {
                open.extend(members.iter().map(|(key, inner)| (format!("{pointer}/{}", token(key)), inner)));
            }
            Value::Array(items) => {
                open.extend(
                    items.iter().enumerate().map(|(index, inner)| (format!("{pointer}/{index}"), inner)),
                );
            }
            _ => {}
        }
    }
    anchors
}

// Finds circular references that do not go deeper into the value: no value can be checked against them. A tree is
// allowed, because `properties` or `items` are between its references.
//
// References that fan out are errors too: 40 levels of `allOf` with two references to the next level would take forever.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    /// The number of schemas that one value is checked against.
    Done(u64),
}

/// The maximum number of schemas that one value is checked against.
const MAX_WIDTH: u64 = 100_000;

/// Returns an error for each loop and for each schema that fans out too far.
fn find_loops(document: &Value, reached: &Reached) -> Vec<SchemaError> {
    let mut marks: HashMap<String, Mark> = HashMap::new();
    let mut problems = Vec::new();
    for start in &reached.schemas {
        if !marks.contains_key(start) {
            problems.extend(follow(document, reached, start, &mut marks));
        }
    }
    problems
}

/// Searches depth first with an explicit stack, because a chain of references can be as long as the document.
fn follow(
    document: &Value,
    reached: &Reached,
    start: &str,
    marks: &mut HashMap<String, Mark>,
) -> Option<SchemaError> {
    marks.insert(start.to_owned(), Mark::Open);
    let mut stack = vec![(start.to_owned(), next(document, reached, start))];
    while let Some((here, rest)) = stack.last_mut() {
        let Some(step) = rest.pop() else {
            let width = width(&next(document, reached, here), marks);
            marks.insert(here.clone(), Mark::Done(width.min(MAX_WIDTH)));
            if width > MAX_WIDTH {
                let problem = too_wide(here);
                close(&stack, marks);
                return Some(problem);
            }
            stack.pop();
            continue;
        };
        match marks.get(&step) {
            Some(Mark::Done(_)) => {}
            Some(Mark::Open) => {
                let names = stack.iter().map(|(pointer, _)| pointer.as_str());
                let problem = circular(names.skip_while(|pointer| *pointer != step), &step);
                close(&stack, marks);
                return Some(problem);
            }
            None => {
                marks.insert(step.clone(), Mark::Open);
                let rest = next(document, reached, &step);
                stack.push((step, rest));
            }
        }
    }
    None
}

/// Closes the schemas on a stack with an error, so that none of them is reported again.
fn close(stack: &[(String, Vec<String>)], marks: &mut HashMap<String, Mark>) {
    for (pointer, _) in stack {
        marks.insert(pointer.clone(), Mark::Done(0));
    }
}

/// Returns the number of schemas that a value is checked against: one, and the number for each next schema.
fn width(next: &[String], marks: &HashMap<String, Mark>) -> u64 {
    next.iter().fold(1, |sum: u64, step| match marks.get(step) {
        Some(Mark::Done(width)) => sum.saturating_add(*width),
        _ => sum,
    })
}

fn too_wide(pointer: &str) -> SchemaError {
    let message = format!("the references fan out: one value needs checks against over {MAX_WIDTH} schemas");
    SchemaError::new(pointer, message).suggest("Refer to each schema once in `allOf`, `anyOf` and `oneOf`.")
}

/// Returns the schemas that a schema applies to the same value.
fn next(document: &Value, reached: &Reached, pointer: &str) -> Vec<String> {
    let mut next: Vec<String> = reached.references.get(pointer).cloned().into_iter().collect();
    if let Some(schema) = document.pointer(pointer) {
        let in_place = children(schema).into_iter().filter(|child| is_in_place(child.keyword));
        next.extend(in_place.map(|child| format!("{pointer}{}", child.pointer)));
    }
    next
}

fn circular<'a>(loop_: impl Iterator<Item = &'a str>, back: &str) -> SchemaError {
    const MAX_SHOWN: usize = 6;
    let mut names: Vec<String> = loop_.map(|pointer| format!("#{pointer}")).collect();
    if names.len() > MAX_SHOWN {
        names.truncate(MAX_SHOWN);
        names.push("…".to_owned());
    }
    names.push(format!("#{back}"));
    let message = format!("circular references: {}", names.join(" → "));
    SchemaError::new(back, message).suggest(
        "Put `properties` or `items` between the references, so that each round goes deeper into the value.",
    )
}

#[cfg(test)]
mod tests;
