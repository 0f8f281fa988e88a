//! From what is asked to a reader of its session: of one that begins, or of one that is resumed (docs/spec/streaming.md).

use cog_run::sessions::{After, ResumeError, ResumeFrom, RunSpec, Session, Start, Subscriber};
use cog_spec::{Code, Warning, WarningCode};

use crate::{
    error::ApiError, execute_request::ExecuteRequest, guard::Client, media::UploadLease, state::App,
};

/// A reader of a run.
pub(crate) struct Followed {
    pub(crate) follower: Subscriber,
    /// It reads from the beginning although it was to go on: what it was to go on from is gone, or is not right.
    pub(crate) is_afresh: bool,
}

/// A reader of the run that is asked for. A session that cannot be resumed is begun afresh where there is an input.
///
/// # Errors
/// What is known before the provider is asked; E4012 to E4014 where a session cannot be resumed.
pub(crate) async fn follow(app: &App, mut order: ExecuteRequest) -> Result<Followed, ApiError> {
    let Some((id, from)) = order.body.recovery.take() else {
        return Ok(Followed { follower: begin(app, order).await?.follow(After::Start), is_afresh: false });
    };
    let error = match resume_run(app, &id, &order, from).await? {
        Ok(follower) => return Ok(Followed { follower, is_afresh: false }),
        Err(error) => error,
    };
    let may_be_afresh = !matches!(error, ResumeError::Off | ResumeError::Refused(_));
    if order.body.input.is_none() || !may_be_afresh {
        return Err(error.into_envelope().into());
    }
    // The session may be there, and only what the client has of it not right: then all of it, from its first chunk.
    let follower = match resume_run(app, &id, &order, ResumeFrom::default()).await? {
        Ok(follower) => follower,
        Err(_) => {
            order.body.options.run.warnings.push(afresh());
            begin(app, order).await?.follow(After::Start)
        }
    };
    Ok(Followed { follower, is_afresh: true })
}

/// A reader of a session, from what the client has of it on.
///
/// # Errors
/// E4013 where there is no such session, E4014 where it has no such place.
pub(crate) async fn reread(
    app: &App,
    id: &str,
    client: &Client,
    from: Option<ResumeFrom>,
) -> Result<Subscriber, ApiError> {
    let follower = match from {
        Some(from) => resume(app, id, client, from).await?,
        None => {
            let slot = app.slot(client)?;
            let follower = app.sessions.follow(id, &client.owner(), After::Start);
            follower.map(|follower| follower.holding(Some(slot)))
        }
    };
    Ok(follower.map_err(ResumeError::into_envelope)?)
}

/// Begins a run in a session of its own.
///
/// # Errors
/// What is known before the provider is asked.
pub(crate) async fn begin(app: &App, mut order: ExecuteRequest) -> Result<Session, ApiError> {
    let slot = app.slot(&order.client)?;
    let Some(input) = order.body.input else {
        return Err(ApiError::new(Code::MissingRequiredField, "the body has no `input`"));
    };
    order.files.iter_mut().for_each(UploadLease::let_return);
    let slot = Box::new((slot, order.files));
    let detached = order.body.options.detach;
    let spec = RunSpec::new(order.name, input).options(order.body.options.run);
    let start = Start::new(order.client.owner()).detached(detached).slot(slot);
    let (sessions, runtime, module) = (app.sessions.clone(), app.runtime.clone(), order.module);
    let begun = app.offload.run(order.body.bytes, move || sessions.start(&runtime, &module, spec, start));
    Ok(begun.await?)
}

/// Goes on with a session of the module that is asked for; for another module it does not exist.
async fn resume_run(
    app: &App,
    id: &str,
    order: &ExecuteRequest,
    from: ResumeFrom,
) -> Result<Result<Subscriber, ResumeError>, ApiError> {
    let session = app.sessions.get(id, &order.client.owner());
    match session.is_some_and(|session| session.module != order.name) {
        true => Ok(Err(ResumeError::Unknown)),
        false => resume(app, id, &order.client, from).await,
    }
}

/// Goes on with a session; a fault where there is no place for one more stream.
async fn resume(
    app: &App,
    id: &str,
    client: &Client,
    from: ResumeFrom,
) -> Result<Result<Subscriber, ResumeError>, ApiError> {
    let slot = app.slot(client)?;
    Ok(app.sessions.resume(&app.runtime, id, &client.owner(), from, slot).await)
}

fn afresh() -> Warning {
    Warning {
        fallback_used: Some("new_stream".to_owned()),
        ..Warning::new(WarningCode::SessionAfresh, "The session to resume is gone: this is a new run.")
    }
}
