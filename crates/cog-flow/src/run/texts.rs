//! The texts in place of the calls and references of a prompt.

use cog_json::Value;
use cog_module::PromptPart;

use crate::{Callee, Plan, Results, results::as_text, value_path::ValuePath};

/// Returns the texts in the order of the prompt. A result that does not exist is `null`.
pub(super) fn texts(plan: &Plan, results: &Results) -> Vec<String> {
    let parts = plan.module.prompt.parts().iter().enumerate();
    parts
        .filter_map(|(position, part)| match part {
            PromptPart::Call(_) => Some(result_of(plan, results, position)),
            PromptPart::Reference { module, path, .. } => {
                Some(as_text(value_of(plan, results, module, path).node()))
            }
            _ => None,
        })
        .collect()
}

/// Returns the data that takes the place of a call of the prompt.
fn result_of(plan: &Plan, results: &Results, position: usize) -> String {
    let mention = plan.mentions.binary_search_by_key(&position, |mention| mention.position).ok();
    let mention = mention.and_then(|index| plan.mentions.get(index));
    let envelope = mention.map(|mention| results.get(Callee::Part(mention.part))).unwrap_or_default();
    envelope.get("data").map_or_else(|| "null".to_owned(), as_text)
}

/// Returns a value of the envelope of a module; null if it does not exist.
pub(super) fn value_of(plan: &Plan, results: &Results, module: &str, path: &str) -> Value {
    let envelope = plan.callee_named(module).map(|callee| results.get(callee)).unwrap_or_default();
    let path = ValuePath::parse(&format!("$.{path}"));
    let found = path.and_then(|path| path.find(envelope.node()));
    found.map_or_else(Value::null, |found| envelope.child(found))
}
