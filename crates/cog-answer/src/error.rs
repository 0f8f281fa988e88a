//! The errors of a reply, as the `error` of an envelope.

use cog_json::{Kind, Node, Path, SyntaxError, SyntaxErrorKind, Value, Writer};
use cog_rules::CheckFailure;
use cog_schema::{Contract, MAX_VIOLATIONS, Violation};
use cog_spec::{Code, ErrorBody, ErrorCode, ErrorOrigin, Repair, ViolationNote};

use crate::error;

/// Returns the error of a refusal to try again after an answer that failed, with the failure in its details.
pub fn refused_after(mut refusal: ErrorBody, failed: &ErrorBody) -> ErrorBody {
    let code = failed.code.as_str();
    let message = &failed.message;
    let mut details = refusal.details.as_ref().map(Value::to_serde).unwrap_or_default();
    if let Some(members) = details.as_object_mut() {
        members.insert("failed".to_owned(), serde_json::json!({ "code": code, "message": message }));
    }
    refusal.message += &format!("; the answer before failed: {code}: {message}");
    refusal.with_details(Value::from(details))
}

/// The model sent no text (E1000).
pub(crate) fn empty() -> ErrorBody {
    ErrorBody::new(Code::ParseError, "The model sent no text")
        .suggest("Try again, or use another model.")
        .with_details(reason("empty"))
}

/// The provider sent reasoning and no text (E1000): the answer may be in the reasoning, where it is only a draft.
pub(crate) fn only_reasoning() -> ErrorBody {
    ErrorBody::new(Code::ParseError, "The model sent only reasoning, and no text")
        .suggest(
            "Allow more tokens or less reasoning; a server that takes the answer for reasoning needs another reasoning \
             parser, or none.",
        )
        .with_details(reason("reasoning"))
}

/// The reply is not JSON (E1000).
pub(crate) fn not_json(error: &SyntaxError) -> ErrorBody {
    match error.kind() {
        SyntaxErrorKind::OnlyReasoning => {
            return only_in("reasoning, another tag or a marker", "reasoning");
        }
        SyntaxErrorKind::OnlyToolCall => return only_in("a tool call", "tool_call"),
        _ => {}
    }
    let message = match error.kind() {
        SyntaxErrorKind::Nothing => "The reply contains no JSON object".to_owned(),
        SyntaxErrorKind::TooLarge => format!("The reply is too long: only {} bytes are read", error.offset()),
        _ => format!("The reply is not JSON: {error}"),
    };
    ErrorBody::new(Code::ParseError, message)
        .suggest("Inspect the reply with `-v`; structured output or a stronger model helps.")
}

/// The reply has no JSON object outside of drafts (E1000, ruling R82).
fn only_in(place: &str, why: &str) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("The reply contains no JSON object outside of {place}"))
        .suggest("Request only the JSON object in the prompt; structured output or a stronger model helps.")
        .with_details(reason(why))
}

/// The reply contains more than one object, and the runtime does not choose (E1000, ruling R25).
pub(crate) fn several_objects() -> ErrorBody {
    ErrorBody::new(
        Code::ParseError,
        "The reply contains several JSON objects; it is unclear which one is the answer",
    )
    .suggest("Request exactly one object in the prompt.")
    .with_details(reason("several_objects"))
}

/// The reply ends inside its JSON, although the model reported the end (E1000).
pub(crate) fn truncated() -> ErrorBody {
    ErrorBody::new(Code::ParseError, "The reply ends before its JSON does")
        .suggest("Try again; structured output or a stronger model helps.")
        .with_details(reason("truncated"))
}

/// The model stopped at its limit (E2003).
pub(crate) fn token_limit() -> ErrorBody {
    ErrorBody::new(Code::TokenLimit, "The model stopped at its output limit, so the reply is truncated")
        .suggest("Allow more tokens (`--max-tokens`), set `maxLength` and `maxItems` in the schema, or request less.")
}

/// A value is as long as the bound that it was asked for with, so that its end is missing (E2003).
pub(crate) fn length_limit(path: &Path) -> ErrorBody {
    let message =
        format!("`{path}` reached the length that the local engine was asked for, so its end is missing");
    ErrorBody::new(Code::TokenLimit, message)
        .suggest("Set a larger `maxLength` or `maxItems` for it in the schema, or request less.")
}

/// The reply was interrupted (E2010).
pub(crate) fn interrupted() -> ErrorBody {
    ErrorBody::new(Code::StreamInterrupted, "The reply was interrupted before its end")
        .suggest("Try again.")
        .with_recoverable(true)
        .with_details(reason("connection"))
}

/// The model refuses (E2004).
pub(crate) fn refusal(text: Option<&str>) -> ErrorBody {
    let message = text.map_or_else(
        || "The model refused to answer".to_owned(),
        |text| format!("The model refused: {text}"),
    );
    ErrorBody::new(Code::NoActionPossible, message)
        .suggest(REPHRASE)
        .with_origin(ErrorOrigin::Model)
        .with_details(reason("refusal"))
}

