//! One call: attempts until the first token, then the remaining reply.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use cog_json::{ToJson, Value};
use cog_spec::{FinishReason, ModelEvent, Usage};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};

use super::{
    Redactor,
    backoff::{self, reply_head},
    error::{self, Failure},
};
use crate::{
    Deadline, ModelStream, ProviderError, ReplyHead, ReplyHook, RetryHook, WireRequest,
    protocol::{Continuation, DecodeError, Decoder, ReplyFormat},
    transport::{BodyStream, Transport, WireReply},
    vendors::{ProviderSettings, Vendor},
};

/// The maximum size of an answer in bytes of text, reasoning included.
pub(super) const MAX_LEN: usize = 8 << 20;
/// The maximum size of base64 media in one answer: three images of 16 MB.
const MAX_MEDIA: usize = 64 << 20;
/// The number of bytes that are read from the body of an error reply.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The parameters of a call.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) vendor: &'static Vendor,
    pub(super) model: String,
    pub(super) wire: WireRequest,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) redactor: Redactor,
    pub(super) settings: ProviderSettings,
    pub(super) timeout: Option<Duration>,
    /// Receives the head of each reply.
    pub(super) on_reply: Option<ReplyHook>,
}

/// One call, from its first attempt to the end of its reply.
pub(super) struct Call {
    setup: Setup,
    started: Instant,
}

impl Call {
    /// Creates a call whose time limit counts from `started`.
    pub(super) fn new(setup: Setup, started: Instant) -> Self {
        Self { setup, started }
    }

    /// Sends the request, with retries, and returns the stream at the first token.
    pub(super) async fn start(
        self,
        format: ReplyFormat,
        on_retry: Option<&RetryHook>,
    ) -> Result<ModelStream, ProviderError> {
        let mut attempt = 0;
        loop {
            // Each attempt has the complete time for its first token; only the time limit of the call covers all of them.
            let limit = self.limit(Deadline::FirstToken, self.setup.settings.first_token_timeout);
            let failure = match limit.apply(self.open(format)).await {
                Ok(Ok((reader, failed))) => return Ok(self.stream(reader, failed)),
                Ok(Err(failure)) => failure,
                // Not retried: the model may have worked all the time, and would again.
                Err(()) => Failure::permanent(self.timeout_error(limit)),
            };
            // Only before the first token: nothing has been passed on, so a second reply cannot contradict the first
            // one.
            let Some(delay) = self.retry_delay(attempt, &failure) else { return Err(failure.error) };
            tracing::warn!(
                vendor = self.setup.vendor.name,
                delay_ms = delay.as_millis(),
                error = failure.error.outline(),
                "retrying the call"
            );
            sleep(delay).await;
            // Asked after the wait: in the meantime another call may have used up the budget that the hook counts.
            if on_retry.is_some_and(|hook| !hook.allows(failure.error.code())) {
                return Err(failure.error);
            }
            attempt += 1;
        }
    }

    /// Sends the request once and reads a body that is one JSON value.
    pub(super) async fn body(self) -> Result<Value, ProviderError> {
        self.limited_body(MAX_LEN).await
    }

    /// Sends the request once and reads a body that is one JSON value, of at most `max` bytes.
    pub(super) async fn limited_body(self, max: usize) -> Result<Value, ProviderError> {
        let mut body = Vec::new();
        self.chunks(|chunk| {
            body.extend_from_slice(&chunk);
            if body.len() > max { Err(max) } else { Ok(true) }
        })
        .await?;
        Value::parse_bytes(&body).map_err(|error| {
            let message = format!("not JSON: {error}");
            ProviderError::Malformed { vendor: self.setup.vendor.title, message }
        })
    }

    /// Sends the request once, and returns a header of the reply, one of `REPLY_HEADERS`.
    pub(super) async fn header(self, name: &str) -> Result<Option<String>, ProviderError> {
        let limit = self.limit(Deadline::FirstToken, self.setup.settings.first_token_timeout);
        match limit.apply(self.send()).await {
            Ok(Ok(reply)) => Ok(reply.header(name).map(str::to_owned)),
            Ok(Err(failure)) => Err(failure.error),
            Err(()) => Err(self.timeout_error(limit)),
        }
    }

