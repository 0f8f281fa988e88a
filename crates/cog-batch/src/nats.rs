//! Jobs in NATS JetStream.
//!
//! A [`Worker`] takes jobs from a work queue, runs them and stores each result under the id of its job. A message is acknowledged
//! after its result is stored, so a job that a worker loses is delivered again. A job whose result is stored does not run again.

mod aside;
mod connect;
mod error;
mod fetch;
mod handle;
mod job;
mod names;
mod queue;
mod report;
mod stored;
mod worker;

pub use self::{
    connect::{NatsOptions, connect},
    error::NatsError,
    job::{Job, JobId},
    names::Names,
    queue::{Queue, QueueSettings},
    report::WorkerReport,
    stored::StoredResult,
    worker::{Stop, Worker},
};
