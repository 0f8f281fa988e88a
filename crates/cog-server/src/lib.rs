//! Modules over HTTP: the routes of supplement section 10, and a run's chunks as server-sent events, NDJSON or
//! WebSocket frames.

#![expect(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the router, which uses the guards, comes next"
)]

mod guard;
mod metrics;
mod timing;
