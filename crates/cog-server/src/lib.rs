//! Modules over HTTP: the routes of supplement section 10, and a run's chunks as server-sent events, NDJSON or
//! WebSocket frames.
