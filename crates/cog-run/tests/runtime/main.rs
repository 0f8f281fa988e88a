//! The Rust API as a program uses it: a module, an input, a custom provider.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what it expects by failing"
)]

mod checks;
mod composition;
mod context;
mod costs;
mod cuts;
mod events;
mod evidence;
mod fallbacks;
mod forms;
mod life;
mod media_out;
mod prompts;
mod runs;
mod sessions;
mod spans;
mod support;
mod tools;
mod trace;
