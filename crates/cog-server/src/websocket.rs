//! A WebSocket for runs of one module, one at a time (ruling R53).

mod connection;

use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::LazyLock,
};

use axum::{
    extract::ws::{CloseCode, Message, WebSocket, close_code},
    http::{HeaderMap, HeaderValue, header},
};
use cog_json::{ToJson as _, Value};
use cog_run::{
    CancelReason, Cancellation, RunInput,
    sessions::{Batch, Subscriber},
};
use cog_spec::{Code, Envelope, ErrorBody};
use tokio::time::{Instant, interval_at, timeout_at};

use self::connection::{Connection, Received, Unreadable};
use crate::{
    deliver::{self, Begin, ExecuteRequest, follow},
    error::ApiError,
    guard::{BodyLease, Client, Credential, Refusal},
    negotiate::{Delivery, ResponsePreference},
    request::{ExecuteBody, object},
    state::{App, Caller},
    transport::Wire,
};

pub(crate) use self::connection::bounded;

/// One connection. An error before a run is one frame with its envelope; the connection stays open.
pub(crate) struct Conversation {
    app: App,
    caller: Caller,
    /// What the client has shown to open the connection. It may be revoked while the connection is open.
    credential: Credential,
    name: String,
    socket: Connection,
    /// A run has ended on this connection: a late `cancel` refers to it and is ignored.
    has_run: bool,
}

/// The connection is closed.
struct Closed;

/// Whether the connection stays open.
type Flow = ControlFlow<Closed>;

impl Conversation {
    pub(crate) fn new(
        app: App,
        caller: Caller,
        credential: Credential,
        name: String,
        socket: WebSocket,
    ) -> Self {
        Self { app, caller, credential, name, socket: Connection::new(socket), has_run: false }
    }

    /// Serves the connection until the client closes it or is idle for too long.
    pub(crate) async fn run(mut self) {
        while let Continue(body) = self.next_body().await {
            if let Break(Closed) = self.run_once(body).await {
                return;
            }
        }
    }

    /// Waits for the next body.
    async fn next_body(&mut self) -> ControlFlow<Closed, ExecuteBody> {
        let deadline = Instant::now() + self.app.settings.websocket_idle_timeout;
        loop {
            let message = tokio::select! {
                message = timeout_at(deadline, self.socket.receive()) => message,
                () = self.app.guard.drain.begun.cancelled() => return self.close(close_code::AWAY, "shutting down").await,
            };
            let Ok(message) = message else {
                return self.close(close_code::NORMAL, "idle").await;
            };
            match parse(&self.app, &self.caller.client, message).await {
                Incoming::Frame(Frame::Run(body)) => return Continue(*body),
                Incoming::Frame(Frame::Close) => return self.close(close_code::NORMAL, "").await,
                Incoming::Frame(Frame::Cancel) if self.has_run => {}
                Incoming::Frame(Frame::Cancel) => self.send_envelope(&no_run_to_cancel()).await?,
                Incoming::Invalid(error) => self.send_envelope(&error.into_envelope()).await?,
                Incoming::Ignored => {}
                Incoming::TooLarge => return self.too_large().await,
                Incoming::Broken(code) => return self.close(code, "").await,
                Incoming::Closed => return self.closed().await,
                Incoming::Unread => return self.unread(),
                Incoming::TooMany => return self.too_many().await,
                Incoming::Interrupted => return Break(Closed),
            }
        }
    }

    /// Performs one run.
    async fn run_once(&mut self, body: ExecuteBody) -> Flow {
        // The connection outlives the request that opened it, so each run needs a token that is valid now.
        match self.app.guard.access.check_again(&self.credential, &self.caller.client) {
            Ok(grant) => self.caller.grant = grant,
            Err(revoked) => return self.revoked(revoked).await,
        }
        let request = match self.request(body).await {
            Ok(request) => request,
            Err(error) => return self.refuse(error).await,
        };
        let _in_flight = self.app.guard.drain.enter();
        match request {
            (request, Delivery::Stream(_)) => match follow(&self.app, request, Begin::AtOnce).await {
                Ok(subscribed) => self.follow(subscribed.subscriber).await,
                Err(error) => self.refuse(error).await,
            },
            (request, delivery) => self.run_to_envelope(request, delivery).await,
        }
    }

