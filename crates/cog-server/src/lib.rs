//! Modules over HTTP: the routes of docs/spec/http.md, and chunks as server-sent events, NDJSON or WebSocket frames.
//!
//! A streamed run belongs to its session ([`cog_run::sessions::Sessions`]), not to its connection. Every transport reads
//! the log of the session, so that all send the same chunks.
//!
//! * `router`: the routes and their OpenAPI document; `routes`: one file per family;
//! * `request`: body and options; `negotiate`: envelope or stream; `deliver` and `follow`: from a request to its response;
//! * `transport`, `websocket`: server-sent events, NDJSON, WebSocket; `answer` and `error`: envelopes as responses;
//! * `media`: uploads and generated media; `offload`: work that must not delay other requests;
//! * `vendor_api`: modules as models of the clients of vendors; `openapi`: the OpenAPI document;
//! * `broken`: modules whose files cannot be loaded; `workbench`: what a person at the page does beyond running modules;
//! * `server`: from a listener to connections; `guard`: access checks and limits.

mod answer;
mod broken;
mod deliver;
mod error;
mod guard;
mod media;
mod metrics;
mod negotiate;
mod offload;
mod openapi;
mod request;
mod routes;
mod run_records;
mod server;
mod settings;
mod state;
mod timing;
mod transport;
mod vendor_api;
mod websocket;
mod workbench;

pub use crate::{
    broken::{BrokenModule, broken_modules},
    guard::{InvalidOrigin, MissingAuthError, TokenFileError, Tokens},
    media::{MediaStore, UploadSettings},
    metrics::Metrics,
    openapi::module_openapi,
    routes::openapi,
    run_records::{FeedbackReceipt, RunRecords},
    server::{Server, listen},
    settings::{AccessSettings, OpenAiSettings, ServerSettings, SetupError, SystemMessages},
    transport::capabilities,
    workbench::{ListedProvider, NewCase, TestRequest, Workbench},
};
