//! From what is asked to how it is answered: one envelope, a stream, or a session to look at later.

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
    execute_request::ExecuteRequest,
    follow::{begin, follow},
    negotiate::Delivery,
    request::Options,
    state::App,
    timing::{self, Timing},
    transport::Wire,
};

/// Tells of a fallback (docs/spec/streaming.md).
const WARNING: HeaderName = HeaderName::from_static("x-cognitive-warning");
/// What it says where a stream could not be resumed.
const AFRESH: &str = "SESSION_AFRESH; fallback=new_stream; reason=not_resumable";

/// Answers an execute request.
///
/// # Errors
/// What is known before the provider is asked (ruling R54).
pub(crate) async fn deliver(
    app: &App,
    order: ExecuteRequest,
    delivery: Delivery,
) -> Result<Response, ApiError> {
    if order.body.options.detach && order.body.recovery.is_none() {
        return detached(app, order).await;
    }
    match (delivery, &order.body.recovery) {
        (Delivery::Stream(wire), _) => stream(app, order, wire).await,
        (_, Some(_)) => stream(app, order, Wire::Sse).await,
        _ => Ok(whole(app, order, delivery).await),
    }
}

/// One envelope.
async fn whole(app: &App, order: ExecuteRequest, delivery: Delivery) -> Response {
    let ExecuteRequest { module, body, files: _files, .. } = order;
    let mut options = body.options;
    options.run.warnings.extend(delivery.warning());
    let input = RunInput::Json(body.input.unwrap_or_else(Value::null));
    let mut response = answered(app, &module, input, options, body.bytes).await;
    if let Some(text) = delivery.warning_header() {
        response.headers_mut().insert(WARNING, HeaderValue::from_static(text));
    }
    response
}

/// Runs a module and answers with its envelope. `bytes` is the size of the request.
pub(crate) async fn answered(
    app: &App,
    module: &Arc<Module>,
    input: RunInput,
    options: Options,
    bytes: usize,
) -> Response {
    let (envelope, waited) = timing::waiting(run(app, module, input, options, bytes)).await;
    let mut response = answer::envelope(&envelope);
    response.extensions_mut().insert(Timing::Waiting(waited));
    response
}

/// Runs a module to its envelope, which is E2010 where the server shuts down before the run ends. `bytes` is the size
/// of the request.
pub(crate) async fn run(
    app: &App,
    module: &Arc<Module>,
    input: RunInput,
    options: Options,
    bytes: usize,
) -> Envelope {
    let stop = options.run.stop.clone();
    let (runtime, module) = (app.runtime.clone(), Arc::clone(module));
    let started = app.offload.run(bytes, move || runtime.start(&module, input, options.run));
    let mut answer = match started.await {
        Ok(answer) => pin!(answer),
        Err(refused) => return *refused,
    };
    tokio::select! {
        envelope = &mut answer => return envelope,
        () = app.guard.drain.over() => stop.now(CancelReason::Shutdown),
    }
    answer.await
}

async fn stream(app: &App, order: ExecuteRequest, wire: Wire) -> Result<Response, ApiError> {
    let followed = follow(app, order).await?;
    let mut response = wire.response(followed.follower, &app.settings);
    if followed.is_afresh {
        response.headers_mut().insert(WARNING, HeaderValue::from_static(AFRESH));
    }
    Ok(response)
}

async fn detached(app: &App, order: ExecuteRequest) -> Result<Response, ApiError> {
    let session = begin(app, order).await?;
    let accepted = Accepted(session.id());
    let mut response = answer::json(StatusCode::ACCEPTED, &accepted);
    if let Ok(place) = HeaderValue::from_str(&accepted.events_url()) {
        response.headers_mut().insert(axum::http::header::LOCATION, place);
    }
    Ok(response)
}

/// What a caller who does not wait is told: where to look.
struct Accepted<'a>(&'a str);

impl Accepted<'_> {
    fn events_url(&self) -> String {
        format!("/v1/sessions/{}/events", self.0)
    }
}

impl ToJson for Accepted<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("session_id", self.0);
            w.field("events_url", &self.events_url());
        });
    }
}
