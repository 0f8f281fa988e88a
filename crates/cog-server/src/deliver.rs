//! Runs a request and responds with one envelope, a stream, or the URL of a session.

use std::{pin::pin, sync::Arc};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use cog_json::{ToJson, Value, Writer};
use cog_module::Module;
use cog_run::{CancelReason, RunInput};
use cog_spec::Envelope;

use crate::{
    answer,
    error::ApiError,
    follow::{Begin, ExecuteRequest, begin, follow},
    negotiate::Delivery,
    request::Options,
    state::App,
    timing::{self, Timing},
    transport::Wire,
};

/// The header that reports a fallback (docs/spec/streaming.md).
const WARNING: HeaderName = HeaderName::from_static("x-cognitive-warning");
/// Its value where a stream could not be resumed and a new run started.
const NEW_SESSION: &str = "SESSION_NEW; fallback=new_stream; reason=not_resumable";

/// Responds to an execute request.
///
/// # Errors
/// Errors that are known before the model is called (ruling R54).
pub(crate) async fn deliver(
    app: &App,
    request: ExecuteRequest,
    delivery: Delivery,
) -> Result<Response, ApiError> {
    if request.body.options.detach && request.body.recovery.is_none() {
        return detached(app, request).await;
    }
    match (delivery, &request.body.recovery) {
        (Delivery::Stream(wire), _) => stream(app, request, wire).await,
        // Only a stream can be resumed, whatever the module's mode is.
        (_, Some(_)) => stream(app, request, Wire::Sse).await,
        _ => Ok(envelope(app, request, delivery).await),
    }
}

/// Responds with one envelope.
async fn envelope(app: &App, request: ExecuteRequest, delivery: Delivery) -> Response {
    let ExecuteRequest { module, body, files: _files, lease: _lease, .. } = request;
    let mut options = body.options;
    options.context.warnings.extend(delivery.warning());
    let input = RunInput::Json(body.input.unwrap_or_else(Value::null));
    let mut response = run_to_response(app, &module, input, options, body.bytes).await;
    if let Some(text) = delivery.warning_header() {
        response.headers_mut().insert(WARNING, HeaderValue::from_static(text));
    }
    response
}

/// Runs a module and responds with its envelope. `bytes` is the size of the request.
pub(crate) async fn run_to_response(
    app: &App,
    module: &Arc<Module>,
    input: RunInput,
    options: Box<Options>,
    bytes: usize,
) -> Response {
    let (envelope, waited) = timing::measure_waiting(run(app, module, input, options, bytes)).await;
    let mut response = answer::envelope(&envelope);
    response.extensions_mut().insert(Timing::Waiting(waited));
    response
}

/// Runs a module and returns its envelope: E2010 where the server shuts down before the run ends. `bytes` is the size
/// of the request.
pub(crate) async fn run(
    app: &App,
    module: &Arc<Module>,
    input: RunInput,
    options: Box<Options>,
    bytes: usize,
) -> Envelope {
    let cancellation = options.run.cancellation.clone();
    let runtime = app.runtime.clone();
    let module = Arc::clone(module);
    let Options { run, mut context, .. } = *options;
    context.is_folded = true;
    let started = app.offload.run(bytes, move || runtime.prepare(&module, input, run, context));
    let mut answer = match started.await {
        Ok(chunks) => pin!(chunks.fold()),
        Err(refused) => return *refused,
    };
    // After the cancellation, the run still ends by itself, with the envelope of a shutdown.
    tokio::select! {
        envelope = &mut answer => return envelope,
        () = app.guard.drain.over.cancelled() => cancellation.cancel(CancelReason::Shutdown),
    }
    answer.await
}

async fn stream(app: &App, request: ExecuteRequest, wire: Wire) -> Result<Response, ApiError> {
    let subscribed = follow(app, request, Begin::WithMedia).await?;
    let mut response = wire.response(subscribed.subscriber, &app.settings);
    if subscribed.is_new {
        response.headers_mut().insert(WARNING, HeaderValue::from_static(NEW_SESSION));
    }
    Ok(response)
}

async fn detached(app: &App, request: ExecuteRequest) -> Result<Response, ApiError> {
    let session = begin(app, request, Begin::AtOnce).await?;
    let accepted = DetachedRun(session.id());
    let mut response = answer::json(StatusCode::ACCEPTED, &accepted);
    if let Ok(location) = HeaderValue::from_str(&accepted.events_url()) {
        response.headers_mut().insert(axum::http::header::LOCATION, location);
    }
    Ok(response)
}

/// The response to a detached run.
struct DetachedRun<'a>(&'a str);

impl DetachedRun<'_> {
    fn events_url(&self) -> String {
        format!("/v1/sessions/{}/events", self.0)
    }
}

/// Written by hand: the URL is computed.
impl ToJson for DetachedRun<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("session_id", self.0);
            w.field("events_url", &self.events_url());
        });
    }
}
