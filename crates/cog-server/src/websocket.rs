//! A WebSocket: runs of one module, one after the other (ruling R53).

mod connection;
mod frame;

use std::ops::ControlFlow::{self, Break, Continue};

use axum::extract::ws::{Message, WebSocket, close_code};
use cog_json::{ToJson as _, Value};
use cog_run::{
    CancelReason, Cancellation, RunInput,
    sessions::{Batch, Subscriber},
};
use cog_spec::{Code, Envelope, ErrorBody};
use tokio::time::{Instant, interval_at, timeout_at};

pub(crate) use self::connection::bounded;
use self::{
    connection::{Connection, Received},
    frame::{ClientFrame, Frame},
};
use crate::{
    deliver,
    error::ApiError,
    execute_request::ExecuteRequest,
    follow::follow,
    negotiate::{Delivery, ResponsePreference},
    request::ExecuteBody,
    state::{App, Caller},
};

/// One connection. A fault before a run is one frame with its envelope, and the next body may follow.
pub(crate) struct Conversation {
    app: App,
    caller: Caller,
    name: String,
    socket: Connection,
    /// A run has been on this connection: a late `cancel` means it, and is passed over.
    has_run: bool,
}

/// The other end is gone, or was told to go.
struct Gone;

/// How it goes on after a frame.
type Flow = ControlFlow<Gone>;

impl Conversation {
    pub(crate) fn new(app: App, caller: Caller, name: String, socket: WebSocket) -> Self {
        Self { app, caller, name, socket: Connection::new(socket), has_run: false }
    }

    /// Talks until the other end closes, or says nothing for too long.
    pub(crate) async fn run(mut self) {
        while let Continue(body) = self.body().await {
            if let Break(Gone) = self.answer(body).await {
                return;
            }
        }
    }

    /// Waits for the next body.
    async fn body(&mut self) -> ControlFlow<Gone, ExecuteBody> {
        let deadline = Instant::now() + self.app.settings.socket_idle;
        loop {
            let message = tokio::select! {
                message = timeout_at(deadline, self.socket.receive()) => message,
                () = self.app.guard.drain.begun() => return self.close(close_code::AWAY, "shutting down").await,
            };
            let Ok(message) = message else {
                return self.close(close_code::NORMAL, "idle").await;
            };
            match hear(&self.app, message).await {
                ClientFrame::Frame(Frame::Run(body)) => return Continue(*body),
                ClientFrame::Frame(Frame::Close) => return self.close(close_code::NORMAL, "").await,
                ClientFrame::Frame(Frame::Cancel) if self.has_run => {}
                ClientFrame::Frame(Frame::Cancel) => self.tell(&nothing_to_cancel()).await?,
                ClientFrame::Invalid(fault) => self.tell(&fault.into_envelope()).await?,
                ClientFrame::Nothing => {}
                ClientFrame::TooLarge => return self.too_large().await,
                ClientFrame::Broken(code) => return self.close(code, "").await,
                ClientFrame::Closed => return self.closed().await,
                ClientFrame::Unread => return self.unread(),
                ClientFrame::Gone => return Break(Gone),
            }
        }
    }

    /// One run.
    async fn answer(&mut self, body: ExecuteBody) -> Flow {
        let order = match self.order(body).await {
            Ok(order) => order,
            Err(fault) => return self.refuse(fault).await,
        };
        let _under_way = self.app.guard.drain.enter();
        match order {
            (order, Delivery::Stream(_)) => match follow(&self.app, order).await {
                Ok(followed) => self.follow(followed.follower).await,
                Err(fault) => self.refuse(fault).await,
            },
            (order, delivery) => self.whole(order, delivery).await,
        }
    }

    async fn refuse(&mut self, fault: ApiError) -> Flow {
        if let ApiError::Refused(refusal) = &fault {
            self.app.guard.metrics.http.refused(refusal.reason().as_str());
        }
        self.tell(&fault.into_envelope()).await
    }

    async fn order(&mut self, mut body: ExecuteBody) -> Result<(ExecuteRequest, Delivery), ApiError> {
        self.app.guard.drain.check()?;
        self.app.guard.rates.check(&self.caller.client)?;
        let module = self.app.load(&self.name).await?;
        // Whoever opens a WebSocket asks for a stream, if the body does not say otherwise.
        let wishes = ResponsePreference { headers: &frame::STREAM, query: None, options: &body.options };
        let delivery = wishes.delivery(module.manifest.response.mode)?;
        self.app.own(&mut body.options, &self.caller);
        let client = self.caller.client.clone();
        let order = ExecuteRequest { module, name: self.name.clone(), body, client, files: Vec::new() };
        Ok((order, delivery))
    }

