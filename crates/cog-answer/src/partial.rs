//! `partial_data`: the part of a failed answer that is usable (rulings R30, R43).

use cog_json::{Node, Path, Value};
use cog_schema::{MAX_VIOLATIONS, Violation};

use crate::{
    AnswerRules,
    repair::{self, NodeSet},
};

/// Returns the data without violating fields and without containers that are still empty. None if the manifest
/// forbids it, if there are no data yet, or if there are too many violations to list them all.
pub(crate) fn from_data(rules: &AnswerRules, whole: &Value, data: Node<'_>) -> Option<Value> {
    if !rules.manifest.failure.partial_allowed || !data.is_object() {
        return None;
    }
    let violations = rules.contract.check_data(data).violations;
    if violations.len() >= MAX_VIOLATIONS {
        return None;
    }
    let mut omitted = violating(data, &violations);
    let has_begun = collect_begun(data, &mut omitted);
    has_begun.then(|| repair::without(whole, data, &omitted))
}

/// Returns the values that violate the contract. An absent field is not a value.
fn violating(data: Node<'_>, violations: &[Violation]) -> NodeSet {
    let paths = violations.iter().filter_map(|violation| violation.path.parse::<Path>().ok());
    repair::located(data, "data", &paths.filter(|path| path.depth() > 1).collect())
}

/// Omits open containers and strings without content. Returns whether the node itself is retained.
fn collect_begun(node: Node<'_>, omitted: &mut NodeSet) -> bool {
    if node.is_complete() {
        return true;
    }
    let inner: Vec<Node<'_>> = node.members().map(|(_, member)| member).chain(node.elements()).collect();
    let retained = inner.into_iter().filter(|inner| collect_begun(*inner, omitted)).count();
    let is_retained = retained > 0 || node.as_str().is_some_and(|text| !text.is_empty());
    if !is_retained {
        omitted.insert(node.id());
    }
    is_retained
}
