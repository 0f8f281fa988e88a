//! The limits and the shutdown of a server, over real connections: each limit exactly, and exceeded by one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what it expects by failing"
)]

mod access;
mod broken;
mod clients;
#[path = "../shared/empty_workbench.rs"]
mod empty_workbench;
mod life;
#[cfg(feature = "mcp")]
mod mcp;
mod observed;
mod pages;
mod sizes;
mod spending;
mod streams;
mod support;
