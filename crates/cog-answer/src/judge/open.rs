//! Taking a reply apart: meta and data, each put in order.

use cog_json::{Node, Value};
use cog_schema::Violation;
use cog_spec::{Dialect, RepairRule};

use super::Reading;
use crate::{
    AnswerRules, error,
    repair::{
        Ledger,
        said::{Fill, Said},
        trim,
    },
    shape::Shape,
};

/// A reply taken apart.
pub(super) struct Opened {
    pub(super) meta: Value,
    /// Whether the model itself states a risk.
    pub(super) states_risk: bool,
    /// The data carry fields of meta beside them.
    pub(super) is_bare: bool,
    /// None where there are none.
    pub(super) data: Option<Value>,
    pub(super) ledger: Ledger,
    /// What is wrong with the envelope itself.
    pub(super) violations: Vec<Violation>,
}

pub(super) fn open(rules: &AnswerRules, reading: Reading) -> Opened {
    let Reading { value, shape, mut ledger } = reading;
    let (data, violations) = match shape {
        Shape::Envelope { .. } => data_of_envelope(value.node()),
        Shape::Bare => data_alone(rules, value.node(), &mut ledger),
    };
    let data = data.map(|data| drop_nulls(rules, &value, data, "data"));
    let is_envelope = shape != Shape::Bare;
    let said = match is_envelope {
        true => said(rules, &value),
        false => Ok(data.as_ref().map_or_else(|| Said::of_meta(None), |data| Said::of_data(data.node()))),
    };
    let fill = Fill {
        rationale: data.as_ref().and_then(|data| data.get("rationale")).and_then(Node::as_str),
        responsibility: &rules.manifest.responsibility,
        demands_confidence: is_envelope && rules.manifest.constraints.require_confidence,
    };
    let states_risk = said.as_ref().is_ok_and(Said::states_risk);
    let meta = said.map_or_else(|meta| meta, |said| said.repair(&fill, &mut ledger));
    Opened { meta, states_risk, is_bare: !is_envelope, data, ledger, violations }
}

/// The meta of an envelope, or what stands in its place and is no object. A null stands for an absent meta, as it
/// does for an arm of the envelope.
pub(super) fn said(rules: &AnswerRules, reply: &Value) -> Result<Said, Value> {
    match reply.get("meta") {
        Some(meta) if meta.is_object() => {
            Ok(Said::of_meta(Some(drop_nulls(rules, reply, meta, "meta").node())))
        }
        Some(meta) if !meta.is_null() => Err(meta.to_value()),
        _ => Ok(Said::of_meta(None)),
    }
}

/// A part of the envelope without the nulls that the dialect it was asked in made the model write.
pub(super) fn drop_nulls(rules: &AnswerRules, whole: &Value, part: Node<'_>, name: &str) -> Value {
    match rules.asked {
        Dialect::OpenAiStrict => trim::without_added_nulls(whole, part, name, &rules.contract),
        _ => whole.child(part),
    }
}

fn data_of_envelope(root: Node<'_>) -> (Option<Node<'_>>, Vec<Violation>) {
    let mut violations = Vec::new();
    let data = root.get("data").filter(|data| data.is_object());
    match root.get("data") {
        Some(_) if data.is_some() => {}
        Some(other) if !other.is_null() => {
            let message = format!("found {}; allowed: an object", error::named(other.kind()));
            violations.push(error::violation("data", "type", message));
        }
        _ => violations.push(error::violation("data", "required", "`ok` is true, and `data` is absent")),
    }
    if root.get("error").is_some_and(|error| !error.is_null()) {
        violations.push(error::violation(
            "error",
            "envelope",
            "`ok` is true, and there is an `error` all the same",
        ));
    }
    (data, violations)
}

/// Supplement R28.
fn data_alone<'a>(
    rules: &AnswerRules,
    root: Node<'a>,
    ledger: &mut Ledger,
) -> (Option<Node<'a>>, Vec<Violation>) {
    let compat = &rules.manifest.compat;
    let is_asked_for = !rules.manifest.format.asks_for_envelope();
    let is_taken = root.is_object() && compat.runtime_auto_wrap && compat.accepts_v21_payload;
    if is_asked_for || is_taken {
        ledger.note_whole(RepairRule::Wrap);
        return (Some(root), Vec::new());
    }
    let violation = match root.is_object() {
        true => error::violation("ok", "required", "the reply is no envelope: it has no boolean `ok`"),
        false => {
            let found = error::named(root.kind());
            error::violation("", "type", format!("found {found}; allowed: an object `{{ok, meta, data}}`"))
        }
    };
    (None, vec![violation])
}