/// The provider's filter stopped the reply (E2004).
pub(crate) fn content_filter() -> ErrorBody {
    ErrorBody::new(Code::NoActionPossible, "The provider's content filter stopped the reply")
        .suggest(REPHRASE)
        .with_origin(ErrorOrigin::Provider)
        .with_details(reason("content_filter"))
}

/// The suggestion where neither a retry nor a repair helps.
const REPHRASE: &str = "Review what the input requests; rephrase it, or use another model.";

/// The answer violates its contract: all violations, under their common code (ruling R30).
pub(crate) fn from_violations(violations: &[Violation]) -> ErrorBody {
    from_violations_with(violations, |_| {})
}

/// As [`from_violations`], with more details.
pub(crate) fn from_violations_with(
    violations: &[Violation],
    more: impl FnOnce(&mut Writer<'_>),
) -> ErrorBody {
    let code = Violation::common_code(violations, Code::OutputSchemaViolation);
    let listed = violations.get(..MAX_VIOLATIONS).unwrap_or(violations);
    let details = details(|w| {
        w.field("violations", listed);
        more(w);
    });
    let mut body = ErrorBody::new(code, message(violations)).with_details(details);
    let meant = violations.iter().find_map(|violation| violation.suggestion.clone());
    body.suggestion = Some(meant.unwrap_or_else(|| {
        "Inspect the reply with `-v`; name in the prompt what the schema requires.".to_owned()
    }));
    body
}

/// The answer violates checks of the program (E3006): what they say.
pub(crate) fn from_checks(violations: &[Violation]) -> ErrorBody {
    from_violations(violations)
        .suggest("Name the rule in the prompt, or allow more calls; the answer is in partial_data.")
}

/// Returns the violation of a failed check.
pub(crate) fn check_violation(failure: &CheckFailure) -> Violation {
    Violation {
        path: failure.paths.first().cloned().unwrap_or_else(|| "data".to_owned()),
        rule: format!("check:{}", failure.name),
        message: failure.message.clone(),
        code: Code::ConstraintViolation,
        suggestion: None,
    }
}

/// The answer fails named checks (E3006).
pub(crate) fn from_named_checks(failures: &[CheckFailure]) -> ErrorBody {
    let violations: Vec<Violation> = failures.iter().map(check_violation).collect();
    let details = details(|w| {
        if let Some(first) = failures.first() {
            w.field("check", first.name.as_str());
            w.field("paths", &first.paths);
            w.key("values").array(|w| {
                for read in &first.values {
                    w.object(|w| {
                        w.field("path", &read.path);
                        w.key("value").node(read.value.node());
                    });
                }
            });
        }
        w.field("violations", violations.get(..MAX_VIOLATIONS).unwrap_or(&violations));
    });
    let message = match failures.split_first() {
        None => "The answer fails a check".to_owned(),
        Some((first, rest)) => {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            format!("The answer fails the check `{}`: {}{more}", first.name, first.message)
        }
    };
    ErrorBody::new(Code::ConstraintViolation, message)
        .suggest("Name the rule in the prompt, or allow more attempts with `response.max_attempts`.")
        .with_details(details)
}

/// The answer contains rejected media (E3001): each with its own code.
pub(crate) fn from_media(violations: &[Violation]) -> ErrorBody {
    let details = details(|w| {
        w.key("violations").array(|w| {
            violations.iter().take(MAX_VIOLATIONS).for_each(|violation| write_with_code(violation, w));
        });
    });
    ErrorBody::new(Code::OutputSchemaViolation, message(violations))
        .suggest("Try again, or use another model; `modalities` lists the allowed media.")
        .with_details(details)
}

fn write_with_code(violation: &Violation, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("path", &violation.path);
        w.field("rule", &violation.rule);
        w.field("code", violation.code.as_str());
        w.field("message", &violation.message);
    });
}

/// The answer had to be repaired, and `--strict` allows no repair (E3001, ruling R26).
pub(crate) fn repaired(repairs: &[Repair]) -> ErrorBody {
    let rules: Vec<&str> = repairs.iter().map(|repair| repair.rule.as_str()).collect();
    let message = format!("The answer needed repairs, which a strict run rejects: {}", rules.join(", "));
    ErrorBody::new(Code::OutputSchemaViolation, message)
        .suggest("Run without `--strict`, or request the exact form in the prompt.")
        .with_details(details(|w| {
            w.field("repairs", repairs);
        }))
}

/// Returns whether a stream that ended with this error can be resumed: it was interrupted or timed out, and not
/// cancelled.
pub(crate) fn can_be_resumed(error: &ErrorBody) -> bool {
    let passing = [Code::StreamInterrupted, Code::StreamTimeout];
    let reason = error.detail("reason").and_then(Node::as_str);
    passing.iter().any(|code| error.has_failed_with(*code)) && reason != Some("cancelled")
}

