//! The card of A2A, by which agents find the modules (docs/export.md).

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use cog_json::Value;
use cog_module::{
    Module,
    export::{CardServer, agent_card},
};

use crate::{
    answer, offload,
    openapi::Refused,
    state::{App, Caller},
};

/// Returns the card of A2A 1.0 with every module that agents may call.
#[utoipa::path(
    get,
    path = "/.well-known/agent-card.json",
    operation_id = "agentCard",
    tag = "about",
    responses((status = 200, description = "The card", body = Object), Refused)
)]
pub(crate) async fn show(State(app): State<App>, caller: Caller) -> Response {
    let url = app.base_url(&caller);
    let has_tokens = app.settings.access.tokens.is_some();
    let runtime = app.runtime.clone();
    let card = offload::blocking(move || {
        let mut names: Vec<String> = runtime.finder().origins().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        // A module that does not load is in the list of modules, with its error.
        let modules: Vec<Arc<Module>> =
            names.iter().filter_map(|name| runtime.load_name(name).ok()).collect();
        let modules: Vec<&Module> = modules.iter().map(AsRef::as_ref).collect();
        agent_card(&modules, &CardServer { url: url.trim_end_matches('/'), has_tokens })
    });
    answer::json(StatusCode::OK, &Value::from(card.await))
}
