//! Splits a reply into meta and data, and repairs each.

use cog_json::{Node, Value};
use cog_schema::Violation;
use cog_spec::RepairRule;

use super::ParsedReply;
use crate::{
    AnswerRules, error,
    repair::{
        Ledger,
        reply_meta::{Fill, ReplyMeta},
        trim,
    },
    shape::Shape,
};

/// The parts of a reply.
pub(super) struct Opened {
    pub(super) meta: Value,
    /// Whether the model itself states a risk.
    pub(super) states_risk: bool,
    /// The reply is bare data, which may contain fields of meta.
    pub(super) is_bare: bool,
    /// None if they are absent.
    pub(super) data: Option<Value>,
    pub(super) ledger: Ledger,
    /// The violations of the envelope itself.
    pub(super) violations: Vec<Violation>,
}

pub(super) fn open(rules: &AnswerRules, parsed: ParsedReply) -> Opened {
    let ParsedReply { value, shape, mut ledger } = parsed;
    let (data, violations) = match shape {
        Shape::Envelope { .. } => data_of_envelope(value.node()),
        Shape::Bare => data_alone(rules, value.node(), &mut ledger),
    };
    let data = data.map(|data| drop_nulls(rules, &value, data, "data"));
    let is_envelope = shape != Shape::Bare;
    let reply_meta = match is_envelope {
        true => reply_meta(rules, &value),
        false => Ok(data.as_ref().map_or_else(ReplyMeta::absent, |data| ReplyMeta::from_data(data.node()))),
    };
    let fill = Fill {
        rationale: data.as_ref().and_then(|data| data.get("rationale")).and_then(Node::as_str),
        responsibility: &rules.manifest.responsibility,
        requires_confidence: is_envelope && rules.manifest.constraints.require_confidence,
    };
    let states_risk = reply_meta.as_ref().is_ok_and(ReplyMeta::states_risk);
    let meta = reply_meta.map_or_else(|meta| meta, |reply_meta| reply_meta.repair(&fill, &mut ledger));
    Opened { meta, states_risk, is_bare: !is_envelope, data, ledger, violations }
}

/// Returns the meta of an envelope, or the value in its place that is not an object. A null counts as absent, as for
/// other members of the envelope.
pub(super) fn reply_meta(rules: &AnswerRules, reply: &Value) -> Result<ReplyMeta, Value> {
    match reply.get("meta") {
        Some(meta) if meta.is_object() => Ok(ReplyMeta::from_meta(drop_nulls(rules, reply, meta, "meta"))),
        Some(meta) if !meta.is_null() => Err(meta.to_value()),
        _ => Ok(ReplyMeta::absent()),
    }
}

/// Removes the nulls that the dialect of the request forces the model to write.
pub(super) fn drop_nulls(rules: &AnswerRules, whole: &Value, part: Node<'_>, name: &str) -> Value {
    match rules.dialect.adds_nulls() {
        true => trim::without_added_nulls(whole, part, name, &rules.contract),
        false => whole.child(part),
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
        _ => violations.push(error::violation("data", "required", "`ok` is true, but `data` is missing")),
    }
    if root.get("error").is_some_and(|error| !error.is_null()) {
        violations.push(error::violation("error", "envelope", "`ok` is true, but there is an `error`"));
    }
    (data, violations)
}

/// Ruling R28.
fn data_alone<'a>(
    rules: &AnswerRules,
    root: Node<'a>,
    ledger: &mut Ledger,
) -> (Option<Node<'a>>, Vec<Violation>) {
    let compat = &rules.manifest.compat;
    let is_expected = !rules.manifest.format.asks_for_envelope();
    let is_accepted = root.is_object() && compat.runtime_auto_wrap && compat.accepts_v21_payload;
    if is_expected || is_accepted {
        ledger.note_reply(RepairRule::Wrap);
        return (Some(root), Vec::new());
    }
    let violation = match root.is_object() {
        true => error::violation("ok", "required", "the reply is not an envelope: it has no boolean `ok`"),
        false => {
            let found = error::named(root.kind());
            error::violation("", "type", format!("found {found}; allowed: an object `{{ok, meta, data}}`"))
        }
    };
    (None, vec![violation])
}
