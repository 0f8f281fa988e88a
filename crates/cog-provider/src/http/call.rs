//! One call: attempts until the first token, then the rest of the reply.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use cog_json::Value;
use cog_spec::ModelEvent;
use futures_core::Stream;
use futures_util::StreamExt;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};

use super::{
    backoff,
    error::{self, Failure},
    redact::Redactor,
};
use crate::{
    Deadline, ModelStream, ProviderError, WireRequest,
    protocol::{DecodeError, Decoder, ReplyForm},
    transport::{Pieces, Transport, WireReply},
    vendors::{ProviderSettings, Vendor},
};

/// The maximum size of an answer in bytes of text, reasoning included.
const MAX_LEN: usize = 8 << 20;
/// The maximum size of base64 media in one answer: three images of 16 MB.
const MAX_MEDIA: usize = 64 << 20;
/// The number of bytes that are read from the body of an error reply.
const FAULT_BYTES: usize = 64 << 10;

/// The parameters of a call.
pub(super) struct Setup {
    pub(super) vendor: &'static Vendor,
    pub(super) model: String,
    pub(super) wire: WireRequest,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) redactor: Redactor,
    pub(super) settings: ProviderSettings,
    pub(super) timeout: Option<Duration>,
}

/// One call, from its first attempt to the end of its reply.
pub(super) struct Call {
    setup: Setup,
    started: Instant,
}

impl Call {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, started: Instant::now() }
    }

    /// Sends the request, with retries, and returns the stream at the first token.
    pub(super) async fn start(self, form: ReplyForm) -> Result<ModelStream, ProviderError> {
        let mut attempt = 0;
        loop {
            let limit = self.limit(Deadline::FirstToken, self.setup.settings.first_token_timeout);
            let failure = match limit.hold(self.open(form)).await {
                Ok(Ok((reading, failed))) => return Ok(self.stream(reading, failed)),
                Ok(Err(failure)) => failure,
                Err(()) => Failure::last(self.late(limit)),
            };
            let Some(wait) = self.wait_for(attempt, &failure) else { return Err(failure.error) };
            tracing::warn!(vendor = self.setup.vendor.name, wait_ms = wait.as_millis(), error = %failure.error, "asking again");
            sleep(wait).await;
            attempt += 1;
        }
    }

    /// Sends the request once and reads a body that is one JSON value.
    pub(super) async fn body(self) -> Result<Value, ProviderError> {
        let limit = self.limit(Deadline::FirstToken, self.setup.settings.first_token_timeout);
        let read = async {
            let mut reply = self.send().await?;
            let mut body = Vec::new();
            while let Some(piece) = self.piece(&mut reply.pieces).await? {
                body.extend_from_slice(&piece);
                if body.len() > MAX_LEN {
                    return Err(Failure::last(self.too_large(MAX_LEN)));
                }
            }
            let not_json = |error: cog_json::SyntaxError| {
                let message = format!("not JSON: {error}");
                Failure::last(ProviderError::Malformed { vendor: self.setup.vendor.title, message })
            };
            Value::parse_bytes(&body).map_err(not_json)
        };
        match limit.hold(read).await {
            Ok(read) => read.map_err(|failure| failure.error),
            Err(()) => Err(self.late(limit)),
        }
    }

    /// Makes one attempt, up to the first token. The returned error is one that arrived right after that token.
    async fn open(&self, form: ReplyForm) -> Result<(ResponseReader, Option<ProviderError>), Failure> {
        let reply = self.send().await?;
        let mut reading = ResponseReader::new(reply.pieces, form.decoder());
        while !reading.begun() && !reading.done {
            match self.read(&mut reading).await {
                Err(failure) if reading.begun() => {
                    reading.done = true;
                    return Ok((reading, Some(failure.error)));
                }
                read => read?,
            }
        }
        Ok((reading, None))
    }

    /// Sends the request; a status other than success is a failure.
    async fn send(&self) -> Result<WireReply, Failure> {
        let sent = self.setup.transport.send(&self.setup.wire).await;
        let mut reply = sent.map_err(|error| self.context().of_transport(error))?;
        if (200..300).contains(&reply.status) {
            return Ok(reply);
        }
        let mut body = Vec::new();
        while body.len() < FAULT_BYTES
            && let Ok(Some(piece)) = self.piece(&mut reply.pieces).await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(FAULT_BYTES);
        Err(self.context().of_status(&reply, &body))
    }

    /// Reads one chunk of the reply.
    async fn read(&self, reading: &mut ResponseReader) -> Result<(), Failure> {
        let piece = self.piece(&mut reading.pieces).await?;
        self.take(reading, piece)
    }

    /// Decodes one chunk of the reply, or its end.
    fn take(&self, reading: &mut ResponseReader, piece: Option<Bytes>) -> Result<(), Failure> {
        let begun = reading.begun();
        if let Err(error) = reading.take(piece) {
            return Err(self.context().of_decode(&error, begun || reading.begun()));
        }
        match reading.excess() {
            Some(limit) => Err(Failure::last(self.too_large(limit))),
            None => Ok(()),
        }
    }

    async fn piece(&self, pieces: &mut Pieces) -> Result<Option<Bytes>, Failure> {
        pieces.next().await.transpose().map_err(|error| self.context().of_transport(error))
    }

    /// Returns the events of a reply that has started.
    fn stream(mut self, reading: ResponseReader, failed: Option<ProviderError>) -> ModelStream {
        self.setup.wire.body = Bytes::new(); // the request is not sent again
        let limit = self.silence();
        Box::pin(Events { call: self, reading, failed, limit, timer: Box::pin(sleep_until(limit.at)) })
    }

    /// Returns the deadline for the next bytes of a reply that has started.
    fn silence(&self) -> Limit {
        self.limit(Deadline::Idle, self.setup.settings.idle_timeout)
    }

    /// Returns the delay before another attempt, or `None` if there is no other attempt.
    fn wait_for(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if !failure.again || attempt >= self.setup.settings.retries {
            return None;
        }
        let wait = backoff::wait(attempt, failure.error.retry_after(), fastrand::f64())?;
        let left = self.setup.timeout.map(|whole| whole.saturating_sub(self.started.elapsed()));
        left.is_none_or(|left| wait < left).then_some(wait)
    }

    /// Returns the earlier of two deadlines: this kind's deadline or that of the complete call.
    fn limit(&self, kind: Deadline, length: Duration) -> Limit {
        let near = Limit { kind, length, at: Instant::now() + length };
        let total = |length| Limit { kind: Deadline::Total, length, at: self.started + length };
        match self.setup.timeout.map(total) {
            Some(total) if total.at < near.at => total,
            _ => near,
        }
    }

    fn late(&self, limit: Limit) -> ProviderError {
        ProviderError::Timeout { vendor: self.setup.vendor.title, deadline: limit.kind, limit: limit.length }
    }

    fn too_large(&self, limit: usize) -> ProviderError {
        ProviderError::TooLarge { vendor: self.setup.vendor.title, limit }
    }

    fn context(&self) -> error::Context<'_> {
        let Setup { vendor, model, wire, redactor, .. } = &self.setup;
        error::Context { vendor, model, url: &wire.url, redactor }
    }
}

