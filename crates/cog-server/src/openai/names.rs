/// The paths of the routes.
pub(crate) const PATHS: &[&str] = &["/v1/models", "/v1/models/{id}", "/v1/chat/completions", "/v1/responses"];

/// What a model may begin with; the name of its module follows.
const PREFIX: &str = "module:";

/// Returns the name of the module that a model names.
pub(super) fn module_name(model: &str) -> &str {
    model.strip_prefix(PREFIX).unwrap_or(model)
}

/// Returns the id of the model that is a module.
pub(super) fn model_id(name: &str) -> String {
    format!("{PREFIX}{name}")
}
