//! The limits and the life of a server, over real connections: each limit at its edge and one past it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what it expects by failing"
)]

mod access;
mod life;
mod observed;
mod pages;
mod sizes;
mod streams;
mod support;
