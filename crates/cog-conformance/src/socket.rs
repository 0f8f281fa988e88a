//! A WebSocket client that follows a case frame by frame.

use std::net::TcpStream;

use serde::Deserialize;
use serde_json::Value;
use tokio_tungstenite::tungstenite::{
    self, Message, WebSocket, client,
    client::IntoClientRequest as _,
    http::{HeaderName, HeaderValue},
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    matching::fits,
    server::{Deadline, PATIENCE},
    stream::Stream,
};

/// One action on a socket.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Act {
    /// Sends a text frame: a string as it is, anything else as JSON.
    Send(Value),
    /// Sends the string as a binary frame.
    SendBinary(String),
    /// Reads until a frame matches.
    Until(Value),
    /// Reads until the server closes, with this code.
    UntilClosed(u16),
    /// Closes.
    Close(u16),
    /// Drops the connection without a Close frame.
    Leave(String),
}

/// The outcome of a socket.
#[derive(Default)]
pub(crate) struct Conversation {
    /// The status of the handshake.
    pub(crate) status: u16,
    /// The response to a failed handshake.
    pub(crate) refusal: String,
    pub(crate) stream: Stream,
}

/// Opens a socket and runs its actions.
pub(crate) fn converse(
    address: &str,
    path: &str,
    headers: &[(String, String)],
    acts: &[Act],
) -> Result<Conversation, String> {
    let mut conversation = Conversation { status: 101, ..Conversation::default() };
    let Some(mut socket) = open(address, path, headers, &mut conversation)? else { return Ok(conversation) };
    for act in acts {
        act.perform(&mut socket, &mut conversation).map_err(|error| {
            format!("{act:?}: {error}\n-- frames so far: {}", Value::from(conversation.stream.chunks.clone()))
        })?;
    }
    Ok(conversation)
}

fn open(
    address: &str,
    path: &str,
    headers: &[(String, String)],
    conversation: &mut Conversation,
) -> Result<Option<WebSocket<TcpStream>>, String> {
    let mut request =
        format!("ws://{address}{path}").into_client_request().map_err(|error| error.to_string())?;
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        request.headers_mut().insert(name, value);
    }
    let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    match client(request, stream) {
        Ok((socket, _)) => Ok(Some(socket)),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            conversation.status = response.status().as_u16();
            let body = response.body().as_deref().unwrap_or_default();
            conversation.refusal = String::from_utf8_lossy(body).into_owned();
            Ok(None)
        }
        Err(error) => Err(format!("no socket: {error}")),
    }
}

impl Act {
    fn perform(&self, socket: &mut WebSocket<TcpStream>, into: &mut Conversation) -> Result<(), String> {
        let sent = match self {
            Self::Send(Value::String(text)) => socket.send(Message::text(text.as_str())),
            Self::Send(value) => socket.send(Message::text(value.to_string())),
            Self::SendBinary(text) => socket.send(Message::binary(text.as_bytes().to_vec())),
            Self::Close(code) => {
                socket.close(Some(CloseFrame { code: CloseCode::from(*code), reason: "".into() }))
            }
            Self::Leave(_why) => socket.get_ref().shutdown(std::net::Shutdown::Both).map_err(Into::into),
            Self::Until(expected) => return read_until(socket, into, expected),
            Self::UntilClosed(code) => return read_to_close(socket, into, *code),
        };
        sent.map_err(|error| error.to_string())
    }
}

fn read_until(
    socket: &mut WebSocket<TcpStream>,
    into: &mut Conversation,
    expected: &Value,
) -> Result<(), String> {
    let deadline = Deadline::begin();
    loop {
        deadline.check()?;
        match socket.read().map_err(|error| error.to_string())? {
            Message::Text(text) => {
                let chunk: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
                let is_it = fits(&chunk, expected);
                into.stream.chunks.push(chunk);
                if is_it {
                    return Ok(());
                }
            }
            Message::Ping(_) => into.stream.heartbeats += 1,
            Message::Close(frame) => return Err(format!("closed: {frame:?}")),
            _ => {}
        }
    }
}

fn read_to_close(
    socket: &mut WebSocket<TcpStream>,
    into: &mut Conversation,
    code: u16,
) -> Result<(), String> {
    let deadline = Deadline::begin();
    loop {
        deadline.check()?;
        match socket.read() {
            Ok(Message::Text(text)) => {
                into.stream.chunks.push(serde_json::from_str(&text).unwrap_or_default());
            }
            Ok(Message::Close(Some(frame))) if u16::from(frame.code) == code => return Ok(()),
            Ok(Message::Close(frame)) => return Err(format!("closed: {frame:?}")),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}
