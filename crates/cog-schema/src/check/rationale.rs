//! `data.rationale`: why the answer is what it is (rulings R29, R30).

use cog_json::{Kind, Node, Path};
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
        match data.get("rationale") {
            Some(rationale) => self.check_rationale_text(rationale),
            None => Some(missing("`rationale` is missing")),
        }
    }

    /// The same of a rationale that is there.
    pub(super) fn check_rationale_text(&self, rationale: Node<'_>) -> Option<Violation> {
        if !self.facts.requires_rationale {
            return None;
        }
        if is_empty(rationale) {
            return Some(missing(format!("`rationale` is empty: found {}", found(rationale))));
        }
        let must_be_text = self.rules.format.asks_for_envelope() && !self.facts.names_rationale;
        (must_be_text && !rationale.is_string()).then(|| mistyped(&place(), rationale, "a string"))
    }
}

fn missing(message: impl Into<String>) -> Violation {
    Violation::new(&place(), "rationale", Code::MissingRationale, message)
}

fn place() -> Path {
    below(&root("data"), "rationale")
}

fn is_empty(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => true,
        Kind::String => node.as_str().is_some_and(|text| text.trim().is_empty()),
        Kind::Array | Kind::Object => node.is_empty(),
        Kind::Bool | Kind::Number => false,
    }
}
