//! The route for labels of runs.

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use cog_json::Value;
use cog_run::{ModuleRef, feedback::Feedback};
use cog_spec::Code;

use crate::{
    answer,
    error::ApiError,
    guard::Client,
    openapi::Refused,
    request,
    state::{App, Name, for_client},
};

/// The maximum number of characters of an id in a message.
const MAX_SHOWN: usize = 60;

/// Says whether the answer of a run was right.
///
/// A streamed run is named by its session, one envelope by its `meta.trace_id`, and a reply of OpenAI's or Anthropic's interface by its
/// `id`. The last label of a run counts, and the earlier ones are kept. Repeating the last label changes nothing.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/feedback",
    operation_id = "sendFeedback",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session, the `meta.trace_id` of the envelope, the `X-Request-Id` of the request, or the `id` of a reply of OpenAI's or Anthropic's interface")),
    request_body(content((ref("#/components/schemas/Feedback") = "application/json"))),
    responses(
        (status = 200, description = "The label is stored", body = ref("#/components/schemas/FeedbackReceipt")),
        (status = 413, description = "E1005: the corrected answer or the note is too large", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
    request: Request,
) -> Result<Response, ApiError> {
    // Before the body is read: each request reads the log, which is more than most requests cost.
    app.guard.feedback.check(&client)?;
    let Some(records) = app.records.clone() else { return Err(not_logged()) };
    let (parts, body) = request.into_parts();
    let feedback = request::read(&app, &client, &parts.headers, body, |body: Bytes, _| {
        let value = Value::parse_bytes(&body).map_err(|error| {
            ApiError::new(Code::ParseError, format!("the body is not JSON: {error}"))
                .with_status(StatusCode::BAD_REQUEST)
        })?;
        Ok::<_, ApiError>(Feedback::read(value.node())?)
    })
    .await?;
    let runtime = app.runtime.clone();
    let owner = client.owner();
    let sought = id.clone();
    let stored = app.offload.run(usize::MAX, move || {
        records.label(&owner, &sought, feedback, &|module, feedback| {
            // Only a correction needs the module, which may be gone.
            match feedback.data {
                Some(_) => feedback.check(&*runtime.load(ModuleRef::Name(module)).map_err(for_client)?),
                None => Ok(()),
            }
        })
    });
    let receipt = stored.await?.ok_or_else(|| unknown(&id))?;
    if receipt.is_new {
        app.guard.metrics.labelled(&receipt.module, receipt.label);
    }
    Ok(answer::json(StatusCode::OK, &receipt))
}

fn unknown(id: &str) -> ApiError {
    let id: String = id.chars().take(MAX_SHOWN).collect();
    ApiError::new(Code::InvalidReference, format!("no run found with the id `{}`", id.escape_debug()))
        .suggest("Name your run by its session_id, by the meta.trace_id of its envelope, or by the id of its reply, after it has ended. Old runs leave the log.")
        .with_status(StatusCode::NOT_FOUND)
}

fn not_logged() -> ApiError {
    ApiError::new(Code::InvalidReference, "this server does not log runs, so they cannot be labelled")
        .suggest("The operator can set logs.server (COG_LOGS_SERVER=true).")
        .with_status(StatusCode::NOT_FOUND)
}
