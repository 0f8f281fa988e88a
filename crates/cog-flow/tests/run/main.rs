//! Composed modules run as a program runs them: modules on disk, a runtime with [`Flows`](cog_flow::Flows), a provider that
//! replies by module.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what it expects by failing"
)]

mod budgets;
mod cache;
mod calls;
mod confirmation;
mod context;
mod failures;
mod limits;
mod media;
mod names;
mod patterns;
mod resume;
mod streams;
mod support;
mod usage;
