//! `POST /v1/chat/completions`.

use std::time::UNIX_EPOCH;

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use cog_json::{Node, Value};
use cog_spec::{Code, Envelope, Outcome};

use super::{
    completion::Completion,
    error::OpenAiError,
    messages,
    names::{model_id, module_name},
    parameters::{self, text},
    response_format::ResponseFormat,
};
use crate::{
    answer, deliver,
    guard::request_id,
    media::time::now,
    request::{self, MediaOutput, Options},
    state::{App, Caller},
};

/// Runs the module that the request names as its model.
pub(super) async fn complete(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, OpenAiError> {
    let (parts, body) = request.into_parts();
    let (body, _lease) = request::read(&parts.headers, body, &app.guard.bodies, &caller.client).await?;
    let bytes = body.len();
    let request = app.offload.run(bytes, move || request::object(&body)).await?;
    let (model, format, mut options) = read(request.node())?;
    let module = app.load(model).await?;
    let input = messages::input(request.get("messages"), &module)?;
    app.own(&mut options, &caller);
    let envelope = deliver::run(&app, &module, input, options, bytes).await;
    let data = data(&envelope)?;
    format.check(data)?;
    let completion = Completion {
        id: &format!("chatcmpl-{}", request_id(&parts.extensions)),
        created: seconds(),
        model: &model_id(model),
        data,
        meta: &envelope.meta,
        warnings: &envelope.warnings,
    };
    Ok(answer::json(StatusCode::OK, &completion))
}

/// Reads what the request says beside its messages: the module, the format of the answer, and the options of the run.
fn read(request: Node<'_>) -> Result<(&str, ResponseFormat, Box<Options>), OpenAiError> {
    parameters::check(request)?;
    let Some(model) = text(request, "model")? else {
        return Err(OpenAiError::new(Code::MissingRequiredField, "model", "`model` is missing")
            .suggest("Name a module: GET /v1/models lists them."));
    };
    let format = ResponseFormat::read(request.get("response_format"))?;
    // An image is content of the answer: the client has no second request for it.
    let mut options = Box::new(Options { media: MediaOutput::Base64, ..Options::default() });
    parameters::set_options(request, &mut options.run)?;
    Ok((module_name(model), format, options))
}

/// Returns the data of a successful run.
fn data(envelope: &Envelope) -> Result<&Value, OpenAiError> {
    match &envelope.outcome {
        Outcome::Success { data } => Ok(data),
        Outcome::Failure { .. } => Err(OpenAiError::from(Box::new(envelope.clone()))),
    }
}

/// Returns the seconds since 1970.
fn seconds() -> u64 {
    now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