    async fn refuse(&mut self, error: ApiError) -> Flow {
        if let ApiError::Refused(refusal) = &error {
            self.app.guard.metrics.http.refused(refusal.reason().as_str());
        }
        let error = error.shown(&self.caller.rules(&self.app));
        self.send_envelope(&error.into_envelope()).await
    }

    /// Sends the error and closes the connection.
    async fn revoked(&mut self, refusal: Refusal) -> Flow {
        self.refuse(refusal.into()).await?;
        self.close(close_code::POLICY, "token revoked").await
    }

    async fn request(&mut self, mut body: ExecuteBody) -> Result<(ExecuteRequest, Delivery), ApiError> {
        self.app.guard.rates.check(&self.caller.client)?;
        let module = self.app.load(&self.name).await?;
        // A WebSocket streams unless the body requests otherwise.
        let preference = ResponsePreference { headers: &STREAM, query: None, options: &body.options };
        let delivery = preference.delivery(module.manifest.response.mode)?;
        body.options.set_caller(&self.app, &self.caller);
        let client = self.caller.client.clone();
        let name = self.name.clone();
        let files = Vec::new();
        let lease = BodyLease::default();
        let request = ExecuteRequest { module, name, body, client, files, lease };
        Ok((request, delivery))
    }

    /// Sends a session's chunks, and reads messages meanwhile.
    async fn follow(&mut self, mut subscriber: Subscriber) -> Flow {
        self.has_run = true;
        // The first tick of an interval is immediate; no ping is due at the start.
        let interval = self.app.settings.keepalive_interval;
        let mut keepalive = interval_at(Instant::now() + interval, interval);
        loop {
            tokio::select! {
                batch = subscriber.next() => {
                    let Some(batch) = batch else { return Continue(()) };
                    self.send(&batch).await?;
                    // The client may send the next body as soon as it has the last chunk, before the session has ended.
                    if has_end(&batch) {
                        return Continue(());
                    }
                },
                message = self.socket.receive() => match parse(&self.app, &self.caller.client, message).await {
                    Incoming::Frame(Frame::Cancel) => {
                        self.app.sessions.cancel(subscriber.session_id(), &self.caller.client.owner());
                    }
                    incoming => self.during_run(incoming).await?,
                },
                _ = keepalive.tick() => self.write(Message::Ping(Default::default())).await?,
            }
        }
    }

    /// Sends one envelope, and reads messages meanwhile.
    async fn run_to_envelope(&mut self, request: ExecuteRequest, delivery: Delivery) -> Flow {
        self.has_run = true;
        let ExecuteRequest { module, body: ExecuteBody { input, mut options, bytes, .. }, .. } = request;
        let cancellation = Cancellation::default();
        options.run.cancellation = cancellation.clone();
        options.context.warnings.extend(delivery.warning());
        let app = self.app.clone();
        let input = RunInput::Json(input.unwrap_or_else(Value::null));
        let mut run = Box::pin(deliver::run(&app, &module, input, options, bytes));
        loop {
            tokio::select! {
                envelope = &mut run => return self.send_envelope(&envelope).await,
                message = self.socket.receive() => match parse(&self.app, &self.caller.client, message).await {
                    Incoming::Frame(Frame::Cancel) => cancellation.cancel(CancelReason::Cancelled),
                    incoming => self.during_run(incoming).await?,
                },
            }
        }
    }

    /// Handles a message during a run, except `cancel`.
    async fn during_run(&mut self, incoming: Incoming) -> Flow {
        match incoming {
            Incoming::Frame(Frame::Run(_)) => self.send_envelope(&run_in_progress()).await,
            Incoming::Frame(Frame::Close) => self.close(close_code::NORMAL, "").await,
            Incoming::Invalid(error) => self.send_envelope(&error.into_envelope()).await,
            Incoming::TooLarge => self.too_large().await,
            Incoming::Broken(code) => self.close(code, "").await,
            Incoming::Closed => self.closed().await,
            Incoming::Unread => self.unread(),
            Incoming::TooMany => self.too_many().await,
            Incoming::Interrupted => Break(Closed),
            Incoming::Frame(Frame::Cancel) | Incoming::Ignored => Continue(()),
        }
    }

