//! Modules as models of OpenAI's clients (docs/openai.md): `GET /v1/models`, `POST /v1/chat/completions`, `POST /v1/responses`.
//!
//! * `run`: one request, from its body to its response; `prepared`: between both; `stream`: its response as events;
//! * `request` and `parameters`: what a request contains, and which parameters are accepted;
//! * `messages` and `content`: from messages to the input of a module; `response_format`: the schema of the client;
//! * `live` and `data_text`: which modules send their data while these arrive, and what is certain of them;
//! * `reply`, `chat`, `responses`: the forms of the two interfaces; `error`: errors in OpenAI's form;
//! * `models`: the list of models; `names`: of routes and models.

mod chat;
mod content;
mod data_text;
mod error;
mod live;
mod messages;
mod models;
mod names;
mod parameters;
mod prepared;
mod reply;
mod request;
mod response_format;
mod responses;
mod run;
mod stream;

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
        .route("/v1/chat/completions", post(run::complete_chat))
        .route("/v1/responses", post(run::create_response))
}
