//! Subscribers of a request's session: of a new one, or of one that is resumed (docs/spec/streaming.md).

use std::{pin::pin, sync::Arc};

use cog_module::Module;
use cog_run::{
    CancelReason, RunOptions,
    sessions::{ResumeError, ResumeFrom, RunSpec, Session, SessionOptions, StartFrom, Subscriber},
};
use cog_spec::{Code, Warning, WarningCode};

use crate::{
    error::ApiError,
    guard::{BodyLease, Client},
    media::UploadLease,
    request::{ExecuteBody, Options},
    state::{App, Caller},
};

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
