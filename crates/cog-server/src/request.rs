//! The contents of a request: body, options, recovery.

mod body;

use std::sync::Arc;

use axum::http::HeaderMap;
use cog_json::Node;
use cog_run::{
    RunContext, RunOptions,
    events::SpanContext,
    sessions::ResumeFrom,
    tools::{Approval, Decision},
};
use cog_spec::{Checkpoint, Code, ErrorBody};

use crate::{
    error::allow_only,
    state::{App, Caller},
};

pub(crate) use self::body::{ExecuteBody, Form, RunBody, is_form, object, read, read_form};

// The confirmation of a halted tool call: `_continue` (docs/tools.md).

/// Reads `_continue {id, confirm | deny}`. With neither, the run stays halted.
///
/// # Errors
/// E1001 for an object of another form.
fn read_approval(node: Node<'_>) -> Result<Approval, ErrorBody> {
    if !node.is_object() {
        return Err(wrong("_continue: must be an object of id, and confirm or deny"));
    }
    allow_only(node, "_continue.", &["id", "confirm", "deny"])?;
    let id = node.get("id").and_then(|id| id.as_str());
    let id = id.ok_or_else(|| wrong("_continue.id: must be a string"))?.to_owned();
    let decision = match (node.get("confirm"), node.get("deny")) {
        (Some(_), Some(_)) => return Err(wrong("_continue: `confirm` and `deny` cannot be used together")),
        (None, None) => Decision::Approve(String::new()),
        (Some(text), None) => {
            let text = text.as_str().ok_or_else(|| wrong("_continue.confirm: must be a string"))?;
            Decision::Approve(text.to_owned())
        }
        (None, Some(deny)) if deny.as_bool() == Some(true) => Decision::Deny,
        (None, Some(_)) => return Err(wrong("_continue.deny: must be true")),
    };
    Ok(Approval { id, decision })
}

fn wrong(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, message)
        .suggest(r#"Send {"_continue": {"id": "halt_…", "confirm": "YES"}}."#)
}

// `_options` (docs/spec/streaming.md).

/// The options of a request: for the run, and for the response.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// The options of the run.
    pub(crate) run: RunOptions,
    /// What surrounds the run: its caller's span and budget, and the warnings of its delivery.
    pub(crate) context: RunContext,
    /// The response mode.
    pub(crate) mode: Option<Mode>,
    /// A module without streams is an error.
    pub(crate) require_streaming: bool,
    /// The client does not wait for the answer.
    pub(crate) detach: bool,
    /// How generated media are returned.
    pub(crate) media: MediaOutput,
}

/// How generated media are returned (SPEC 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MediaOutput {
    /// As URLs of this server.
    #[default]
    Url,
    /// Inside the answer.
    Base64,
}

/// The response mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One envelope.
    Sync,
    /// A stream.
    Streaming,
}

/// The keys that are not options of the run.
const KEYS: &[&str] = &["response_mode", "require_streaming", "detach", "media_output"];

impl Options {
    /// Sets what depends on the caller of the run: owner, trace, budget, limits, and where generated media are stored.
    pub(crate) fn set_caller(&mut self, app: &App, caller: &Caller) {
        self.lower_to_limits(app);
        self.run.owner = Some(caller.client.owner());
        self.run.trace_id = caller.parent.as_ref().map(SpanContext::trace_id);
        self.context.parent_span.clone_from(&caller.parent);
        self.run.budgets.extend(app.guard.budgets.budget(&caller.client.owner()));
        self.run.client = caller.rules(app);
        self.run.events.push(Arc::new(caller.runs.clone()));
        if app.guard.access.has_tokens() {
            self.run.events.push(app.guard.metrics.client(&caller.client.owner()));
        }
        if let Some(records) = &app.records {
            self.run.events.push(records.listener(&caller.client.owner(), caller.request_id(), &self.run));
        }
        if self.media == MediaOutput::Url {
            self.run.delivery = app.media.delivery(&app.base_url(caller));
        }
    }

    /// Lowers the numbers of a request to those of the operator: a client may ask for less, never for more (docs/server.md). The
    /// run itself lowers the limits of tool calls.
    fn lower_to_limits(&mut self, app: &App) {
        let max_timeout = app.runtime.timeout();
        let max_attempts = app.settings.max_attempts.max(1);
        self.run.timeout = self.run.timeout.map(|timeout| timeout.min(max_timeout));
        self.run.max_attempts = self.run.max_attempts.map(|attempts| attempts.min(max_attempts));
    }

    /// Reads `_options`.
    ///
    /// # Errors
    /// E1001 and E1004, with the path and the allowed values.
    pub(crate) fn read(node: Node<'_>) -> Result<Self, ErrorBody> {
        let run = RunOptions::read(node, KEYS)?;
        let mode = text(node, "response_mode", "sync, streaming")?;
        let media = text(node, "media_output", "url, base64")?.map(MediaOutput::read);
        Ok(Self {
            context: RunContext::default(),
            run,
            mode: mode.map(|value| Mode::read(value, "_options.response_mode")).transpose()?,
            require_streaming: flag(node, "require_streaming")?,
            detach: flag(node, "detach")?,
            media: media.transpose()?.unwrap_or_default(),
        })
    }

