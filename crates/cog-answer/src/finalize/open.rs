//! Splits a reply into meta and data, and repairs each.

use cog_json::{Node, Object, Path, Value};
use cog_schema::{Violation, nearest};
use cog_spec::{
    Code, ContextRule, EmittedContext, ErrorBody, Evidence, FieldProbabilities, Meta, Repair, RepairRule,
    Secret, Warning,
};

use super::MeasuredConfidence;
use crate::{
    AnswerRules, error,
    repair::{self, Fill, Ledger, ReplyMeta},
    shape::Shape,
};

/// The parts of a reply.
pub(super) struct ReplyParts {
    pub(super) meta: Value,
    /// Whether the model itself states a risk.
    pub(super) states_risk: bool,
    pub(super) shape: Shape,
    /// None if they are absent.
    pub(super) data: Option<Value>,
    pub(super) ledger: Ledger,
    /// How probable the model found its answer.
    pub(super) probabilities: Option<FieldProbabilities>,
    /// The violations of the envelope itself.
    pub(super) violations: Vec<Violation>,
}

pub(super) fn open(rules: &AnswerRules, parsed: ParsedReply) -> ReplyParts {
    let ParsedReply { value, shape, mut ledger, probabilities } = parsed;
    let (data, violations) = match shape {
        Shape::Envelope { .. } => data_of_envelope(value.node()),
        Shape::WithoutOk => {
            (value.get("data").filter(|data| data.is_object()), vec![without_ok(value.node())])
        }
        Shape::Bare => data_alone(rules, value.node(), &mut ledger),
    };
    let data = data.map(|data| drop_nulls(rules, &value, data, "data"));
    let is_envelope = shape != Shape::Bare;
    let reply_meta = match is_envelope {
        true => reply_meta(rules, &value),
        // What was not asked for is not what the model states of itself, whatever a field of the data is called.
        false if rules.is_without_meta() => Ok(ReplyMeta::absent()),
        false => Ok(data.as_ref().map_or_else(ReplyMeta::absent, |data| ReplyMeta::from_data(data.node()))),
    };
    let fill = Fill {
        confidence: probabilities.as_ref().map(|found| found.value),
        rationale: data.as_ref().and_then(|data| data.get("rationale")).and_then(Node::as_str),
        responsibility: &rules.manifest.responsibility,
        requires_confidence: is_envelope && rules.manifest.constraints.require_confidence,
    };
    let states_risk = reply_meta.as_ref().is_ok_and(ReplyMeta::states_risk);
    let meta = reply_meta.map_or_else(|meta| meta, |reply_meta| reply_meta.repair(&fill, &mut ledger));
    ReplyParts { meta, states_risk, shape, data, ledger, probabilities, violations }
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
        true => repair::without_added_nulls(whole, part, name, &rules.contract),
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

/// Returns the violation of an envelope that lacks a boolean `ok` (ruling R28).
fn without_ok(root: Node<'_>) -> Violation {
    match root.get("ok").filter(|ok| !ok.is_null()) {
        Some(ok) => error::violation(
            "ok",
            "type",
            format!("found {}; allowed: true or false", error::named(ok.kind())),
        ),
        None => {
            let message = "`ok` is required but missing: true with `data`, false with `error`";
            error::violation("ok", "required", message)
        }
    }
}

/// Ruling R28.
fn data_alone<'a>(
    rules: &AnswerRules,
    root: Node<'a>,
    ledger: &mut Ledger,
) -> (Option<Node<'a>>, Vec<Violation>) {
    let compat = &rules.manifest.compat;
    if rules.is_without_meta() && root.is_object() {
        return (Some(root), Vec::new()); // as it was asked for: no repair
    }
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

// A parsed reply, and the result of judging it.

/// A reply that was parsed to its end.
#[derive(Debug, Clone)]
pub(crate) struct ParsedReply {
    /// The complete JSON document.
    pub(crate) value: Value,
    pub(crate) shape: Shape,
    /// The deviations that the parser accepted.
    pub(crate) ledger: Ledger,
    /// How probable the model found its answer; none where it was asked for a confidence.
    pub(crate) probabilities: Option<FieldProbabilities>,
}

/// A valid answer.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) meta: Meta,
    /// The meta as the model stated it.
    pub(crate) model_meta: Value,
    pub(crate) evidence: Option<Evidence>,
    /// What the confidence is, in a run that asks for a measured one.
    pub(crate) measured: Option<MeasuredConfidence>,
    pub(crate) data: Value,
    /// The context that the answer emits.
    pub(crate) emitted: Option<Value>,
    /// Paths of the data that were changed.
    pub(crate) changed: Vec<Path>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) warnings: Vec<Warning>,
    /// The packet for the next agent.
    pub(crate) handoff: Option<Value>,
}

/// A failed answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ErrorBody,
    /// The meta of the model's own error; none for an error of the runtime (ruling R32).
    pub(crate) meta: Option<Meta>,
    pub(crate) partial_data: Option<Value>,
    pub(crate) repairs: Vec<Repair>,
    /// Warnings, which a sync envelope contains next to the error.
    pub(crate) warnings: Vec<Warning>,
}

