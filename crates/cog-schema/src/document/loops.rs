//! Finds circular references that do not go deeper into the value: no value can be checked against them. A tree is
//! allowed, because `properties` or `items` are between its references.
//!
//! References that fan out are errors too: 40 levels of `allOf` with two references to the next level would take forever.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::reach::Reached;
use crate::schema_error::SchemaError;
use crate::subschema::{children, is_in_place};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    /// The number of schemas that one value is checked against.
    Done(u64),
}

/// The maximum number of schemas that one value is checked against.
const MAX_WIDTH: u64 = 100_000;

/// Returns an error for each loop and for each schema that fans out too far.
pub(super) fn find(document: &Value, reached: &Reached) -> Vec<SchemaError> {
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

/// Returns the number of schemas that a value is checked against: one, and those of each next schema.
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
