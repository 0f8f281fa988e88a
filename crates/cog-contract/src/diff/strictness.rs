//! New fields of the data where the old version allowed only the fields of its schema (ruling R8).

use cog_json::{Node, Value};
use cog_module::Module;
use cog_spec::Strictness;

use super::{Change, Effect, Part};

/// The number of sampled answers.
const SAMPLES: u64 = 16;

/// Marks a new field as breaking for readers if an answer with it was refused by `schema_strictness: high`.
pub(super) fn apply(changes: &mut [Change], old: &Module, new: &Module) {
    if old.contract.rules().strictness != Strictness::High {
        return;
    }
    let is_added = |change: &&mut Change| {
        change.part == Part::Data && change.kind == "field_added" && change.effect == Effect::Compatible
    };
    for change in changes.iter_mut().filter(is_added) {
        let samples = (0..SAMPLES).filter_map(|seed| new.contract.sample(seed));
        let with_field: Vec<Value> = samples.filter(|data| has(data.node(), &change.path)).collect();
        let shown = with_field.iter().find(|data| shows(data, &change.path, old));
        change.effect = match shown {
            Some(_) => Effect::BreaksReaders,
            // An object without named fields takes any.
            None if !with_field.is_empty() => Effect::Compatible,
            None => Effect::Unknown,
        };
        change.example = shown.cloned();
    }
}

/// Returns whether data has a field. The first step of the path is `data`.
fn has(data: Node<'_>, path: &str) -> bool {
    let mut values = vec![data];
    for step in path.split('.').skip(1) {
        let name = step.trim_end_matches("[]");
        values = values.into_iter().filter_map(|value| value.get(name)).collect();
        for _ in 0..step.matches("[]").count() {
            values = values.into_iter().flat_map(Node::elements).collect();
        }
    }
    !values.is_empty()
}

/// Returns whether the old version refuses data because of a field. The new one accepts every sample.
fn shows(data: &Value, path: &str, old: &Module) -> bool {
    let violations = old.contract.check_data(data.node()).violations;
    violations.iter().any(|violation| without_indexes(&violation.path) == path)
}

/// Returns `data.items[3].title` as `data.items[].title`.
fn without_indexes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for letter in path.chars() {
        // A digit after `[` is dropped, and so are the digits after it, because `[` stays the last letter.
        if !(letter.is_ascii_digit() && out.ends_with('[')) {
            out.push(letter);
        }
    }
    out
}
