//! Routes for older clients.

use axum::{
    body::Bytes,
    extract::{Request, State},
    response::Response,
};

use super::{extract::Name, modules};
use crate::{
    deliver,
    error::ApiError,
    openapi::{Refused, RunFailed},
    request::{self, RunBody},
    state::{App, Caller},
};

/// Runs a module and returns one envelope. Accepts `{module, args | input, provider?, model?}`.
#[utoipa::path(
    post,
    path = "/run",
    operation_id = "run",
    tag = "older clients",
    request_body(content = ref("#/components/schemas/RunRequest")),
    responses(
        (status = 200, description = "The envelope", body = ref("#/components/schemas/Envelope")),
        RunFailed,
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let parse = |body: Bytes, lease| Ok::<_, ApiError>((RunBody::parse(&body)?, lease));
    let (mut body, _lease) = request::read(&app, &caller.client, &parts.headers, body, parse).await?;
    app.own(&mut body.options, &caller);
    let module = app.load(&body.module).await?;
    Ok(deliver::run_to_response(&app, &module, body.input, body.options, body.bytes).await)
}

/// Lists the modules, as `GET /v1/modules` does.
#[utoipa::path(
    get,
    path = "/modules",
    operation_id = "listModulesOlder",
    tag = "older clients",
    responses(
        (status = 200, description = "The modules", body = ref("#/components/schemas/ModuleList")),
        Refused,
    )
)]
pub(crate) async fn list(app: State<App>) -> Response {
    modules::list(app).await
}

/// Describes a module, as `GET /v1/modules/{name}` does.
#[utoipa::path(
    get,
    path = "/modules/{name}",
    operation_id = "showModuleOlder",
    tag = "older clients",
    params(("name" = String, Path, description = "The name of the module")),
    responses(
        (status = 200, description = "The module", body = ref("#/components/schemas/Module")),
        RunFailed,
    )
)]
pub(crate) async fn show(app: State<App>, name: Name) -> Result<Response, ApiError> {
    modules::show(app, name).await
}