/// A deadline.
#[derive(Clone, Copy)]
struct Limit {
    kind: Deadline,
    length: Duration,
    at: Instant,
}

impl Limit {
    /// Returns the outcome, unless the deadline passes first.
    async fn hold<T>(self, work: impl Future<Output = T>) -> Result<T, ()> {
        timeout_at(self.at, work).await.map_err(drop)
    }
}

/// The events of a reply that has started, as they arrive. Its timer is created once, and reset when it fires.
struct Events {
    call: Call,
    reading: ResponseReader,
    /// An error to report after all events that arrived before it.
    failed: Option<ProviderError>,
    /// The deadline for the next bytes.
    limit: Limit,
    /// Fires at the deadline, or at an earlier one that has moved since.
    timer: Pin<Box<Sleep>>,
}

impl Events {
    /// Reads the available bytes, or waits for more.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ProviderError>> {
        match self.reading.pieces.poll_next_unpin(context) {
            Poll::Ready(piece) => {
                self.limit = self.call.silence();
                let piece = piece.transpose().map_err(|error| self.call.context().of_transport(error));
                let taken = piece.and_then(|piece| self.call.take(&mut self.reading, piece));
                Poll::Ready(taken.map_err(|failure| failure.error))
            }
            Poll::Pending => {
                ready!(self.poll_deadline(context));
                Poll::Ready(Err(self.call.late(self.limit)))
            }
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            if self.limit.at <= Instant::now() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.limit.at);
        }
    }
}

impl Stream for Events {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let events = &mut *self;
        loop {
            if let Some(event) = events.reading.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(error) = events.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if events.reading.done {
                return Poll::Ready(None);
            }
            events.failed = ready!(events.poll_read(context)).err();
            events.reading.done |= events.failed.is_some();
        }
    }
}

/// The state of a reply that is being read.
struct ResponseReader {
    pieces: Pieces,
    decoder: Box<dyn Decoder>,
    ready: VecDeque<ModelEvent>,
    /// A reusable buffer for decoded events.
    decoded: Vec<ModelEvent>,
    /// The bytes of text so far.
    length: usize,
    /// The bytes of base64 media so far.
    media: usize,
    /// Whether the reply is complete.
    done: bool,
}

impl ResponseReader {
    fn new(pieces: Pieces, decoder: Box<dyn Decoder>) -> Self {
        let (ready, decoded) = (VecDeque::new(), Vec::new());
        Self { pieces, decoder, ready, decoded, length: 0, media: 0, done: false }
    }

    /// Returns whether part of the answer has arrived.
    fn begun(&self) -> bool {
        self.length > 0 || self.media > 0
    }

    /// Returns the limit that the reply exceeds.
    fn excess(&self) -> Option<usize> {
        let text = (self.length > MAX_LEN).then_some(MAX_LEN);
        text.or_else(|| (self.media > MAX_MEDIA).then_some(MAX_MEDIA))
    }

    /// Decodes a chunk, or the end of the reply.
    fn take(&mut self, piece: Option<Bytes>) -> Result<(), DecodeError> {
        let taken = match piece {
            Some(piece) => self.decoder.push(&piece, &mut self.decoded),
            None => {
                self.done = true;
                self.decoder.finish(&mut self.decoded)
            }
        };
        for event in self.decoded.drain(..) {
            match &event {
                ModelEvent::Media(media) => self.media += media.data.len().max(1),
                event => self.length += length(event),
            }
            self.done |= matches!(event, ModelEvent::Finished(_));
            self.ready.push_back(event);
        }
        taken
    }
}

fn length(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(call) => call.arguments.len().max(1),
        ModelEvent::Started { .. }
        | ModelEvent::Media(_)
        | ModelEvent::Usage(_)
        | ModelEvent::Finished(_) => 0,
    }
}
