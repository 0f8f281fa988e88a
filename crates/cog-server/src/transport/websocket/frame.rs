//! What a client says on a WebSocket.

use std::sync::LazyLock;

use axum::{
    extract::ws::Message,
    http::{HeaderMap, HeaderValue, header},
};
use cog_spec::Code;

use crate::{
    fault::Fault,
    request::{ExecuteBody, object},
    transport::Wire,
};

/// The headers of a request that asks for a stream.
pub(super) static STREAM: LazyLock<HeaderMap> = LazyLock::new(|| {
    HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(Wire::Sse.media_type()))])
});

/// A text frame that can be understood.
pub(super) enum Frame {
    /// A body, as `execute` takes it.
    Run(Box<ExecuteBody>),
    /// `{"type": "cancel"}`
    Cancel,
    /// `{"type": "close"}`
    Close,
}

/// What arrived.
pub(super) enum Heard {
    Frame(Frame),
    /// What cannot be understood.
    Fault(Fault),
    /// A ping, or the answer to one.
    Nothing,
    /// More than a message may hold. Nothing can be read any more.
    TooLarge,
    /// The other end closed, or broke off.
    Gone,
}

/// What a message says.
pub(super) fn hear(message: Option<Result<Message, axum::Error>>) -> Heard {
    match message {
        Some(Ok(Message::Text(text))) => read(text.as_bytes()).map_or_else(Heard::Fault, Heard::Frame),
        Some(Ok(Message::Binary(_))) => Heard::Fault(
            Fault::new(Code::InvalidInput, "a binary frame; only text frames are taken")
                .suggest("send the body as a text frame"),
        ),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Heard::Nothing,
        // The library tells its limits in words alone.
        Some(Err(error)) if error.to_string().contains("too long") => Heard::TooLarge,
        Some(Ok(Message::Close(_)) | Err(_)) | None => Heard::Gone,
    }
}

fn read(text: &[u8]) -> Result<Frame, Fault> {
    let value = object(text)?;
    match value.get("type").map(|word| word.as_str().unwrap_or("?")) {
        Some("cancel") => Ok(Frame::Cancel),
        Some("close") => Ok(Frame::Close),
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(Fault::new(Code::UnsupportedValue, format!("type: found `{other}`; allowed: cancel, close"))
                .suggest(r#"a body has no `type`: send {"input": {…}}"#))
        }
        None => ExecuteBody::of(&value, None).map(|body| Frame::Run(Box::new(body))),
    }
}
