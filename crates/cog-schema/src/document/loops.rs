//! References that come back to where they started without going into the value: no value could ever be
//! checked against them. A tree (`properties` or `items` in between) is no such loop.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::reach::Reached;
use crate::problem::SchemaProblem;
use crate::subschema::{children, is_in_place};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Done,
}

/// One problem for each loop.
pub(super) fn find(document: &Value, reached: &Reached) -> Vec<SchemaProblem> {
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
) -> Option<SchemaProblem> {
    marks.insert(start.to_owned(), Mark::Open);
    let mut trail = vec![(start.to_owned(), next(document, reached, start))];
    while let Some((here, rest)) = trail.last_mut() {
        let Some(step) = rest.pop() else {
            marks.insert(here.clone(), Mark::Done);
            trail.pop();
            continue;
        };
        match marks.get(&step) {
            Some(Mark::Done) => {}
            Some(Mark::Open) => {
                let names = trail.iter().map(|(pointer, _)| pointer.as_str());
                let problem = told(names.skip_while(|pointer| *pointer != step), &step);
                trail.iter().for_each(|(pointer, _)| {
                    marks.insert(pointer.clone(), Mark::Done);
                });
                return Some(problem);
            }
            None => {
                marks.insert(step.clone(), Mark::Open);
                let rest = next(document, reached, &step);
                trail.push((step, rest));
            }
        }
    }
    None
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

fn told<'a>(loop_: impl Iterator<Item = &'a str>, back: &str) -> SchemaProblem {
    const MOST: usize = 6;
    let mut names: Vec<String> = loop_.map(|pointer| format!("#{pointer}")).collect();
    if names.len() > MOST {
        names.truncate(MOST);
        names.push("…".to_owned());
    }
    names.push(format!("#{back}"));
    let message = format!("the references go round in a circle: {}", names.join(" → "));
    SchemaProblem::new(back, message).suggest(
        "Let the circle go through `properties` or `items`, so that each round goes deeper into the value.",
    )
}