    /// Sends the request once and reads the lines of the body, of at most `max` bytes each. `read` returns false to
    /// stop.
    pub(super) async fn lines(
        self,
        max: usize,
        mut read: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), ProviderError> {
        let mut line: Vec<u8> = Vec::new();
        let mut goes_on = true;
        self.chunks(|chunk| {
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if line.len() > max {
                    return Err(max);
                }
                if goes_on && line.ends_with(b"\n") {
                    goes_on = read(&line);
                    line.clear();
                }
            }
            Ok(goes_on)
        })
        .await?;
        if goes_on {
            read(&line);
        }
        Ok(())
    }

    /// Sends the request once and passes the chunks of the body, until `take` returns false. It returns a size limit as
    /// an error.
    async fn chunks(&self, mut take: impl FnMut(Bytes) -> Result<bool, usize>) -> Result<(), ProviderError> {
        let limit = self.limit(Deadline::FirstToken, self.setup.settings.first_token_timeout);
        let read = async {
            let mut reply = self.send().await?;
            while let Some(chunk) = self.chunk(&mut reply.body).await? {
                let goes_on = take(chunk);
                if !goes_on.map_err(|max| Failure::permanent(self.too_large_error(max)))? {
                    break;
                }
            }
            Ok(())
        };
        match limit.apply(read).await {
            Ok(read) => read.map_err(|failure: Failure| failure.error),
            Err(()) => Err(self.timeout_error(limit)),
        }
    }

    /// Sends the request once, and reads up to the first token. The returned error arrived right after that token.
    async fn open(&self, format: ReplyFormat) -> Result<(ResponseReader, Option<ProviderError>), Failure> {
        let reply = match self.send().await {
            Err(Failure { generated: Some(text), .. }) => {
                return Ok((ResponseReader::of_text(text, format.decoder()), None));
            }
            sent => sent?,
        };
        let mut reader = ResponseReader::new(reply.body, format.decoder());
        while !reader.has_started() && !reader.is_complete {
            match self.read(&mut reader).await {
                Err(failure) if reader.has_started() => {
                    reader.is_complete = true;
                    return Ok((reader, Some(failure.error)));
                }
                Err(Failure { generated: Some(text), .. }) => {
                    return Ok((ResponseReader::of_text(text, format.decoder()), None));
                }
                read => read?,
            }
        }
        Ok((reader, None))
    }

    /// Sends the request. A status other than success is an error.
    async fn send(&self) -> Result<WireReply, Failure> {
        let sent = self.setup.transport.send(&self.setup.wire).await;
        let mut reply = sent.map_err(|error| self.context().transport_error(error))?;
        let head = reply_head(&reply);
        if (200..300).contains(&reply.status) {
            self.report(&head);
            return Ok(reply);
        }
        // A body that breaks off still has its beginning, which often names the reason.
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(chunk)) = self.chunk(&mut reply.body).await
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(MAX_ERROR_BYTES);
        let failure = self.context().status_error(&reply, &body);
        // Some vendors name the wait only in the body.
        let retry_after = head.retry_after.or_else(|| failure.error.retry_after());
        self.report(&ReplyHead { retry_after, ..head });
        Err(failure)
    }

    fn report(&self, head: &ReplyHead) {
        if let Some(hook) = &self.setup.on_reply {
            hook.receive(head);
        }
    }

    /// Reads one chunk of the reply.
    async fn read(&self, reader: &mut ResponseReader) -> Result<(), Failure> {
        let chunk = self.chunk(&mut reader.body).await?;
        self.decode(reader, chunk)
    }

    /// Decodes one chunk of the reply, or its end.
    fn decode(&self, reader: &mut ResponseReader, chunk: Option<Bytes>) -> Result<(), Failure> {
        let had_started = reader.has_started();
        if let Err(error) = reader.decode(chunk) {
            return Err(self.context().decode_error(&error, had_started || reader.has_started()));
        }
        match reader.exceeded_limit() {
            Some(limit) => Err(Failure::permanent(self.too_large_error(limit))),
            None => Ok(()),
        }
    }

    async fn chunk(&self, body: &mut BodyStream) -> Result<Option<Bytes>, Failure> {
        body.next().await.transpose().map_err(|error| self.context().transport_error(error))
    }

    /// Returns the events of a reply that has started.
    fn stream(mut self, reader: ResponseReader, failed: Option<ProviderError>) -> ModelStream {
        self.setup.wire.body = Bytes::new(); // the request is not sent again
        let limit = self.idle_limit();
        Box::pin(Events { call: self, reader, failed, limit, timer: Box::pin(sleep_until(limit.at)) })
    }

    /// Returns the deadline for the next bytes of a reply that has started.
    fn idle_limit(&self) -> Limit {
        self.limit(Deadline::Idle, self.setup.settings.idle_timeout)
    }

    /// Returns the delay before another attempt, or `None` if there is no other attempt.
    fn retry_delay(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if !failure.is_retryable || attempt >= self.setup.settings.retries {
            return None;
        }
        let delay = backoff::delay(attempt, failure.error.retry_after(), fastrand::f64())?;
        // A wait that the time limit would end is pointless: the error is reported now.
        let left = self.setup.timeout.map(|timeout| timeout.saturating_sub(self.started.elapsed()));
        left.is_none_or(|left| delay < left).then_some(delay)
    }

    /// Returns the earlier of two deadlines: this kind's deadline or the deadline of the complete call.
    fn limit(&self, kind: Deadline, length: Duration) -> Limit {
        let own = Limit { kind, length, at: Instant::now() + length };
        match self.setup.timeout {
            Some(length) if self.started + length < own.at => {
                Limit { kind: Deadline::Total, length, at: self.started + length }
            }
            _ => own,
        }
    }

    fn timeout_error(&self, limit: Limit) -> ProviderError {
        ProviderError::Timeout { vendor: self.setup.vendor.title, deadline: limit.kind, limit: limit.length }
    }

    fn too_large_error(&self, limit: usize) -> ProviderError {
        ProviderError::TooLarge { vendor: self.setup.vendor.title, limit }
    }

    fn context(&self) -> error::Context<'_> {
        let Setup { vendor, model, wire, redactor, .. } = &self.setup;
        error::Context { vendor, model, url: &wire.url, body: &wire.body, redactor }
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
    /// Returns the result of the work, unless the deadline passes first.
    async fn apply<T>(self, work: impl Future<Output = T>) -> Result<T, ()> {
        timeout_at(self.at, work).await.map_err(drop)
    }
}

