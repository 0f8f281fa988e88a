//! A reply with `ok: false`: the model's own error (rulings R31, R32, R88).

use cog_json::{Node, Value};
use cog_schema::Violation;
use cog_spec::{ErrorBody, ErrorCode, ErrorOrigin, Meta};

use super::{Failure, ParsedReply, open};
use crate::{
    AnswerRules, error,
    repair::{self, Fill, Ledger},
};

/// Returns the failure of a run whose model answers with an error.
pub(super) fn finalize(rules: &AnswerRules, parsed: ParsedReply) -> Failure {
    let ParsedReply { value, mut ledger, .. } = parsed;
    let partial_node = value.get("partial_data").filter(|data| !data.is_null());
    let meta = repaired_meta(rules, &value, partial_node, &mut ledger);
    let mut violations = rules.contract.check_meta(meta.node());
    let error = value.get("error").filter(|error| !error.is_null());
    let error = error.map(|error| open::drop_nulls(rules, &value, error, "error"));
    let outcome = match &error {
        Some(error) => read(rules, error, &mut violations),
        None => {
            violations.push(error::violation("error", "required", "`ok` is false, but `error` is missing"));
            None
        }
    };
    let partial_data = partial_node.and_then(|data| repair::partial_data(rules, &value, data));
    let (error, meta) = match outcome {
        Some(_) if rules.strict && ledger.has_repairs(rules) => (error::repaired(ledger.entries()), None),
        Some(error) if violations.is_empty() => (error, Meta::read(meta.node())),
        _ => {
            let error = error::from_violations_with(&violations, |w| {
                w.optional("model_error", &error);
            });
            (error, None)
        }
    };
    Failure { meta, partial_data, repairs: ledger.into_entries(), ..Failure::new(error) }
}

fn repaired_meta(
    rules: &AnswerRules,
    reply: &Value,
    partial: Option<Node<'_>>,
    ledger: &mut Ledger,
) -> Value {
    let fill = Fill {
        confidence: None,
        rationale: partial.and_then(|data| data.get("rationale")).and_then(Node::as_str),
        responsibility: &rules.manifest.responsibility,
        requires_confidence: rules.manifest.constraints.require_confidence,
    };
    open::reply_meta(rules, reply).map_or_else(|meta| meta, |reply_meta| reply_meta.repair(&fill, ledger))
}

/// Reads the error and normalises its code. Adds violations of the contract.
fn read(rules: &AnswerRules, error: &Value, violations: &mut Vec<Violation>) -> Option<ErrorBody> {
    let written = error.get_str("code");
    let declared = &rules.manifest.error_codes;
    let Some(code) = written.and_then(|written| error::normalise(written, declared, &rules.contract)) else {
        violations.extend(rules.contract.check_error(error.node()));
        if violations.is_empty() {
            let message =
                format!("`{}` is not an error code of the specification or of the manifest", written?);
            violations.push(error::violation("error.code", "error_code", message));
        }
        return None;
    };
    violations.extend(error::check(error.node(), &code, &rules.contract));
    let legacy = written.filter(|written| *written != code.as_str());
    let details = details(error.get("details"), legacy);
    let message = match error.get_str("message")? {
        // A small model often writes an empty one, which tells a person nothing.
        empty if empty.trim().is_empty() => meaning(&code, declared),
        message => message.to_owned(),
    };
    let mut body = ErrorBody::with_code(code, message).with_origin(ErrorOrigin::Model);
    body.recoverable = error.get("recoverable").and_then(Node::as_bool).or(body.recoverable);
    body.suggestion = error.get_str("suggestion").map(str::to_owned);
    body.details = details;
    Some(body)
}

/// Returns what a code means: by the specification, or by the manifest that declares it.
fn meaning(code: &ErrorCode, declared: &[(String, String)]) -> String {
    if let ErrorCode::Standard(code) = code {
        return code.meaning().to_owned();
    }
    let own = declared.iter().find(|(known, meaning)| known == code.as_str() && !meaning.trim().is_empty());
    own.map_or_else(
        || format!("The model reported {code} without a message."),
        |(_, meaning)| meaning.clone(),
    )
}

fn details(details: Option<Node<'_>>, legacy: Option<&str>) -> Option<Value> {
    if details.is_none() && legacy.is_none() {
        return None;
    }
    Some(error::details(|w| {
        // The runtime writes the origin: a model that claims another one is not believed.
        for (key, value) in
            details.into_iter().flat_map(Node::members).filter(|(key, _)| *key != error::ORIGIN)
        {
            w.field(key, &value);
        }
        w.optional(error::LEGACY_CODE, &legacy);
    }))
}
