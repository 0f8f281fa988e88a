//! Modules over HTTP: the routes of docs/spec/http.md, and a run's chunks as server-sent events, NDJSON or
//! WebSocket frames.
//!
//! A streamed run belongs to its session ([`cog_run::sessions::Sessions`]), not to the connection that asked for it: every
//! transport is a reader of the session's log, and all of them carry the same chunks.
//!
//! * `router`: which path leads where; `routes`: one file for each family;
//! * `request`: what is asked for; `negotiate`: one envelope or a stream; `deliver` and `follow`: from the one to the other;
//! * `transport`: server-sent events, NDJSON, WebSocket; `answer` and `fault`: envelopes as responses;
//! * `media`: uploads, and what runs have made;
//! * `openapi`: what the routes are, for programs;
//! * `serve`: from a listener to connections; `guard`: who may ask, and how much.

mod answer;
mod capability;
mod deliver;
mod error;
mod execute_request;
mod fields;
mod follow;
mod guard;
mod media;
mod metrics;
mod negotiate;
mod offload;
mod openapi;
mod request;
mod router;
mod routes;
mod serve;
mod server;
mod settings;
mod state;
mod timing;
mod transport;
mod websocket;

pub use crate::{
    capability::capabilities,
    guard::{InvalidOrigin, MissingAuthError, TokenFileError, Tokens},
    media::{MediaStore, UploadSettings},
    metrics::Metrics,
    router::openapi,
    server::Server,
    settings::{AccessSettings, ServerSettings, SetupError},
};
