//! What a client says on a WebSocket.

use std::sync::LazyLock;

use axum::{
    extract::ws::{CloseCode, Message, close_code},
    http::{HeaderMap, HeaderValue, header},
};
use cog_spec::Code;

use super::connection::Received;
use crate::{
    error::ApiError,
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
pub(super) enum ClientFrame {
    Frame(Frame),
    /// What cannot be understood.
    Invalid(ApiError),
    /// A ping, or the answer to one.
    Nothing,
    /// More than a message may hold. Nothing can be read any more.
    TooLarge,
    /// What is no WebSocket: the code to close with. Nothing can be read any more.
    Broken(CloseCode),
    /// The client sent a Close frame, which is to be answered.
    Closed,
    /// The client sends pings and does not read the pongs.
    Unread,
    /// The connection was interrupted.
    Gone,
}

/// What a message says.
pub(super) fn hear(received: Received) -> ClientFrame {
    let Received::Message(message) = received else { return ClientFrame::Unread };
    match message {
        Some(Ok(Message::Text(text))) => {
            read(text.as_bytes()).map_or_else(ClientFrame::Invalid, ClientFrame::Frame)
        }
        Some(Ok(Message::Binary(_))) => ClientFrame::Invalid(
            ApiError::new(Code::InvalidInput, "a binary frame; only text frames are taken")
                .suggest("send the body as a text frame"),
        ),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => ClientFrame::Nothing,
        Some(Err(error)) => unreadable(&error.to_string()),
        Some(Ok(Message::Close(_))) => ClientFrame::Closed,
        None => ClientFrame::Gone,
    }
}

/// Why nothing can be read any more. The library tells that in words alone.
fn unreadable(error: &str) -> ClientFrame {
    let says = |words| error.contains(words);
    match () {
        () if says("too long") => ClientFrame::TooLarge,
        () if says("UTF-8") => ClientFrame::Broken(close_code::INVALID),
        () if says("protocol error") => ClientFrame::Broken(close_code::PROTOCOL),
        () => ClientFrame::Gone,
    }
}

fn read(text: &[u8]) -> Result<Frame, ApiError> {
    let value = object(text)?;
    match value.get("type").map(|word| word.as_str().unwrap_or("?")) {
        Some("cancel") => Ok(Frame::Cancel),
        Some("close") => Ok(Frame::Close),
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(ApiError::new(
                Code::UnsupportedValue,
                format!("type: found `{other}`; allowed: cancel, close"),
            )
            .suggest(r#"a body has no `type`: send {"input": {…}}"#))
        }
        None => ExecuteBody::of(&value, text.len(), None).map(|body| Frame::Run(Box::new(body))),
    }
}