/// The events of a reply that has started, as they arrive. Its timer is created once, and reset when it fires.
struct Events {
    call: Call,
    reader: ResponseReader,
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
        match self.reader.body.poll_next_unpin(context) {
            Poll::Ready(chunk) => {
                self.limit = self.call.idle_limit();
                let chunk = chunk.transpose().map_err(|error| self.call.context().transport_error(error));
                let decoded = chunk.and_then(|chunk| self.call.decode(&mut self.reader, chunk));
                Poll::Ready(decoded.map_err(|failure| failure.error))
            }
            // The timer is polled only when no bytes are ready, so that late work of this task is not the vendor's
            // delay.
            Poll::Pending => {
                ready!(self.poll_deadline(context));
                Poll::Ready(Err(self.call.timeout_error(self.limit)))
            }
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Each chunk moves the deadline. Resetting a timer takes a lock of the runtime, so it is reset only when it
        // fires too early, not for each chunk.
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
            if let Some(event) = events.reader.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(error) = events.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if events.reader.is_complete {
                return Poll::Ready(None);
            }
            events.failed = ready!(events.poll_read(context)).err();
            events.reader.is_complete |= events.failed.is_some();
        }
    }
}

/// The state of a reply that is being read.
struct ResponseReader {
    body: BodyStream,
    decoder: Box<dyn Decoder>,
    ready: VecDeque<ModelEvent>,
    /// A reusable buffer for decoded events.
    decoded: Vec<ModelEvent>,
    /// The bytes of text so far.
    length: usize,
    /// The bytes of base64 media so far.
    media: usize,
    /// Whether the reply is complete.
    is_complete: bool,
}

impl ResponseReader {
    fn new(body: BodyStream, decoder: Box<dyn Decoder>) -> Self {
        Self {
            body,
            decoder,
            ready: VecDeque::new(),
            decoded: Vec::new(),
            length: 0,
            media: 0,
            is_complete: false,
        }
    }

    /// Creates the reader of a reply that is complete. It is checked like any other reply: the next attempt
    /// then tells the model what is wrong with it.
    fn of_text(text: Box<str>, decoder: Box<dyn Decoder>) -> Self {
        let mut reader = Self::new(Box::pin(stream::empty()), decoder);
        reader.length = text.len();
        reader.is_complete = true;
        let text = (!text.is_empty()).then(|| ModelEvent::Text(text.into()));
        reader.ready.extend(text.into_iter().chain([ModelEvent::Finished(FinishReason::Stop)]));
        reader
    }

    /// Returns whether part of the answer has arrived.
    fn has_started(&self) -> bool {
        self.length > 0 || self.media > 0
    }