    /// Sends all entries, each as a frame, in one write.
    async fn send(&mut self, batch: &Batch) -> Flow {
        check_sent(self.socket.send_all(batch.entries().map(|entry| Message::text(entry.json))).await)
    }

    async fn send_envelope(&mut self, envelope: &Envelope) -> Flow {
        self.write(Message::text(envelope.to_json())).await
    }

    async fn too_large<T>(&mut self) -> ControlFlow<Closed, T> {
        let max_bytes = self.app.settings.max_message_bytes;
        let error = ErrorBody::new(Code::InputTooLarge, format!("the message exceeds {max_bytes} bytes"))
            .suggest("Send a smaller input; the operator can raise --max-message-bytes.");
        if let Break(Closed) = self.send_envelope(&Envelope::failure(error)).await {
            return Break(Closed);
        }
        self.close(close_code::SIZE, "message too large").await
    }

    async fn close<T>(&mut self, code: u16, reason: &'static str) -> ControlFlow<Closed, T> {
        self.socket.close(code, reason).await;
        Break(Closed)
    }

    /// Answers the client's Close frame.
    async fn closed<T>(&mut self) -> ControlFlow<Closed, T> {
        self.socket.answer_close().await;
        Break(Closed)
    }

    async fn too_many<T>(&mut self) -> ControlFlow<Closed, T> {
        self.app.guard.metrics.http.refused("rate");
        self.close(close_code::POLICY, "too many messages").await
    }

    /// The client does not read, so nothing more can be sent.
    fn unread<T>(&self) -> ControlFlow<Closed, T> {
        self.app.guard.metrics.http.write_timeout();
        Break(Closed)
    }

    async fn write(&mut self, message: Message) -> Flow {
        check_sent(self.socket.send(message).await)
    }
}

/// Parses a message; a large one off the event loop. Messages that start no run have a rate of their own.
async fn parse(app: &App, client: &Client, received: Received) -> Incoming {
    let incoming = app.offload.run(text_bytes(&received), move || parse_frame(received)).await;
    match incoming {
        Incoming::Ignored | Incoming::Invalid(_) | Incoming::Frame(Frame::Cancel)
            if app.guard.messages.check(client).is_err() =>
        {
            Incoming::TooMany
        }
        incoming => incoming,
    }
}

/// Returns the size of a text message.
fn text_bytes(received: &Received) -> usize {
    match received {
        Received::Message(Some(Ok(Message::Text(text)))) => text.len(),
        _ => 0,
    }
}

fn has_end(batch: &Batch) -> bool {
    batch.entries().any(|entry| matches!(entry.event, "final" | "error"))
}

fn check_sent(sent: Result<(), axum::Error>) -> Flow {
    if sent.is_ok() { Continue(()) } else { Break(Closed) }
}

fn no_run_to_cancel() -> Envelope {
    Envelope::failure(ErrorBody::new(Code::InvalidInput, "no run to cancel"))
}

fn run_in_progress() -> Envelope {
    let message = "a run is already in progress on this connection";
    let error = ErrorBody::new(Code::InvalidInput, message)
        .suggest(r#"Wait until it ends, cancel it with {"type": "cancel"}, or open another connection."#);
    Envelope::failure(error)
}

// Messages of a WebSocket client.

/// The headers of a request for a stream.
static STREAM: LazyLock<HeaderMap> = LazyLock::new(|| {
    HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(Wire::Sse.media_type()))])
});

/// A valid text frame.
enum Frame {
    /// A body of an execute request.
    Run(Box<ExecuteBody>),
    /// `{"type": "cancel"}`
    Cancel,
    /// `{"type": "close"}`
    Close,
}

/// A message, or the end of the connection.
enum Incoming {
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
fn parse_frame(received: Received) -> Incoming {
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
