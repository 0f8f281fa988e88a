//! Runs the module that a request names as its model, and returns one answer or a stream.

use std::{sync::Arc, time::UNIX_EPOCH};

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use cog_json::{ToJson as _, Writer};
use cog_spec::{Envelope, Outcome};

use super::{
    Answer, Head, Reply, Run,
    chat::ChatReply,
    error::OpenAiError,
    messages, model_id,
    request::{Api, ParsedRequest},
    responses::ResponsesReply,
    stream,
};
use crate::{
    answer, deliver,
    guard::request_id,
    media::now,
    request,
    state::{App, Caller},
    timing::{self, Timing},
};

/// `POST /v1/chat/completions`.
pub(super) async fn complete_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, OpenAiError> {
    respond(Api::Chat, &app, caller, request).await
}

/// `POST /v1/responses`.
pub(super) async fn create_response(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, OpenAiError> {
    respond(Api::Responses, &app, caller, request).await
}

async fn respond(api: Api, app: &App, caller: Caller, request: Request) -> Result<Response, OpenAiError> {
    let (run, is_stream) = read(api, app, caller, request).await?;
    match is_stream {
        true => stream::respond(app, run).await,
        false => complete(app, run).await,
    }
}

/// Reads a request. Its text and its tree are freed before the run.
async fn read(api: Api, app: &App, caller: Caller, request: Request) -> Result<(Run, bool), OpenAiError> {
    let (parts, body) = request.into_parts();
    let parse = move |body: Bytes, lease| {
        let parsed = ParsedRequest::parse(api, &body)?;
        Ok::<_, OpenAiError>((parsed, body.len(), lease))
    };
    let (mut parsed, bytes, lease) = request::read(app, &caller.client, &parts.headers, body, parse).await?;
    let id = request_id(&parts.extensions);
    drop(parts); // and with them the memory that the request was read into
    let module = app.load(&parsed.module).await?;
    let mut options = std::mem::take(&mut parsed.options);
    let format = std::mem::take(&mut parsed.format);
    let (model, include_usage) = (model_id(&parsed.module), parsed.include_usage);
    let (is_stream, loaded) = (parsed.stream, Arc::clone(&module));
    let input = move || messages::input(parsed.messages()?, api.messages_name(), &loaded);
    let input = app.offload.run(bytes, input).await?;
    app.own(&mut options, &caller);
    let head = Head { id, created: seconds(), model, include_usage };
    let reply: Box<dyn Reply> = match api {
        Api::Chat => Box::new(ChatReply(head)),
        Api::Responses => Box::new(ResponsesReply::new(head)),
    };
    Ok((Run { module, input, options, format, reply, bytes, client: caller.client, lease }, is_stream))
}

/// Responds with one answer.
async fn complete(app: &App, run: Run) -> Result<Response, OpenAiError> {
    let Run { module, input, options, format, reply, bytes, lease: _lease, .. } = run;
    let running = deliver::run(app, &module, input, options, bytes);
    let (envelope, waited) = timing::measure_waiting(running).await;
    let Outcome::Success { data } = &envelope.outcome else {
        return Err(OpenAiError::from(Box::new(envelope)));
    };
    format.check(data)?;
    let Envelope { meta, warnings, .. } = &envelope;
    let mut text = String::new();
    let answer = Answer { text: &data.to_json(), meta, warnings };
    reply.complete(&answer, &mut Writer::compact(&mut text));
    text.push('\n');
    let mut response = answer::written(StatusCode::OK, text);
    response.extensions_mut().insert(Timing::Waiting(waited));
    Ok(response)
}

/// Returns the seconds since 1970.
fn seconds() -> u64 {
    now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