/// Returns the violations in `details.violations` of an error.
pub(crate) fn violations(error: &ErrorBody) -> Vec<ViolationNote> {
    let listed = error.details.as_ref().and_then(|details| details.get("violations"));
    let notes = listed.into_iter().flat_map(Node::elements).map(|violation| ViolationNote {
        path: text(violation, "path"),
        rule: text(violation, "rule"),
        message: text(violation, "message"),
    });
    notes.collect()
}

fn text(node: Node<'_>, key: &str) -> String {
    node.get_str(key).unwrap_or_default().to_owned()
}

/// Creates details with the fields that `write` writes.
pub(crate) fn details(write: impl FnOnce(&mut Writer<'_>)) -> Value {
    let mut text = String::new();
    Writer::compact(&mut text).object(write);
    Value::parse(&text).unwrap_or_default()
}

/// Returns the name of a kind of value in messages.
pub(crate) const fn named(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

/// Creates a violation that is not of a schema.
pub(crate) fn violation(path: &str, rule: &str, message: impl Into<String>) -> Violation {
    Violation {
        path: path.to_owned(),
        rule: rule.to_owned(),
        message: message.into(),
        code: Code::OutputSchemaViolation,
        suggestion: None,
    }
}

fn reason(reason: &str) -> Value {
    details(|w| {
        w.field("reason", reason);
    })
}

fn message(violations: &[Violation]) -> String {
    let Some((first, rest)) = violations.split_first() else {
        return "The answer violates its contract".to_owned();
    };
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let at = if first.path.is_empty() { String::new() } else { format!(" at {}", first.path) };
    format!("The answer violates its contract{at}: {}{more}", first.message)
}

// Error codes as models and older runtimes write them (ruling R31).

/// Returns the code of text: one of the table, by its number, name or older text; one that the manifest declares; or one
/// that the error schema allows. Of the latter, a number stays as it is, and a text is E2004.
pub(crate) fn normalise(code: &str, declared: &[(String, String)], contract: &Contract) -> Option<ErrorCode> {
    if let Some(standard) = code.parse().ok().or_else(|| Code::from_text(code)) {
        return Some(ErrorCode::Standard(standard));
    }
    if declared.iter().any(|(known, _)| known == code) {
        return Some(ErrorCode::Declared(code.to_owned()));
    }
    contract.allows_code(code).then(|| match ErrorCode::is_number(code) {
        true => ErrorCode::Declared(code.to_owned()),
        false => ErrorCode::Standard(Code::NoActionPossible),
    })
}

/// Checks an error against the contract, as it is and without the details that the runtime adds, with its code as written, normalised,
/// or as the model wrote it: one of them must be valid.
pub(crate) fn check(error: Node<'_>, code: &ErrorCode, contract: &Contract) -> Vec<Violation> {
    let mut best = contract.check_error(error);
    let written = error.get_str("code").filter(|_| details_of(error, ORIGIN).is_some());
    let legacy = legacy_code(error, code, contract);
    for other in [written, Some(code.as_str()), legacy].into_iter().flatten() {
        if best.is_empty() {
            break;
        }
        let added: &[&str] = if Some(other) == legacy { &[ORIGIN, LEGACY_CODE] } else { &[ORIGIN] };
        let violations = contract.check_error(with_code(error, other, added).node());
        if violations.len() < best.len() {
            best = violations;
        }
    }
    best
}

/// The detail with the origin of an error (ruling R88).
pub(crate) const ORIGIN: &str = "origin";

/// The detail with the code that the runtime replaced (ruling R31).
pub(crate) const LEGACY_CODE: &str = "legacy_code";

/// Returns a member of the details of an error.
pub(crate) fn details_of<'a>(error: Node<'a>, key: &str) -> Option<Node<'a>> {
    error.get("details")?.get(key)
}

/// Returns `details.legacy_code`, the code that the runtime replaced, if `code` replaces it.
fn legacy_code<'a>(error: Node<'a>, code: &ErrorCode, contract: &Contract) -> Option<&'a str> {
    let legacy = details_of(error, LEGACY_CODE)?.as_str()?;
    (normalise(legacy, &[], contract).as_ref() == Some(code)).then_some(legacy)
}

/// Returns the error with another code, and without the details that the runtime added.
fn with_code(error: Node<'_>, code: &str, added: &[&str]) -> Value {
    let details = error.get("details").filter(|details| details.is_object());
    let others = details.into_iter().flat_map(Node::members).filter(|(key, _)| !added.contains(key));
    let others: Vec<(&str, Node<'_>)> = others.collect();
    error::details(|w| {
        for (key, value) in error.members() {
            match key {
                "code" => {
                    w.field(key, code);
                }
                "details" if details.is_some_and(|details| others.len() < details.len()) => {
                    if !others.is_empty() {
                        w.key(key).object(|w| {
                            for (key, value) in &others {
                                w.field(key, value);
                            }
                        });
                    }
                }
                _ => {
                    w.field(key, &value);
                }
            }
        }
    })
}
