use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout};

/// The maximum number of pongs that wait for the client to read.
const MAX_UNSENT_PONGS: usize = 64;
/// The number of pings that are answered before a pause. Each pong is a write.
const PINGS_IN_A_ROW: usize = 16;
/// The pause after so many pings. A few clients that send nothing else would otherwise use a complete processor.
const PING_PAUSE: Duration = Duration::from_millis(10);
/// The number of bytes that one read takes.
const READ_BUFFER: usize = 8 << 10;
/// The maximum number of unsent bytes. The largest chunk has some 64 MiB: a provider's reply with media.
const MAX_WRITE_BUFFER: usize = 192 << 20;
/// The time that the closing handshake may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A WebSocket whose unsent output is bounded, and that closes with a handshake (RFC 6455 section 7.1).
pub(super) struct Connection {
    socket: WebSocket,
    /// The number of pongs since the last complete flush.
    unsent_pongs: usize,
    /// The number of pings since the last pause.
    pings: usize,
    /// The end of the pause.
    resume_at: Option<Instant>,
}

/// What [`Connection::receive`] returns.
pub(super) enum Received {
    /// A message, an error, or `None` at the end of the connection.
    Message(Option<Result<Message, axum::Error>>),
    /// The client sends pings and does not read the pongs.
    TooManyPings,
}

/// Why nothing more can be read from a connection.
pub(super) enum Unreadable {
    /// A message over the maximum size.
    TooLarge,
    /// A protocol error, with the code to close with.
    Broken(CloseCode),
    /// The connection was interrupted.
    Interrupted,
}

impl From<&axum::Error> for Unreadable {
    /// The library reports the reason as text only.
    fn from(error: &axum::Error) -> Self {
        match error.to_string() {
            error if error.contains("too long") => Self::TooLarge,
            error if error.contains("UTF-8") => Self::Broken(close_code::INVALID),
            error if error.contains("protocol error") => Self::Broken(close_code::PROTOCOL),
            _ => Self::Interrupted,
        }
    }
}

/// The upgrade with the limits of a [`Connection`].
pub(crate) fn bounded(upgrade: WebSocketUpgrade, max_message_bytes: usize) -> WebSocketUpgrade {
    upgrade
        .read_buffer_size(READ_BUFFER)
        .max_write_buffer_size(MAX_WRITE_BUFFER)
        .max_message_size(max_message_bytes)
        .max_frame_size(max_message_bytes)
}

impl Connection {
    pub(super) fn new(socket: WebSocket) -> Self {
        Self { socket, unsent_pongs: 0, pings: 0, resume_at: None }
    }

    /// Waits for the next message. Meanwhile sends the pongs that are due. Cancel safe.
    pub(super) async fn receive(&mut self) -> Received {
        if let Some(end) = self.resume_at {
            sleep_until(end).await;
            self.resume_at = None;
        }
        poll_fn(|context| self.poll_receive(context)).await
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Received> {
        if self.unsent_pongs > 0 {
            match self.socket.poll_flush_unpin(context) {
                Poll::Ready(Ok(())) => self.unsent_pongs = 0,
                Poll::Ready(Err(error)) => return Poll::Ready(Received::Message(Some(Err(error)))),
                Poll::Pending if self.unsent_pongs >= MAX_UNSENT_PONGS => {
                    return Poll::Ready(Received::TooManyPings);
                }
                Poll::Pending => {}
            }
        }
        let message = std::task::ready!(self.socket.poll_next_unpin(context));
        if let Some(Ok(Message::Ping(_))) = message {
            self.unsent_pongs += 1;
            self.count_ping();
        }
        Poll::Ready(Received::Message(message))
    }

    fn count_ping(&mut self) {
        self.pings += 1;
        if self.pings >= PINGS_IN_A_ROW {
            self.pings = 0;
            self.resume_at = Some(Instant::now() + PING_PAUSE);
        }
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: Message) -> Result<(), axum::Error> {
        self.socket.send(message).await
    }

    /// Sends messages in one write.
    pub(super) async fn send_all(
        &mut self,
        messages: impl Iterator<Item = Message>,
    ) -> Result<(), axum::Error> {
        for message in messages {
            self.socket.feed(message).await?;
        }
        self.socket.flush().await
    }

    /// Closes the connection and waits for the client's Close frame.
    pub(super) async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        let handshake = async {
            // Nothing may follow the Close frame, so the pong that is due comes first.
            if self.socket.flush().await.is_ok() && self.socket.send(close).await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        // A client that does not answer in time loses the handshake.
        let _ = timeout(CLOSE_TIMEOUT, handshake).await;
    }

    /// Sends the reply to the client's Close frame, which the library has prepared.
    pub(super) async fn answer_close(&mut self) {
        // A client that does not read in time loses the reply.
        let _ = timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
    }
}