    /// The requested mode; `require_streaming` requests a stream.
    pub(crate) fn requested(&self) -> Option<Mode> {
        self.mode.or_else(|| self.require_streaming.then_some(Mode::Streaming))
    }
}

impl Mode {
    /// Parses a mode; `source` names its location for the error.
    pub(crate) fn read(value: &str, source: &str) -> Result<Self, ErrorBody> {
        match value {
            "sync" => Ok(Self::Sync),
            "streaming" => Ok(Self::Streaming),
            _ => Err(unsupported(value, source, "sync, streaming")),
        }
    }
}

impl MediaOutput {
    fn read(value: &str) -> Result<Self, ErrorBody> {
        match value {
            "url" => Ok(Self::Url),
            "base64" => Ok(Self::Base64),
            _ => Err(unsupported(value, "_options.media_output", "url, base64")),
        }
    }
}

fn unsupported(value: &str, source: &str, allowed: &str) -> ErrorBody {
    let value: String = value.chars().take(40).collect();
    ErrorBody::new(Code::UnsupportedValue, format!("{source}: unknown value `{value}`; allowed: {allowed}"))
}

fn text<'a>(node: Node<'a>, key: &str, allowed: &str) -> Result<Option<&'a str>, ErrorBody> {
    let Some(value) = node.get(key) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| {
        let message = format!("_options.{key}: must be a string; allowed: {allowed}");
        ErrorBody::new(Code::InvalidInput, message)
    })
}

fn flag(node: Node<'_>, key: &str) -> Result<bool, ErrorBody> {
    match node.get(key) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| {
            ErrorBody::new(Code::InvalidInput, format!("_options.{key}: must be true or false"))
        }),
    }
}

// The position of a client in a stream: headers, body, `Last-Event-ID` (docs/spec/streaming.md).

/// A session, and the position of the client in it.
pub(crate) type Recovery = (String, ResumeFrom);

const SESSION: &str = "x-cognitive-recovery-session";
const SEQ: &str = "x-cognitive-recovery-seq";
const LAST_EVENT_ID: &str = "last-event-id";

/// `X-Cognitive-Recovery-Session` and `-Seq`, or `Last-Event-ID`.
///
/// # Errors
/// E1001 for a header that is not valid.
pub(crate) fn recovery_from_headers(headers: &HeaderMap) -> Result<Option<Recovery>, ErrorBody> {
    // An invalid number is an error even without a session.
    let last_seq = header_text(headers, SEQ).map_or(Ok(0), last_seq)?;
    let Some(session) = header_text(headers, SESSION) else {
        let id = header_text(headers, LAST_EVENT_ID).filter(|id| !id.is_empty());
        return id.map(event_id).transpose();
    };
    Ok(Some((session.to_owned(), ResumeFrom { last_seq, last_checkpoint: None })))
}

fn last_seq(text: &str) -> Result<u64, ErrorBody> {
    number(text).ok_or_else(|| {
        wrong_position(format!("header X-Cognitive-Recovery-Seq: `{}` is not a whole number", short(text)))
    })
}

/// The id of a server-sent event, `SESSION:SEQ` (ruling R51).
fn event_id(id: &str) -> Result<Recovery, ErrorBody> {
    let parts = id.rsplit_once(':').and_then(|(session, seq)| Some((session, number(seq)?)));
    match parts {
        Some((session, last_seq)) => Ok((session.to_owned(), ResumeFrom { last_seq, last_checkpoint: None })),
        None => Err(wrong_position(format!(
            "header Last-Event-ID: `{}` is not of the form SESSION:SEQ",
            short(id)
        ))),
    }
}

/// `_recovery {session_id, last_seq, last_checkpoint}`.
fn from_body(node: Node<'_>) -> Result<Recovery, ErrorBody> {
    const KEYS: [&str; 3] = ["session_id", "last_seq", "last_checkpoint"];
    if !node.is_object() {
        return Err(wrong_position("_recovery: must be an object of session_id, last_seq, last_checkpoint"));
    }
    allow_only(node, "_recovery.", &KEYS)?;
    let session = node.get("session_id").and_then(|id| id.as_str());
    let session = session.ok_or_else(|| wrong_position("_recovery.session_id: must be a string"))?;
    let last_seq = match node.get("last_seq") {
        None => 0,
        Some(seq) => {
            seq.as_u64().ok_or_else(|| wrong_position("_recovery.last_seq: must be a whole number from 0"))?
        }
    };
    let last_checkpoint =
        node.get("last_checkpoint").filter(|it| !it.is_null()).map(checkpoint).transpose()?;
    Ok((session.to_owned(), ResumeFrom { last_seq, last_checkpoint }))
}

