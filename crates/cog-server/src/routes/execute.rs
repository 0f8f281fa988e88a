use axum::{
    extract::{Request, State},
    response::Response,
};

use super::extract::Name;
use crate::{
    deliver::{Order, deliver},
    fault::Fault,
    guard::{Client, trace_id},
    negotiate::Wishes,
    request::{self, ExecuteBody},
    state::App,
};

/// Runs a module: one envelope, or its chunks as they come.
#[utoipa::path(
    post,
    path = "/v1/modules/{name}/execute",
    tag = "run",
    params(("name" = String, Path, description = "The module's name")),
    responses((status = 200, description = "The envelope, or a stream of chunks"))
)]
pub(crate) async fn execute(
    State(app): State<App>,
    Name(name): Name,
    client: Client,
    request: Request,
) -> Result<Response, Fault> {
    let (parts, body) = request.into_parts();
    let body = request::read(&parts.headers, body, &app.settings).await?;
    let mut body = ExecuteBody::parse(&body)?;
    if body.recovery.is_none() {
        body.recovery = request::of_headers(&parts.headers)?;
    }
    body.options.run.trace_id = trace_id(&parts.extensions);
    let module = app.runtime.load_name(&name)?;
    let wishes = Wishes { headers: &parts.headers, query: parts.uri.query(), options: &body.options };
    let delivery = wishes.delivery(module.manifest.response.mode)?;
    deliver(&app, Order { module, name, body, client }, delivery).await
}
