//! Finds every schema of a document and the references between them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    document::missing_target,
    subschema::{children, is_in_place, reference, target, token},
    violation::SchemaError,
};

/// The pointers of named schemas (`"$id": "#name"`).
type Anchors = HashMap<String, String>;

/// The schemas that the roots of a document reach.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Each schema once, as a JSON pointer.
    pub(super) schemas: Vec<String>,
    /// The target of each schema with `$ref`, by pointer.
    pub(super) references: HashMap<String, String>,
}

/// Walks from the roots through subschemas and references.
///
/// # Errors
/// An error for each reference without a target in the document.
pub(super) fn reach(document: &Value, roots: &[String]) -> Result<Reached, Vec<SchemaError>> {
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
pub(super) fn localise(document: &mut Value, reached: &Reached) {
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
pub(super) fn find_loops(document: &Value, reached: &Reached) -> Vec<SchemaError> {
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
