use axum::{extract::State, http::StatusCode, response::Response};
use cog_json::{Array, ToJson, Writer};

use super::{
    about::{Entry, Shown},
    extract::Name,
};
use crate::{
    answer,
    error::ApiError,
    offload,
    openapi::{Refused, RunFailed},
    state::App,
};

/// Lists the modules.
#[utoipa::path(
    get,
    path = "/v1/modules",
    operation_id = "listModules",
    tag = "modules",
    responses(
        (status = 200, description = "The modules, sorted by name", body = ref("#/components/schemas/ModuleList")),
        Refused,
    )
)]
pub(crate) async fn list(State(app): State<App>) -> Response {
    let runtime = app.runtime.clone();
    let listed = offload::blocking(move || runtime.finder().list()).await;
    answer::json(StatusCode::OK, &List(&listed.iter().map(Entry).collect::<Vec<_>>()))
}

/// Describes a module with its schemas.
#[utoipa::path(
    get,
    path = "/v1/modules/{name}",
    operation_id = "showModule",
    tag = "modules",
    params(("name" = String, Path, description = "The name of the module")),
    responses(
        (status = 200, description = "The module", body = ref("#/components/schemas/Module")),
        RunFailed,
    )
)]
pub(crate) async fn show(State(app): State<App>, Name(name): Name) -> Result<Response, ApiError> {
    let module = app.load(&name).await?;
    Ok(answer::json(StatusCode::OK, &Shown(&module)))
}

struct List<'a>(&'a [Entry<'a>]);

/// Written by hand, as its entries are.
impl ToJson for List<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("modules", &Array(self.0));
        });
    }
}