    /// Sends a session's chunks, and hears what the client says meanwhile.
    async fn follow(&mut self, mut follower: Subscriber) -> Flow {
        self.has_run = true;
        let heartbeat = self.app.settings.heartbeat;
        let mut beat = interval_at(Instant::now() + heartbeat, heartbeat);
        loop {
            tokio::select! {
                batch = follower.next() => {
                    let Some(batch) = batch else { return Continue(()) };
                    self.send(&batch).await?;
                    // Whoever has read the end may send the next body at once.
                    if has_end(&batch) {
                        return Continue(());
                    }
                },
                message = self.socket.receive() => match hear(&self.app, message).await {
                    ClientFrame::Frame(Frame::Cancel) => {
                        self.app.sessions.cancel(follower.session_id(), &self.caller.client.owner());
                    }
                    heard => self.meanwhile(heard).await?,
                },
                _ = beat.tick() => self.write(Message::Ping(Default::default())).await?,
            }
        }
    }

    /// Sends one envelope, and hears what the client says meanwhile.
    async fn whole(&mut self, order: ExecuteRequest, delivery: Delivery) -> Flow {
        self.has_run = true;
        let ExecuteRequest { module, body: ExecuteBody { input, mut options, bytes, .. }, .. } = order;
        let stop = Cancellation::new();
        options.run.stop = stop.clone();
        options.run.warnings.extend(delivery.warning());
        let app = self.app.clone();
        let input = RunInput::Json(input.unwrap_or_else(Value::null));
        let mut run = Box::pin(deliver::run(&app, &module, input, options, bytes));
        loop {
            tokio::select! {
                envelope = &mut run => return self.tell(&envelope).await,
                message = self.socket.receive() => match hear(&self.app, message).await {
                    ClientFrame::Frame(Frame::Cancel) => stop.now(CancelReason::Cancelled),
                    heard => self.meanwhile(heard).await?,
                },
            }
        }
    }

    /// What is heard while a run goes on, but for `cancel`.
    async fn meanwhile(&mut self, heard: ClientFrame) -> Flow {
        match heard {
            ClientFrame::Frame(Frame::Run(_)) => self.tell(&out_of_turn()).await,
            ClientFrame::Frame(Frame::Close) => self.close(close_code::NORMAL, "").await,
            ClientFrame::Invalid(fault) => self.tell(&fault.into_envelope()).await,
            ClientFrame::TooLarge => self.too_large().await,
            ClientFrame::Broken(code) => self.close(code, "").await,
            ClientFrame::Closed => self.closed().await,
            ClientFrame::Unread => self.unread(),
            ClientFrame::Gone => Break(Gone),
            ClientFrame::Frame(Frame::Cancel) | ClientFrame::Nothing => Continue(()),
        }
    }

    /// All entries, each a frame, in one write.
    async fn send(&mut self, batch: &Batch) -> Flow {
        gone(self.socket.send_all(batch.entries().map(|entry| Message::text(entry.json))).await)
    }

    async fn tell(&mut self, envelope: &Envelope) -> Flow {
        self.write(Message::text(envelope.to_json())).await
    }

    async fn too_large<T>(&mut self) -> ControlFlow<Gone, T> {
        let largest = self.app.settings.max_message_bytes;
        let error =
            ErrorBody::new(Code::InputTooLarge, format!("the message is larger than {largest} bytes"))
                .suggest("shorten the input; the operator can raise --max-message-bytes");
        if let Break(Gone) = self.tell(&Envelope::failure(error)).await {
            return Break(Gone);
        }
        self.close(close_code::SIZE, "message too large").await
    }

    async fn close<T>(&mut self, code: u16, reason: &'static str) -> ControlFlow<Gone, T> {
        self.socket.close(code, reason).await;
        Break(Gone)
    }

    /// The client closed the connection: its Close frame is answered.
    async fn closed<T>(&mut self) -> ControlFlow<Gone, T> {
        self.socket.answer_close().await;
        Break(Gone)
    }

    /// The client does not read: nothing more can be sent, not even why.
    fn unread<T>(&self) -> ControlFlow<Gone, T> {
        self.app.guard.metrics.http.slow_reader();
        Break(Gone)
    }

    async fn write(&mut self, message: Message) -> Flow {
        gone(self.socket.send(message).await)
    }
}

/// Reads what arrived; a large message away from the event loop.
async fn hear(app: &App, received: Received) -> ClientFrame {
    app.offload.run(received.bytes(), move || frame::hear(received)).await
}

fn has_end(batch: &Batch) -> bool {
    batch.entries().any(|entry| matches!(entry.event, "final" | "error"))
}

fn gone(sent: Result<(), axum::Error>) -> Flow {
    if sent.is_ok() { Continue(()) } else { Break(Gone) }
}

fn nothing_to_cancel() -> Envelope {
    Envelope::failure(ErrorBody::new(Code::InvalidInput, "there is no run to cancel"))
}

fn out_of_turn() -> Envelope {
    let message = "a run is under way on this connection; one at a time";
    let error = ErrorBody::new(Code::InvalidInput, message)
        .suggest(r#"wait for its end, stop it with {"type": "cancel"}, or open another connection"#);
    Envelope::failure(error)
}
