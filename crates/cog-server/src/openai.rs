//! Modules as models of OpenAI's clients (docs/openai.md): `GET /v1/models` and `POST /v1/chat/completions`.
//!
//! * `chat`: one request, from its body to its response; `parameters`: which of them are accepted;
//! * `messages` and `content`: from messages to the input of a module; `response_format`: the schema of the client;
//! * `completion`: the response; `error`: errors in OpenAI's form; `models`: the list of models; `names`: of routes and models.

mod chat;
mod completion;
mod content;
mod error;
mod messages;
mod models;
mod names;
mod parameters;
mod response_format;

use axum::{
    Router,
    routing::{get, post},
};

pub(crate) use self::{error::refusal, names::PATHS};
use crate::state::App;

/// Adds the routes.
pub(crate) fn add(router: Router<App>) -> Router<App> {
    router
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::show))
        .route("/v1/chat/completions", post(chat::complete))
}
