//! References that come back to where they started without going into the value: no value could ever be
//! checked against them. A tree (`properties` or `items` in between) is no such loop.
//!
//! Nor may references fan out without end: `allOf` of twice the next, forty times over, is no loop and takes for ever.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::reach::Reached;
use crate::schema_error::SchemaError;
use crate::subschema::{children, is_in_place};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    /// With the number of schemas that one value is checked against.
    Done(u64),
}

/// The most schemas that one value may be checked against.
const WIDEST: u64 = 100_000;

/// One problem for each loop, and for each schema that fans out too far.
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

/// Depth first, with a stack of our own: a chain of references may be as long as the document.
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
            marks.insert(here.clone(), Mark::Done(width.min(WIDEST)));
            if width > WIDEST {
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
                let problem = reported(names.skip_while(|pointer| *pointer != step), &step);
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

/// Lets go of a stack that has its problem: nothing on it is reported again.
fn close(stack: &[(String, Vec<String>)], marks: &mut HashMap<String, Mark>) {
    for (pointer, _) in stack {
        marks.insert(pointer.clone(), Mark::Done(0));
    }
}

/// How many schemas a value is checked against, itself and those that it leads to counted.
fn width(next: &[String], marks: &HashMap<String, Mark>) -> u64 {
    next.iter().fold(1, |sum: u64, step| match marks.get(step) {
        Some(Mark::Done(width)) => sum.saturating_add(*width),
        _ => sum,
    })
}

fn too_wide(pointer: &str) -> SchemaError {
    let message = format!("the references fan out: one value needs checks against over {WIDEST} schemas");
    SchemaError::new(pointer, message).suggest("Refer to each schema once in `allOf`, `anyOf` and `oneOf`.")
}

/// The schemas that a schema applies to the same value as itself.
fn next(document: &Value, reached: &Reached, pointer: &str) -> Vec<String> {
    let mut next: Vec<String> = reached.references.get(pointer).cloned().into_iter().collect();
    if let Some(schema) = document.pointer(pointer) {
        let in_place = children(schema).into_iter().filter(|child| is_in_place(child.keyword));
        next.extend(in_place.map(|child| format!("{pointer}{}", child.pointer)));
    }
    next
}

fn reported<'a>(loop_: impl Iterator<Item = &'a str>, back: &str) -> SchemaError {
    const MAX: usize = 6;
    let mut names: Vec<String> = loop_.map(|pointer| format!("#{pointer}")).collect();
    if names.len() > MAX {
        names.truncate(MAX);
        names.push("…".to_owned());
    }
    names.push(format!("#{back}"));
    let message = format!("circular references: {}", names.join(" → "));
    SchemaError::new(back, message).suggest(
        "Put `properties` or `items` between the references, so that each round goes deeper into the value.",
    )
}