fn checkpoint(node: Node<'_>) -> Result<Checkpoint, ErrorBody> {
    let offset = node.get("offset").and_then(|offset| offset.as_u64());
    let hash =
        node.get("hash").and_then(|hash| hash.as_str()).filter(|hash| is_digest(hash)).map(str::to_owned);
    offset.zip(hash).map(|(offset, hash)| Checkpoint { offset, hash }).ok_or_else(|| {
        wrong_position("_recovery.last_checkpoint: must be {offset, hash} of a chunk's checkpoint")
    })
}

/// The first six hexadecimal digits of a digest.
fn is_digest(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?").trim())
}

/// Parses digits only: no sign, no space.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn short(text: &str) -> String {
    text.chars().take(60).collect::<String>().escape_debug().to_string()
}

fn wrong_position(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use cog_json::Value;

    use super::*;

    fn parse(text: &str) -> Result<Approval, ErrorBody> {
        read_approval(Value::parse(text).unwrap().node())
    }

    #[test]
    fn reads_each_decision() {
        let decision = |text| parse(text).unwrap().decision;
        assert_eq!(decision(r#"{"id": "halt_1", "confirm": "YES"}"#), Decision::yes());
        assert_eq!(decision(r#"{"id": "halt_1", "deny": true}"#), Decision::Deny);
        assert_eq!(decision(r#"{"id": "halt_1"}"#), Decision::Approve(String::new()));
    }

    #[test]
    fn rejects_other_forms() {
        let bad = [
            "7",
            "{}",
            r#"{"id": 7}"#,
            r#"{"id": "a", "deny": false}"#,
            r#"{"id": "a", "confirm": true}"#,
            r#"{"id": "a", "confirm": "YES", "deny": true}"#,
            r#"{"id": "a", "confirmed": "YES"}"#,
        ];
        for text in bad {
            assert_eq!(parse(text).unwrap_err().code, Code::InvalidInput.into(), "{text}");
        }
    }

    fn read(text: &str) -> Result<Options, ErrorBody> {
        Options::read(Value::parse(text).unwrap().node())
    }

    #[test]
    fn reads_run_and_response_options() {
        let options = read(r#"{"response_mode": "streaming", "detach": true, "strict": true}"#).unwrap();
        assert!(options.detach && options.run.strict && !options.require_streaming);
        assert_eq!(options.requested(), Some(Mode::Streaming));
    }

    #[test]
    fn unknown_option_suggests_the_nearest() {
        let error = read(r#"{"respons_mode": "sync"}"#).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput.into());
        assert!(format!("{error:?}").contains("response_mode"), "{error:?}");
        assert!(read(r#"{"detach": "yes"}"#).unwrap_err().message.contains("_options.detach"));
        assert!(read(r#"{"media_output": "file"}"#).unwrap_err().message.contains("url, base64"));
        assert!(read(r#"{"response_mode": "both"}"#).unwrap_err().message.contains("sync, streaming"));
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> Result<Option<Recovery>, ErrorBody> {
        let named = |(name, value): &(&'static str, &'static str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        recovery_from_headers(&pairs.iter().map(named).collect())
    }

    #[test]
    fn headers_name_the_session_and_the_last_chunk() {
        let (session, from) = headers(&[(SESSION, "sess_1"), (SEQ, "7")]).unwrap().unwrap();
        assert_eq!((session.as_str(), from.last_seq), ("sess_1", 7));
        assert_eq!(headers(&[(LAST_EVENT_ID, "sess_1:7")]).unwrap().unwrap().1, from);
        assert_eq!(headers(&[(LAST_EVENT_ID, "")]).unwrap(), None);
        assert_eq!(headers(&[]).unwrap(), None);
    }

    #[test]
    fn forged_numbers_are_rejected() {
        for seq in ["-1", "1.5", "", "x", "99999999999999999999999", "+3"] {
            assert!(headers(&[(SESSION, "s"), (SEQ, seq)]).is_err(), "{seq}");
            assert!(headers(&[(SEQ, seq)]).is_err(), "{seq}");
        }
        for id in ["sess_1", "sess_1:", "sess_1:-3", ":x"] {
            assert!(headers(&[(LAST_EVENT_ID, id)]).is_err(), "{id}");
        }
    }

    #[test]
    fn body_may_contain_a_checkpoint() {
        let text =
            r#"{"session_id": "s", "last_seq": 3, "last_checkpoint": {"offset": 12, "hash": "abc123"}}"#;
        let (_, from) = from_body(Value::parse(text).unwrap().node()).unwrap();
        assert_eq!(from.last_checkpoint.unwrap().offset, 12);
        for text in [
            r#"{"last_seq": 3}"#,
            r#"{"session_id": "s", "last_seq": -1}"#,
            r#"{"session_id": "s", "seq": 1}"#,
            "7",
        ] {
            assert!(from_body(Value::parse(text).unwrap().node()).is_err(), "{text}");
        }
    }
}
