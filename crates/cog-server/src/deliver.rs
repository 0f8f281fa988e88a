//! Runs a request and responds with one envelope, a stream, or the URL of a session.

use std::{pin::pin, sync::Arc};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use cog_json::{ToJson, Value, Writer};
use cog_module::Module;
use cog_run::{
    CancelReason, RunInput, RunOptions,
    sessions::{ResumeError, ResumeFrom, RunSpec, Session, SessionOptions, StartFrom, Subscriber},
};
use cog_spec::{Code, Envelope, Warning, WarningCode};

use crate::{
    answer,
    error::ApiError,
    guard::{BodyLease, Client},
    media::UploadLease,
    negotiate::Delivery,
    request::{ExecuteBody, Options},
    state::{App, Caller},
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

// Subscribers of a request's session: of a new one, or of one that is resumed (docs/spec/streaming.md).

/// A subscriber of a run.
pub(crate) struct Subscription {
    pub(crate) subscriber: Subscriber,
    /// The session could not be resumed from the requested position: this is a new run.
    pub(crate) is_new: bool,
}

/// When the response to a new run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// When the media of the input are ready, so that their errors have a status (ruling R54).
    WithMedia,
    /// At once.
    AtOnce,
}

/// Subscribes to the requested run. Where the session cannot be resumed and the request has an input, a new run starts
/// (ruling R71).
///
/// # Errors
/// Errors that are known before the model is called; E4012 to E4014 where the session cannot be resumed.
pub(crate) async fn follow(
    app: &App,
    mut request: ExecuteRequest,
    when: Begin,
) -> Result<Subscription, ApiError> {
    let Some((id, from)) = request.body.recovery.take() else {
        let subscriber = begin(app, request, when).await?.follow(StartFrom::Beginning);
        return Ok(Subscription { subscriber, is_new: false });
    };
    let error = match resume_run(app, &id, &request, from).await? {
        Ok(subscriber) => return Ok(Subscription { subscriber, is_new: false }),
        Err(error) => error,
    };
    // A server without recovery, and a client without access, would fail in the same way again.
    let may_start_again = !matches!(error, ResumeError::Disabled | ResumeError::Refused(_));
    if request.body.input.is_none() || !may_start_again {
        return Err(error.into_envelope().into());
    }
    request.body.options.context.warnings.push(new_session_warning(&error));
    Ok(Subscription {
        subscriber: begin(app, request, when).await?.follow(StartFrom::Beginning),
        is_new: true,
    })
}

/// Subscribes to a session, from the client's position on.
///
/// # Errors
/// E4013 for an unknown session, E4014 for an invalid position.
pub(crate) async fn resubscribe(
    app: &App,
    id: &str,
    caller: &Caller,
    from: Option<ResumeFrom>,
) -> Result<Subscriber, ApiError> {
    let client = &caller.client;
    let subscriber = match from {
        Some(from) => {
            let mut options = Options::default();
            options.set_caller(app, caller);
            resume(app, id, client, from, &options.run).await?
        }
        None => {
            let slot = app.slot(client)?;
            adopt(app, id, client).await?;
            let subscriber = app.sessions.follow(id, &client.owner(), StartFrom::Beginning);
            subscriber.map(|subscriber| subscriber.with_permit(Some(slot)))
        }
    };
    Ok(subscriber.map_err(ResumeError::into_envelope)?)
}

/// Starts a run in a new session.
///
/// # Errors
/// Errors that are known before the model is called.
pub(crate) async fn begin(app: &App, mut request: ExecuteRequest, when: Begin) -> Result<Session, ApiError> {
    let slot = app.slot(&request.client)?;
    let Some(input) = request.body.input else {
        return Err(ApiError::new(Code::MissingRequiredField, "missing field `input`"));
    };
    request.files.iter_mut().for_each(UploadLease::retain);
    // The run holds them, not the response: it continues when the client disconnects.
    let slot = Box::new((slot, request.files, request.lease));
    let detached = request.body.options.detach;
    let cancellation = request.body.options.run.cancellation.clone();
    let Options { run, context, .. } = *request.body.options;
    let spec = RunSpec { module: request.name, input, options: run, context };
    let options = SessionOptions { owner: request.client.owner(), detached, permit: slot };
    let sessions = app.sessions.clone();
    let runtime = app.runtime.clone();
    let module = request.module;
    let checked =
        app.offload.run(request.body.bytes, move || sessions.prepare(&runtime, &module, spec, options));
    let session = checked.await?;
    if when == Begin::AtOnce {
        return Ok(session.start());
    }
    let mut opening = pin!(session.open());
    tokio::select! {
        opened = &mut opening => return Ok(opened?),
        () = app.guard.drain.over.cancelled() => cancellation.cancel(CancelReason::Shutdown),
    }
    Ok(opening.await?)
}

/// Takes a session from another server, if it has it.
///
/// # Errors
/// E4001 if it is not known whether the session exists: a new run in its place would be paid again.
pub(crate) async fn adopt(app: &App, id: &str, client: &Client) -> Result<(), ApiError> {
    Ok(app.sessions.adopt(id, &client.owner()).await.map_err(ResumeError::into_envelope)?)
}

/// Resumes a session of the requested module. A session of another module counts as unknown.
async fn resume_run(
    app: &App,
    id: &str,
    request: &ExecuteRequest,
    from: ResumeFrom,
) -> Result<Result<Subscriber, ResumeError>, ApiError> {
    adopt(app, id, &request.client).await?;
    let session = app.sessions.get(id, &request.client.owner());
    match session.is_some_and(|session| session.module != request.name) {
        true => Ok(Err(ResumeError::Unknown)),
        false => resume(app, id, &request.client, from, &request.body.options.run).await,
    }
}

/// Resumes a session, under the budgets and the rules of its client; an error where no stream slot is free.
async fn resume(
    app: &App,
    id: &str,
    client: &Client,
    from: ResumeFrom,
    options: &RunOptions,
) -> Result<Result<Subscriber, ResumeError>, ApiError> {
    let slot = app.slot(client)?;
    adopt(app, id, client).await?;
    Ok(app.sessions.resume(&app.runtime, id, &client.owner(), from, options.clone(), slot).await)
}

fn new_session_warning(error: &ResumeError) -> Warning {
    let message = format!("This is a new run, because the session cannot be resumed: {error}.");
    Warning::new(WarningCode::SessionNew, message).with_fallback("new_stream")
}

/// A request to run a module.
pub(crate) struct ExecuteRequest {
    pub(crate) module: Arc<Module>,
    /// The name in the request's path.
    pub(crate) name: String,
    pub(crate) body: ExecuteBody,
    pub(crate) client: Client,
    /// The files of a form, stored until the run has ended.
    pub(crate) files: Vec<UploadLease>,
    /// The memory of the body, in use until the run has ended.
    pub(crate) lease: BodyLease,
}
