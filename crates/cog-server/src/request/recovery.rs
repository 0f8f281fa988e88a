//! The position of a client in a stream: headers, body, `Last-Event-ID` (docs/spec/streaming.md).

use axum::http::HeaderMap;
use cog_json::Node;
use cog_run::sessions::ResumeFrom;
use cog_spec::{Checkpoint, Code, ErrorBody};

use crate::error::allow_only;

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
    let last_seq = text(headers, SEQ).map_or(Ok(0), last_seq)?;
    let Some(session) = text(headers, SESSION) else {
        let id = text(headers, LAST_EVENT_ID).filter(|id| !id.is_empty());
        return id.map(event_id).transpose();
    };
    Ok(Some((session.to_owned(), ResumeFrom { last_seq, last_checkpoint: None })))
}

fn last_seq(text: &str) -> Result<u64, ErrorBody> {
    number(text).ok_or_else(|| {
        wrong(format!("header X-Cognitive-Recovery-Seq: `{}` is not a whole number", short(text)))
    })
}

/// The id of a server-sent event, `SESSION:SEQ` (ruling R51).
pub(crate) fn event_id(id: &str) -> Result<Recovery, ErrorBody> {
    let parts = id.rsplit_once(':').and_then(|(session, seq)| Some((session, number(seq)?)));
    match parts {
        Some((session, last_seq)) => Ok((session.to_owned(), ResumeFrom { last_seq, last_checkpoint: None })),
        None => Err(wrong(format!("header Last-Event-ID: `{}` is not of the form SESSION:SEQ", short(id)))),
    }
}

/// `_recovery {session_id, last_seq, last_checkpoint}`.
pub(super) fn from_body(node: Node<'_>) -> Result<Recovery, ErrorBody> {
    const KEYS: [&str; 3] = ["session_id", "last_seq", "last_checkpoint"];
    if !node.is_object() {
        return Err(wrong("_recovery: must be an object of session_id, last_seq, last_checkpoint"));
    }
    allow_only(node, "_recovery.", &KEYS)?;
    let session = node.get("session_id").and_then(|id| id.as_str());
    let session = session.ok_or_else(|| wrong("_recovery.session_id: must be a string"))?;
    let last_seq = match node.get("last_seq") {
        None => 0,
        Some(seq) => {
            seq.as_u64().ok_or_else(|| wrong("_recovery.last_seq: must be a whole number from 0"))?
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
    offset
        .zip(hash)
        .map(|(offset, hash)| Checkpoint { offset, hash })
        .ok_or_else(|| wrong("_recovery.last_checkpoint: must be {offset, hash} of a chunk's checkpoint"))
}

/// The first six hexadecimal digits of a digest.
fn is_digest(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
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

fn wrong(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use cog_json::Value;

    use super::*;

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
