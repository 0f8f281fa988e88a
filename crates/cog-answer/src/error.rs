//! What can be wrong with a reply, as the `error` of an envelope.

use cog_json::{Kind, Node, SyntaxError, SyntaxErrorKind, Value, Writer};
use cog_schema::{MAX_VIOLATIONS, Violation};
use cog_spec::{Code, ErrorBody, Repair, ViolationNote};

/// The model was done without having said anything (E1000).
pub(crate) fn nothing() -> ErrorBody {
    ErrorBody::new(Code::ParseError, "The model sent no text")
        .suggest("Try again, or ask another model.")
        .with_details(reason("empty"))
}

/// The reply is no JSON (E1000).
pub(crate) fn not_json(error: &SyntaxError) -> ErrorBody {
    let message = match error.kind() {
        SyntaxErrorKind::Nothing => "The reply holds no JSON object".to_owned(),
        _ => format!("The reply is not JSON: {error}"),
    };
    ErrorBody::new(Code::ParseError, message)
        .suggest("Look at the reply with `-v`; structured output or a stronger model helps.")
}

/// The reply holds more than one object, and choosing is not the runtime's (E1000, ruling R25).
pub(crate) fn several_objects() -> ErrorBody {
    ErrorBody::new(
        Code::ParseError,
        "The reply holds several JSON objects; which one is meant cannot be known",
    )
    .suggest("Have the prompt ask for exactly one object.")
    .with_details(reason("several_objects"))
}

/// The reply ends inside its JSON although the model says that it is done (E1000).
pub(crate) fn truncated() -> ErrorBody {
    ErrorBody::new(Code::ParseError, "The reply ends before its JSON does")
        .suggest("Try again; structured output or a stronger model helps.")
        .with_details(reason("truncated"))
}

/// The model stopped at its limit (E2003).
pub(crate) fn token_limit() -> ErrorBody {
    ErrorBody::new(Code::TokenLimit, "The model stopped at its output limit, so the reply is cut")
        .suggest("Allow more tokens (`--max-tokens`), or ask for less.")
}

/// The reply ended without the model having finished it (E2010).
pub(crate) fn interrupted() -> ErrorBody {
    ErrorBody::new(Code::StreamInterrupted, "The reply was cut off before the model had finished it")
        .suggest("Try again.")
        .with_recoverable(true)
        .with_details(reason("connection"))
}

/// The model refuses (E2004).
pub(crate) fn refusal(words: Option<&str>) -> ErrorBody {
    let message = words.map_or_else(
        || "The model refuses to answer".to_owned(),
        |words| format!("The model refuses: {words}"),
    );
    ErrorBody::new(Code::NoActionPossible, message).suggest(OTHERWISE).with_details(reason("refusal"))
}

/// The vendor's filter stopped the reply (E2004).
pub(crate) fn content_filter() -> ErrorBody {
    ErrorBody::new(Code::NoActionPossible, "The vendor's content filter stopped the reply")
        .suggest(OTHERWISE)
        .with_details(reason("content_filter"))
}

/// What to do where neither repeating nor repairing helps.
const OTHERWISE: &str = "Look at what the input asks for; put it differently, or ask another model.";

/// The answer breaks its contract: every violation, under the code they share (ruling R30).
pub(crate) fn of_violations(violations: &[Violation]) -> ErrorBody {
    of_violations_with(violations, |_| {})
}

/// The same, with more details.
pub(crate) fn of_violations_with(violations: &[Violation], more: impl FnOnce(&mut Writer<'_>)) -> ErrorBody {
    let code = Violation::common_code(violations, Code::OutputSchemaViolation);
    let listed = violations.get(..MAX_VIOLATIONS).unwrap_or(violations);
    let details = details(|w| {
        w.field("violations", listed);
        more(w);
    });
    let mut body = ErrorBody::new(code, message(violations)).with_details(details);
    let meant = violations.iter().find_map(|violation| violation.suggestion.clone());
    body.suggestion = Some(meant.unwrap_or_else(|| {
        "Look at the reply with `-v`; name in the prompt what the schema demands.".to_owned()
    }));
    body
}

/// Media that may not stand in the answer (E3001): each with its own code.
pub(crate) fn of_media(violations: &[Violation]) -> ErrorBody {
    let details = details(|w| {
        w.key("violations").array(|w| {
            violations.iter().take(MAX_VIOLATIONS).for_each(|violation| write_with_code(violation, w));
        });
    });
    ErrorBody::new(Code::OutputSchemaViolation, message(violations))
        .suggest("Ask again, or ask another model; what media may be is said in `modalities`.")
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
    let message = format!("The answer needed repair, which a strict run refuses: {}", rules.join(", "));
    ErrorBody::new(Code::OutputSchemaViolation, message)
        .suggest("Run without `--strict`, or have the prompt ask for exactly the form.")
        .with_details(details(|w| {
            w.field("repairs", repairs);
        }))
}

/// Whether a stream that ended so can go on when it is resumed: it was cut or late, and nobody cancelled it.
pub(crate) fn can_be_resumed(error: &ErrorBody) -> bool {
    let passing = [Code::StreamInterrupted, Code::StreamTimeout];
    let reason = error.details.as_ref().and_then(|details| details.get("reason")?.as_str());
    passing.iter().any(|code| error.code == (*code).into()) && reason != Some("cancelled")
}

/// What an error tells of a broken contract: `details.violations`.
pub(crate) fn violations(error: &ErrorBody) -> Vec<ViolationNote> {
    let listed = error.details.as_ref().and_then(|details| details.get("violations"));
    let note = |violation: Node<'_>| {
        let field = |key: &str| violation.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
        ViolationNote { path: field("path"), rule: field("rule"), message: field("message") }
    };
    listed.into_iter().flat_map(Node::elements).map(note).collect()
}

/// Details with the fields that `write` writes.
pub(crate) fn details(write: impl FnOnce(&mut Writer<'_>)) -> Value {
    let mut text = String::new();
    Writer::compact(&mut text).object(write);
    Value::parse(&text).unwrap_or_default()
}

/// A kind of value as a message names it.
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

/// A violation that no schema tells of.
pub(crate) fn violation(path: &str, rule: &str, message: impl Into<String>) -> Violation {
    Violation {
        path: path.to_owned(),
        rule: rule.to_owned(),
        message: message.into(),
        code: Code::OutputSchemaViolation,
        suggestion: None,
    }
}

fn reason(word: &str) -> Value {
    details(|w| {
        w.field("reason", word);
    })
}

fn message(violations: &[Violation]) -> String {
    let Some((first, rest)) = violations.split_first() else {
        return "The answer breaks its contract".to_owned();
    };
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let at = if first.path.is_empty() { String::new() } else { format!(" at {}", first.path) };
    format!("The answer breaks its contract{at}: {}{more}", first.message)
}
