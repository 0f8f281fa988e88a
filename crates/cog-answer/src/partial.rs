//! `partial_data`: what there is of an answer that failed (rulings R30, R43).

use cog_json::{Node, Path, Value};
use cog_schema::{MAX_VIOLATIONS, Violation};

use crate::{
    AnswerRules,
    repair::trim::{self, Omitted},
};

/// Data without the fields that break the contract, and without containers that were only just begun; none where
/// the manifest wants none, where nothing is there yet, or where too much is wrong to tell it all.
pub(crate) fn of_data(rules: &AnswerRules, whole: &Value, data: Node<'_>) -> Option<Value> {
    if !rules.manifest.failure.partial_allowed || !data.is_object() {
        return None;
    }
    let violations = rules.contract.check_data(data).violations;
    if violations.len() >= MAX_VIOLATIONS {
        return None;
    }
    let mut omitted = violating(data, &violations);
    let has_begun = collect_begun(data, &mut omitted);
    has_begun.then(|| trim::without(whole, data, &omitted))
}

/// The values in which violations stand. A field that is absent stands nowhere.
fn violating(data: Node<'_>, violations: &[Violation]) -> Omitted {
    let paths = violations.iter().filter_map(|violation| violation.path.parse::<Path>().ok());
    trim::located(data, "data", &paths.filter(|path| path.depth() > 1).collect())
}

/// Omits containers that are still open and hold nothing that was told. Whether the node itself is kept.
fn collect_begun(node: Node<'_>, omitted: &mut Omitted) -> bool {
    if node.is_complete() || !(node.is_object() || node.is_array()) {
        return true;
    }
    let inner: Vec<Node<'_>> = node.members().map(|(_, member)| member).chain(node.elements()).collect();
    let kept = inner.into_iter().filter(|inner| collect_begun(*inner, omitted)).count();
    if kept == 0 {
        omitted.insert(node.id());
    }
    kept > 0
}
