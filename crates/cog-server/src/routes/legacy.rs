//! Routes that are kept for older callers.

use axum::{
    extract::{Request, State},
    response::Response,
};

use super::{extract::Name, modules};
use crate::{
    deliver,
    fault::Fault,
    request::{self, RunBody},
    state::App,
};

/// Runs a module and answers with one envelope; `{module, args | input, provider?, model?}`.
#[utoipa::path(
    post,
    path = "/run",
    tag = "older callers",
    responses((status = 200, description = "The envelope"))
)]
pub(crate) async fn run(State(app): State<App>, request: Request) -> Result<Response, Fault> {
    let (parts, body) = request.into_parts();
    let body = request::read(&parts.headers, body, &app.settings).await?;
    let body = RunBody::parse(&body)?;
    let module = app.runtime.load_name(&body.module)?;
    Ok(deliver::answered(&app, &module, body.input, body.options).await)
}

/// Every module, as `GET /v1/modules` lists them.
#[utoipa::path(
    get,
    path = "/modules",
    tag = "older callers",
    responses((status = 200, description = "The modules"))
)]
pub(crate) async fn list(app: State<App>) -> Response {
    modules::list(app).await
}

/// One module, as `GET /v1/modules/{name}` shows it.
#[utoipa::path(
    get,
    path = "/modules/{name}",
    tag = "older callers",
    params(("name" = String, Path, description = "The module's name")),
    responses((status = 200, description = "The module"))
)]
pub(crate) async fn show(app: State<App>, name: Name) -> Result<Response, Fault> {
    modules::show(app, name).await
}
