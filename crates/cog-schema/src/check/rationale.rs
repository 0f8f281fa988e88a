//! `data.rationale`: why the answer is what it is (supplement R29, R30).

use cog_json::{Kind, Node};
use cog_spec::Code;

use super::{below, mistyped, root};
use crate::contract::Contract;
use crate::finding::found;
use crate::violation::Violation;

impl Contract {
    /// E3003 where a rationale is due and is missing or empty; E3001 where v2.2 and later, whose schema says
    /// nothing of it, have something other than text there.
    pub(super) fn check_rationale(&self, data: Node<'_>) -> Option<Violation> {
        if !data.is_object() || !self.facts.requires_rationale {
            return None;
        }
        let path = || below(&root("data"), "rationale");
        let Some(rationale) = data.get("rationale") else {
            return Some(Violation::new(
                &path(),
                "rationale",
                Code::MissingRationale,
                "the answer has no rationale",
            ));
        };
        if is_empty(rationale) {
            let message = format!("the rationale is empty: found {}", found(rationale));
            return Some(Violation::new(&path(), "rationale", Code::MissingRationale, message));
        }
        let must_be_text = self.rules.format.asks_for_envelope() && !self.facts.names_rationale;
        (must_be_text && !rationale.is_string()).then(|| mistyped(&path(), rationale, "a string"))
    }
}

fn is_empty(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => true,
        Kind::String => node.as_str().is_some_and(|text| text.trim().is_empty()),
        Kind::Array | Kind::Object => node.is_empty(),
        Kind::Bool | Kind::Number => false,
    }
}
