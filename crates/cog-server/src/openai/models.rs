//! The list of models: the modules.

use axum::{extract::State, http::StatusCode, response::Response};
use cog_json::{Array, ToJson, Writer};

use super::{
    error::OpenAiError,
    names::{model_id, module_name},
};
use crate::{answer, error::ApiError, offload, routes::extract::Name, state::App};

/// Lists the modules as models.
pub(super) async fn list(State(app): State<App>) -> Response {
    let runtime = app.runtime.clone();
    let mut names: Vec<String> =
        offload::blocking(move || runtime.finder().origins().into_iter().map(|(name, _)| name).collect())
            .await;
    names.sort_unstable();
    answer::json(StatusCode::OK, &List(&names.iter().map(|name| Model(name)).collect::<Vec<_>>()))
}

/// Describes a module as a model.
pub(super) async fn show(
    State(app): State<App>,
    id: Result<Name, ApiError>,
) -> Result<Response, OpenAiError> {
    let Name(id) = id?;
    let name = module_name(&id);
    app.load(name).await?;
    Ok(answer::json(StatusCode::OK, &Model(name)))
}

struct List<'a>(&'a [Model<'a>]);

impl ToJson for List<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("object", "list");
            w.field("data", &Array(self.0));
        });
    }
}

/// A model; its id is accepted as `model` of a request.
struct Model<'a>(&'a str);

impl ToJson for Model<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("id", &model_id(self.0));
            w.field("object", "model");
            w.field("created", &0_u64);
            w.field("owned_by", "cognitive");
        });
    }
}
