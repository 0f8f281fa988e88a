//! Runs the module that a request names as its model, and returns one answer or a stream.

use std::{
    any::Any,
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode},
    response::Response,
};
use cog_json::{ToJson as _, Value, Writer};
use cog_run::{CancelReason, Cancellation, ChunkStream};
use cog_spec::{Chunk, ChunkType, Code, Envelope, ErrorBody, Outcome, Warning, WarningCode};
use futures_util::{FutureExt as _, stream};
use serde_json::json;
use tokio::time::timeout;

use super::{
    Answer, Events, Head, Reply, RequestError, Run,
    anthropic::MessagesReply,
    data_text::{CorrectedData, DataText, Live},
    messages::{self, ModuleInput},
    model_id,
    reply::{ChatReply, ResponsesReply},
    request::{Api, ParsedRequest, ResponseFormat},
};
use crate::{
    answer, deliver,
    guard::{BodyLease, request_id},
    media::now,
    request::{self, Options},
    state::{App, Caller},
    timing::{self, Timing},
    transport::{KEEPALIVE, Wire},
};

/// `POST /v1/chat/completions`.
pub(super) async fn complete_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, RequestError> {
    respond(Api::Chat, &app, caller, request).await
}

/// `POST /v1/responses`.
pub(super) async fn create_response(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, RequestError> {
    respond(Api::Responses, &app, caller, request).await
}

/// `POST /v1/messages`.
pub(super) async fn create_message(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let id = request_id(request.extensions());
    as_message(respond(Api::Messages, &app, caller, request).await, &id)
}

/// `POST /v1/messages/count_tokens`: the tokens of the request to the module's model. No model is called.
pub(super) async fn count_tokens(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let id = request_id(request.extensions());
    as_message(count(&app, caller, request).await, &id)
}

async fn count(app: &App, caller: Caller, request: Request) -> Result<Response, RequestError> {
    let (run, _) = read(Api::Messages, app, caller, request).await?;
    let Run { module, input, options, lease: _lease, .. } = run;
    let input_tokens = app.runtime.count(&module, input, options.run).await?;
    Ok(answer::json(StatusCode::OK, &json!({ "input_tokens": input_tokens })))
}

/// Returns a response as Anthropic's clients read it: with their form of errors, and the header whose id their SDKs show.
fn as_message(response: Result<Response, RequestError>, id: &str) -> Response {
    let mut response = response.unwrap_or_else(|error| error.into_response_of(Api::Messages));
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert("request-id", id);
    }
    response
}

async fn respond(api: Api, app: &App, caller: Caller, request: Request) -> Result<Response, RequestError> {
    let (run, is_stream) = read(api, app, caller, request).await?;
    match is_stream {
        true => respond_with_stream(app, run).await,
        false => complete(app, run).await,
    }
}

/// Reads a request. Its text and its tree are freed before the run.
async fn read(api: Api, app: &App, caller: Caller, request: Request) -> Result<(Run, bool), RequestError> {
    let (parts, body) = request.into_parts();
    let is_lenient = app.settings.openai.is_lenient;
    let (mut parsed, bytes, lease) =
        request::read(app, &caller.client, &parts.headers, body, move |body: Bytes, lease| {
            let parsed = ParsedRequest::parse(api, &body, is_lenient)?;
            Ok::<_, RequestError>((parsed, body.len(), lease))
        })
        .await?;
    let id = request_id(&parts.extensions);
    drop(parts); // and with them the memory that the request was read into
    let module = app.load(&parsed.module).await?;
    let mut options = std::mem::take(&mut parsed.options);
    let format = std::mem::take(&mut parsed.format);
    format.check_module(&module)?;
    options.context.warnings.extend(without_effect(&parsed.sampling));
    let model = model_id(&parsed.module);
    let include_usage = parsed.include_usage;
    let is_stream = parsed.stream;
    let loaded = Arc::clone(&module);
    let place = app.settings.openai.system.clone();
    let ModuleInput { input, instructions } = app
        .offload
        .run(bytes, move || messages::input(parsed.messages()?, api.messages_name(), &loaded, &place))
        .await?;
    if instructions.is_some() {
        let message =
            "The model received the system messages as the caller's words, after the module's own prompt.";
        options.context.warnings.push(Warning::new(WarningCode::RequestAdapted, message));
        options.run.instructions = instructions;
    }
    options.set_caller(app, &caller);
    let head = Head { id, created: seconds(), model, include_usage };
    let reply: Box<dyn Reply> = match api {
        Api::Chat => Box::new(ChatReply(head)),
        Api::Responses => Box::new(ResponsesReply::new(head)),
        Api::Messages => Box::new(MessagesReply(head)),
    };
    Ok((Run { module, input, options, format, reply, bytes, client: caller.client, lease }, is_stream))
}

