//! The stream of a run as server-sent events: what is certain of the data, while they arrive (docs/openai.md).

use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe, pin::pin, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use cog_json::{ToJson as _, Value};
use cog_run::{CancelReason, Cancellation, ChunkStream};
use cog_spec::{Chunk, ChunkType, Code, ErrorBody};
use futures_util::{FutureExt as _, stream};
use tokio::time::timeout;

use super::{
    Answer, Events, Reply, Run,
    data_text::{Corrected, DataText},
    error::OpenAiError,
    live::Live,
    response_format::ResponseFormat,
};
use crate::{
    guard::BodyLease,
    request::Options,
    state::App,
    transport::{Wire, sse},
};

/// Responds with a stream. It begins when the media of the input are ready, so that their errors have a status (ruling R54).
///
/// # Errors
/// Errors that are known before the model is called.
pub(super) async fn respond(app: &App, run: Run) -> Result<Response, OpenAiError> {
    let slot = app.slot(&run.client)?;
    let Run { module, input, mut options, format, reply, bytes, lease, .. } = run;
    options.run.chunk_type = Some(ChunkType::Delta);
    let cancellation = options.run.cancellation.clone();
    let (live, runtime) = (Live::from_module(&module), app.runtime.clone());
    options.context.is_folded = live.is_none();
    let started = app.offload.run(bytes, move || {
        let Options { run, context, .. } = *options;
        runtime.prepare(&module, input, run, context)
    });
    let chunks = prepare(app, started.await?, &cancellation).await?;
    let data = live.map(DataText::new);
    let running = Running { chunks, cancellation, app: app.clone(), _slot: slot, _lease: lease };
    let streamed = Streamed { running: Some(running), data, format, reply, has_begun: false };
    Ok(Wire::Sse.response_of(streamed.into_body(app.settings.keepalive_interval)))
}

/// Waits until the media of the input are ready.
async fn prepare(
    app: &App,
    chunks: ChunkStream,
    cancellation: &Cancellation,
) -> Result<ChunkStream, OpenAiError> {
    let mut preparing = pin!(chunks.prepared());
    tokio::select! {
        prepared = &mut preparing => return Ok(prepared?),
        () = app.guard.drain.over.cancelled() => cancellation.cancel(CancelReason::Shutdown),
    }
    Ok(preparing.await?)
}

/// A stream. Dropping it cancels the call to the provider.
struct Streamed {
    /// None once the stream has ended.
    running: Option<Running>,
    /// The text of the data while they arrive; none if it is sent at the end.
    data: Option<DataText>,
    format: ResponseFormat,
    reply: Box<dyn Reply>,
    has_begun: bool,
}

/// A run, and what it uses until its end.
struct Running {
    chunks: ChunkStream,
    cancellation: Cancellation,
    app: App,
    _slot: Box<dyn Any + Send>,
    _lease: BodyLease,
}

impl Streamed {
    fn into_body(self, keepalive_interval: Duration) -> Body {
        Body::from_stream(stream::unfold(self, move |mut streamed| async move {
            let bytes = streamed.next(keepalive_interval).await?;
            Some((Ok::<_, Infallible>(bytes), streamed))
        }))
    }

    /// Waits for the next events, or for the time of a keep-alive. None after the last event.
    async fn next(&mut self, keepalive_interval: Duration) -> Option<Bytes> {
        let mut events = Events::default();
        if !std::mem::replace(&mut self.has_begun, true) {
            self.reply.begin(&mut events);
            return Some(events.into_text().into());
        }
        self.running.as_ref()?;
        // The state of a stream whose run panics is not used again, except to end it.
        let next = AssertUnwindSafe(timeout(keepalive_interval, self.advance(&mut events)));
        match next.catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Some(Bytes::from_static(sse::KEEPALIVE)),
            Err(_) => {
                tracing::error!("the run of a stream panicked");
                let error = ErrorBody::new(Code::InternalError, "internal server error");
                self.fail(error.into(), &mut events);
            }
        }
        Some(events.into_text().into())
    }

    /// Waits until there are events.
    async fn advance(&mut self, events: &mut Events) {
        while events.is_empty() {
            let Some(running) = &mut self.running else { return };
            let Some(first) = running.next().await else {
                let error = ErrorBody::new(Code::InternalError, "the run ended without an answer");
                return self.fail(error.into(), events);
            };
            let (mut new, mut next) = (String::new(), Some(first));
            while let Some(chunk) = next {
                let added = self.data.as_mut().map_or(Ok(()), |data| data.add(&chunk, &mut new));
                if chunk.is_end() || added.is_err() {
                    return self.finish(chunk, new, events);
                }
                next = self.running.as_mut().and_then(Running::take);
            }
            self.send(&new, events);
        }
    }

    fn send(&mut self, new: &str, events: &mut Events) {
        if !new.is_empty() {
            self.reply.text(new, events);
        }
    }

    /// Ends the stream with its last chunk, or with one that contradicts what was sent. `new` was not sent yet.
    fn finish(&mut self, chunk: Chunk, mut new: String, events: &mut Events) {
        let error = match chunk {
            Chunk::Final { mut meta, data, usage, warnings, .. } => {
                meta.runtime.usage = usage;
                let text = data.to_json();
                match self.complete(&text, &data, &mut new) {
                    Ok(()) => {
                        self.running = None;
                        self.send(&new, events);
                        let answer = Answer { text: &text, meta: &meta, warnings: &warnings };
                        return self.reply.end(&answer, events);
                    }
                    Err(error) => error,
                }
            }
            Chunk::Error { error, .. } => {
                self.send(&new, events);
                *error
            }
            _ => corrected(),
        };
        self.fail(error.into(), events);
    }

    /// Adds the rest of the text, and checks the data.
    fn complete(&mut self, text: &str, data: &Value, new: &mut String) -> Result<(), ErrorBody> {
        match &mut self.data {
            Some(sent) => sent.finish(text, new).map_err(|Corrected| corrected())?,
            None => new.push_str(text),
        }
        self.format.check(data)
    }

    fn fail(&mut self, error: OpenAiError, events: &mut Events) {
        self.running = None; // this also cancels the call to the provider
        self.reply.fail(&error, events);
    }
}

impl Running {
    /// Returns the next chunk if it is available.
    fn take(&mut self) -> Option<Chunk> {
        self.chunks.next().now_or_never().flatten()
    }

    /// Waits for the next chunk. During a shutdown it is the last one.
    async fn next(&mut self) -> Option<Chunk> {
        tokio::select! {
            chunk = self.chunks.next() => return chunk,
            () = self.app.guard.drain.over.cancelled(), if self.cancellation.reason().is_none() => {
                self.cancellation.cancel(CancelReason::Shutdown);
            }
        }
        self.chunks.next().await
    }
}

fn corrected() -> ErrorBody {
    ErrorBody::new(
        Code::OutputSchemaViolation,
        "the model corrected a value of its answer that was sent already",
    )
    .suggest("Send the request again, or without `stream`: then only the complete answer is sent.")
}
