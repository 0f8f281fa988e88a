use axum::{
    body::Bytes,
    extract::{Request, State},
    response::Response,
};

use super::extract::Name;
use crate::{
    deliver::deliver,
    error::ApiError,
    execute_request::ExecuteRequest,
    negotiate::ResponsePreference,
    openapi::{Executed, ModeHeader, RecoveryHeaders, RunFailed},
    request::{self, ExecuteBody, Form},
    state::{App, Caller},
};

/// Runs a module. Returns one envelope, or a stream of chunks.
#[utoipa::path(
    post,
    path = "/v1/modules/{name}/execute",
    operation_id = "executeModule",
    tag = "run",
    params(
        ("name" = String, Path, description = "The name of the module"),
        ("response_mode" = Option<String>, Query, description = "One envelope or a stream", pattern = "^(sync|streaming)$"),
        ModeHeader,
        RecoveryHeaders,
    ),
    request_body(content(
        (ref("#/components/schemas/ExecuteRequest") = "application/json"),
        (ref("#/components/schemas/ExecuteForm") = "multipart/form-data"),
    )),
    responses(Executed, (status = 202, description = "The detached run has started", body = ref("#/components/schemas/Accepted")), RunFailed)
)]
pub(crate) async fn execute(
    State(app): State<App>,
    Name(name): Name,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let client = caller.client.clone();
    let recovery = request::recovery_from_headers(&parts.headers)?;
    let form = if request::is_form(&parts.headers) {
        // Boxed: the future of every run would be as large as that of a form.
        Box::pin(request::read_form(&app, &client, &parts.headers, body, recovery)).await?
    } else {
        let parse = move |body: Bytes, lease| {
            Ok::<_, ApiError>(Form::without_files(ExecuteBody::parse(&body, recovery)?, lease))
        };
        request::read(&app, &client, &parts.headers, body, parse).await?
    };
    let module = app.load(&name).await?;
    form.check_fields(&module)?;
    let Form { mut body, files, lease, .. } = form;
    app.own(&mut body.options, &caller);
    let preference =
        ResponsePreference { headers: &parts.headers, query: parts.uri.query(), options: &body.options };
    let delivery = preference.delivery(module.manifest.response.mode)?;
    drop(parts); // and with them the memory that the request was read into
    deliver(&app, ExecuteRequest { module, name, body, client, files, lease }, delivery).await
}