/// Returns the warning about parameters that have no effect.
fn without_effect(names: &[&str]) -> Option<Warning> {
    let (last, _) = names.split_last()?;
    let names: String =
        names.iter().map(|name| format!("`{name}`{}", if name == last { "" } else { ", " })).collect();
    let message =
        format!("{names} had no effect: the module and the operator choose how the model is called.");
    Some(Warning::new(WarningCode::RequestAdapted, message))
}

/// Responds with one answer.
async fn complete(app: &App, run: Run) -> Result<Response, RequestError> {
    let Run { module, input, options, format, reply, bytes, lease: _lease, .. } = run;
    let running = deliver::run(app, &module, input, options, bytes);
    let (envelope, waited) = timing::measure_waiting(running).await;
    let Outcome::Success { data } = &envelope.outcome else {
        return Err(RequestError::from(Box::new(envelope)));
    };
    format.check(data)?;
    let Envelope { meta, warnings, .. } = &envelope;
    let mut text = String::new();
    let answer = Answer { text: &data.to_json(), meta, warnings };
    reply.complete(&answer, &mut Writer::compact(&mut text));
    text.push('\n');
    let mut response = answer::written(StatusCode::OK, text);
    answer::mark(&mut response, meta);
    response.extensions_mut().insert(Timing::Waiting(waited));
    Ok(response)
}

/// Returns the seconds since 1970.
fn seconds() -> u64 {
    now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

// The stream of a run as server-sent events: what is certain of the data, while they arrive (docs/openai.md).

/// Responds with a stream. It begins when the media of the input are ready, so that their errors have a status (ruling R54).
///
/// # Errors
/// Errors that are known before the model is called.
async fn respond_with_stream(app: &App, run: Run) -> Result<Response, RequestError> {
    let slot = app.slot(&run.client)?;
    let Run { module, input, mut options, format, reply, bytes, lease, .. } = run;
    // OpenAI's clients append text, and have no form for a value that replaces another.
    options.run.chunk_type = Some(ChunkType::Delta);
    let cancellation = options.run.cancellation.clone();
    let live = Live::from_module(&module);
    let runtime = app.runtime.clone();
    options.context.is_folded = live.is_none();
    let started = app.offload.run(bytes, move || {
        let Options { run, context, .. } = *options;
        runtime.prepare(&module, input, run, context)
    });
    let chunks = prepare(app, started.await?, &cancellation).await?;
    let data = live.map(DataText::new);
    let running = Running { chunks, cancellation, app: app.clone(), _slot: slot, _lease: lease };
    let streamed = EventBody { running: Some(running), data, format, reply, has_begun: false };
    Ok(Wire::Sse.response_of(streamed.into_body(app.settings.keepalive_interval)))
}

/// Waits until the media of the input are ready.
async fn prepare(
    app: &App,
    chunks: ChunkStream,
    cancellation: &Cancellation,
) -> Result<ChunkStream, RequestError> {
    let mut preparing = pin!(chunks.prepared());
    tokio::select! {
        prepared = &mut preparing => return Ok(prepared?),
        () = app.guard.drain.over.cancelled() => cancellation.cancel(CancelReason::Shutdown),
    }
    Ok(preparing.await?)
}

/// A stream. Dropping it cancels the call to the provider.
struct EventBody {
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

impl EventBody {
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
            Ok(Err(_)) => return Some(Bytes::from_static(KEEPALIVE)),
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
            let mut new = String::new();
            let mut next = Some(first);
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
            Some(sent) => sent.finish(text, new).map_err(|CorrectedData| corrected())?,
            None => new.push_str(text),
        }
        self.format.check(data)
    }

    fn fail(&mut self, error: RequestError, events: &mut Events) {
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
