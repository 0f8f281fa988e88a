//! Messages of a WebSocket client.

use std::sync::LazyLock;

use axum::{
    extract::ws::{CloseCode, Message},
    http::{HeaderMap, HeaderValue, header},
};
use cog_spec::Code;

use super::connection::{Received, Unreadable};
use crate::{
    error::ApiError,
    request::{ExecuteBody, object},
    transport::Wire,
};

/// The headers of a request for a stream.
pub(super) static STREAM: LazyLock<HeaderMap> = LazyLock::new(|| {
    HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(Wire::Sse.media_type()))])
});

/// A valid text frame.
pub(super) enum Frame {
    /// A body of an execute request.
    Run(Box<ExecuteBody>),
    /// `{"type": "cancel"}`
    Cancel,
    /// `{"type": "close"}`
    Close,
}

/// A message, or the end of the connection.
pub(super) enum Incoming {
    Frame(Frame),
    /// A message that is not valid.
    Invalid(ApiError),
    /// A ping or a pong.
    Ignored,
    /// A message over the maximum size. Nothing more can be read.
    TooLarge,
    /// A protocol error, with the code to close with. Nothing more can be read.
    Broken(CloseCode),
    /// The client sent a Close frame, which must be answered.
    Closed,
    /// The client sends pings and does not read the pongs.
    Unread,
    /// The client sends more messages than it may.
    TooMany,
    /// The connection was interrupted.
    Interrupted,
}

/// Parses a message.
pub(super) fn parse(received: Received) -> Incoming {
    let Received::Message(message) = received else { return Incoming::Unread };
    match message {
        Some(Ok(Message::Text(text))) => {
            read(text.as_bytes()).map_or_else(Incoming::Invalid, Incoming::Frame)
        }
        Some(Ok(Message::Binary(_))) => Incoming::Invalid(
            ApiError::new(Code::InvalidInput, "binary frames are not supported")
                .suggest("Send the body as a text frame."),
        ),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Incoming::Ignored,
        Some(Err(error)) => unreadable(&error),
        Some(Ok(Message::Close(_))) => Incoming::Closed,
        None => Incoming::Interrupted,
    }
}

fn unreadable(error: &axum::Error) -> Incoming {
    match Unreadable::from(error) {
        Unreadable::TooLarge => Incoming::TooLarge,
        Unreadable::Broken(code) => Incoming::Broken(code),
        Unreadable::Interrupted => Incoming::Interrupted,
    }
}

fn read(text: &[u8]) -> Result<Frame, ApiError> {
    let value = object(text)?;
    match value.get("type").map(|value| value.as_str().unwrap_or("?")) {
        Some("cancel") => Ok(Frame::Cancel),
        Some("close") => Ok(Frame::Close),
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(ApiError::new(
                Code::UnsupportedValue,
                format!("type: unknown value `{other}`; allowed: cancel, close"),
            )
            .suggest(r#"To start a run, send a body without `type`: {"input": {…}}."#))
        }
        None => ExecuteBody::from_value(&value, text.len(), None).map(|body| Frame::Run(Box::new(body))),
    }
}