    /// Returns the limit that the reply exceeds.
    fn exceeded_limit(&self) -> Option<usize> {
        let text = (self.length > MAX_LEN).then_some(MAX_LEN);
        text.or_else(|| (self.media > MAX_MEDIA).then_some(MAX_MEDIA))
    }

    /// Decodes a chunk, or the end of the reply.
    fn decode(&mut self, chunk: Option<Bytes>) -> Result<(), DecodeError> {
        let result = match chunk {
            Some(chunk) => self.decoder.push(&chunk, &mut self.decoded),
            None => {
                self.is_complete = true;
                self.decoder.finish(&mut self.decoded)
            }
        };
        // Also after an error: what arrived before it is passed on first.
        for event in self.decoded.drain(..) {
            match &event {
                // At least 1, so that an empty item also counts as the start of the answer, which rules out a retry.
                ModelEvent::Media(media) => self.media += media.data.len().max(1),
                event => self.length += length(event),
            }
            self.is_complete |= matches!(event, ModelEvent::Finished(_));
            self.ready.push_back(event);
        }
        result
    }
}

/// Returns the bytes of text in an event.
pub(super) fn length(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ReasoningItem(item) => item.to_json().len(),
        ModelEvent::ToolCall(call) => call.arguments.len().max(1),
        ModelEvent::Started { .. }
        | ModelEvent::Tokens(_)
        | ModelEvent::Media(_)
        | ModelEvent::Usage(_)
        | ModelEvent::Finished(_) => 0,
    }
}

// Replies that a vendor ends at its limit per request, and continues in further requests.

/// The maximum number of requests that continue one reply.
const MAX_ROUNDS: u32 = 16;

/// Sends the request, and returns the stream at the first token. Further requests continue the reply.
pub(super) async fn start(
    setup: Setup,
    format: ReplyFormat,
    on_retry: Option<RetryHook>,
    continuation: Continuation,
) -> Result<ModelStream, ProviderError> {
    let started = Instant::now();
    let reply = Call::new(setup.clone(), started).start(format, on_retry.as_ref()).await?;
    let reply = ContinuedReply {
        setup,
        format,
        on_retry,
        continuation,
        started,
        reply,
        rounds: 0,
        length: 0,
        before: Usage::default(),
        last: Usage::default(),
    };
    Ok(Box::pin(stream::try_unfold(reply, ContinuedReply::next)))
}

/// A reply that may consist of several.
struct ContinuedReply {
    setup: Setup,
    format: ReplyFormat,
    on_retry: Option<RetryHook>,
    continuation: Continuation,
    started: Instant,
    /// The reply to the last request.
    reply: ModelStream,
    /// The number of requests that continued the first one.
    rounds: u32,
    /// The bytes of text so far.
    length: usize,
    /// The tokens of all replies before the last one.
    before: Usage,
    /// The tokens of the last reply.
    last: Usage,
}

impl ContinuedReply {
    async fn next(mut self) -> Result<Option<(ModelEvent, Self)>, ProviderError> {
        loop {
            let Some(event) = self.reply.next().await.transpose()? else { return Ok(None) };
            self.length += length(&event);
            if self.length > MAX_LEN {
                return Err(ProviderError::TooLarge { vendor: self.setup.vendor.title, limit: MAX_LEN });
            }
            let event = match event {
                ModelEvent::Finished(FinishReason::Continue(token)) if self.rounds < MAX_ROUNDS => {
                    self.resume(&token).await?;
                    continue;
                }
                ModelEvent::Finished(FinishReason::Continue(_)) => ModelEvent::Finished(FinishReason::Length),
                ModelEvent::Started { .. } if self.rounds > 0 => continue,
                // Usage is reported per request, and cumulatively within one: only its last report counts.
                ModelEvent::Usage(usage) => {
                    self.last = usage.clone();
                    ModelEvent::Usage(self.before.plus(&usage))
                }
                event => event,
            };
            return Ok(Some((event, self)));
        }
    }

    /// Requests the rest of the reply.
    async fn resume(&mut self, token: &str) -> Result<(), ProviderError> {
        let body = (self.continuation)(&self.setup.wire.body, token);
        let wire = WireRequest { body, ..self.setup.wire.clone() };
        let setup = Setup { wire, ..self.setup.clone() };
        // The time limit goes on from the first request.
        self.reply = Call::new(setup, self.started).start(self.format, self.on_retry.as_ref()).await?;
        self.before = self.before.plus(&std::mem::take(&mut self.last));
        self.rounds += 1;
        Ok(())
    }
}
