//! The server over real connections, with a mock of the model.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]
#![expect(clippy::panic, clippy::disallowed_methods, reason = "a test owns its server and its clients")]

mod anthropic;
mod bad_input;
mod drain;
#[path = "../shared/empty_workbench.rs"]
mod empty_workbench;
mod frames;
mod hostile;
mod media;
mod negotiation;
mod offload;
mod openai;
mod openai_responses;
mod openai_streams;
mod outputs;
mod routes;
mod sessions;
mod sockets;
mod streams;
mod support;
mod workbench;
