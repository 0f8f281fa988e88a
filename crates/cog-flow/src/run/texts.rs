//! The texts in place of the calls and references of a prompt.

use cog_json::Node;
use cog_module::PromptPart;

use crate::{Callee, Plan, Results, value_path::ValuePath};

/// Returns the texts in the order of the prompt. A result that does not exist is `null`.
pub(super) fn texts(plan: &Plan, results: &Results) -> Vec<String> {
    let parts = plan.module.prompt.parts().iter().enumerate();
    parts
        .filter_map(|(position, part)| match part {
            PromptPart::Call(_) => Some(result_of(plan, results, position)),
            PromptPart::Reference { module, path, .. } => Some(value_of(plan, results, module, path)),
            _ => None,
        })
        .collect()
}

/// Returns the data of the module that a call of the prompt names.
fn result_of(plan: &Plan, results: &Results, position: usize) -> String {
    let call = plan.calls.binary_search_by_key(&position, |call| call.position).ok();
    let call = call.and_then(|index| plan.calls.get(index));
    let envelope = call.map(|call| results.get(Callee::Part(call.part))).unwrap_or_default();
    text(envelope.get("data"))
}

/// Returns a value of the envelope of a module.
fn value_of(plan: &Plan, results: &Results, module: &str, path: &str) -> String {
    let envelope = plan.callee_named(module).map(|callee| results.get(callee)).unwrap_or_default();
    let path = ValuePath::parse(&format!("$.{path}"));
    text(path.and_then(|path| path.find(envelope.node())))
}

/// Returns a string as it is, and another value as JSON.
fn text(value: Option<Node<'_>>) -> String {
    match value {
        Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        None => "null".to_owned(),
    }
}