impl Failure {
    /// Returns whether the answer violated its contract or is not JSON, so that another attempt can help.
    pub(crate) fn is_contract_violation(&self) -> bool {
        let codes = [
            Code::ParseError,
            Code::OutputSchemaViolation,
            Code::MissingRationale,
            Code::OverflowLimit,
            Code::InvalidEnum,
        ];
        // Of the errors with E3006, only the one of a check has violations: a tier or a constraint refuses an answer for good.
        let is_of_check =
            self.error.code == Code::ConstraintViolation.into() && !error::violations(&self.error).is_empty();
        self.meta.is_none() && (is_of_check || codes.iter().any(|code| self.error.code == (*code).into()))
    }

    /// Masks these secrets in an error of the runtime. An error with a meta is the model's own.
    pub(crate) fn without(self, secrets: &[Secret]) -> Self {
        let from_model = self.meta.is_some();
        let error = secrets.iter().filter(|_| !from_model).fold(self.error, ErrorBody::without);
        Self { error, ..self }
    }

    /// Creates the failure of an error of the runtime.
    pub(crate) fn new(error: ErrorBody) -> Self {
        Self { error, meta: None, partial_data: None, repairs: Vec::new(), warnings: Vec::new() }
    }
}

// The context that an answer emits (docs/spec/context.md).

/// The member of an envelope with the emitted context.
const MEMBER: &str = "_emitted_context";

/// The context that an answer emits, and its violations.
#[derive(Default)]
pub(super) struct EmittedCheck {
    /// None if the answer emits none.
    pub(super) context: Option<Value>,
    pub(super) violations: Vec<Violation>,
}

/// Reads and checks the emitted context of a reply. What a module emits that declares none is not part of its answer.
pub(super) fn read(rules: &AnswerRules, reply: &Value) -> EmittedCheck {
    let declared = &rules.manifest.context.emits;
    let Some(node) = reply.get(MEMBER).filter(|node| !declared.is_empty() && !node.is_null()) else {
        return EmittedCheck::default();
    };
    if !node.is_object() {
        let message = format!("found {}; allowed: an object", error::named(node.kind()));
        return EmittedCheck { violations: vec![error::violation(MEMBER, "type", message)], context: None };
    }
    let members = node.members().filter(|(_, member)| !member.is_null());
    let members: Vec<(&str, Node<'_>)> = members.collect();
    let mut violations: Vec<Violation> =
        members.iter().filter_map(|(name, _)| undeclared(declared, name)).collect();
    violations.extend(too_large(node));
    if !violations.is_empty() {
        return EmittedCheck { violations, context: None };
    }
    let mut context = Object::default();
    for (name, member) in members {
        let member = without_nulls(rules, reply, name, member);
        violations.extend(rules.contract.check_emitted(name, member.node()));
        context.insert(name, member);
    }
    EmittedCheck { context: context.non_empty(), violations }
}

/// Removes the nulls that the dialect of the request forces the model to write.
fn without_nulls(rules: &AnswerRules, reply: &Value, name: &str, member: Node<'_>) -> Value {
    if !rules.dialect.adds_nulls() {
        return reply.child(member);
    }
    let nulls = rules.contract.added_nulls_of_emitted(name, member).into_iter().collect();
    repair::without(reply, member, &repair::located(member, name, &nulls))
}

fn undeclared(declared: &[EmittedContext], name: &str) -> Option<Violation> {
    let names: Vec<&str> = declared.iter().map(|emitted| emitted.name.as_str()).collect();
    if names.contains(&name) {
        return None;
    }
    let message = format!("the module does not declare this type; allowed: {}", names.join(", "));
    let shown: String = name.chars().take(64).collect();
    let violation = error::violation(&format!("{MEMBER}.{shown}"), "context", message);
    let suggestion = nearest(name, names).map(|near| format!("Did you mean `{near}`?"));
    Some(Violation { suggestion, ..violation })
}

fn too_large(node: Node<'_>) -> Option<Violation> {
    let bytes = node.to_string().len();
    (bytes > ContextRule::MAX_BYTES).then(|| {
        let message = format!("found {bytes} bytes; allowed: at most {}", ContextRule::MAX_BYTES);
        error::violation(MEMBER, "size", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_attempt_helps_if_the_runtime_found_the_answer_invalid() {
        for (code, expected) in [
            (Code::ParseError, true),
            (Code::OutputSchemaViolation, true),
            (Code::MissingRationale, true),
            (Code::OverflowLimit, true),
            (Code::InvalidEnum, true),
            (Code::LowConfidence, false),
            (Code::ConstraintViolation, false),
            (Code::Timeout, false),
        ] {
            let failure = Failure::new(ErrorBody::new(code, "No."));
            assert_eq!(failure.is_contract_violation(), expected, "{code}");
            let meta = Value::parse(r#"{"confidence":0.5,"risk":"low","explain":"No."}"#).unwrap();
            let of_model = Failure { meta: Meta::read(meta.node()), ..failure };
            assert!(of_model.meta.is_some() && !of_model.is_contract_violation(), "{code}");
        }
    }
}
