//! Jobs and sessions in NATS JetStream.
//!
//! A [`Worker`] takes jobs from a work queue, runs them and stores each result under the id of its job. A message is acknowledged
//! after its result is stored, so a job that a worker loses is delivered again. A job whose result is stored does not run again.
//!
//! [`NatsRows`] runs the rows of a batch as jobs.
//!
//! [`NatsSessions`] is the log through which several servers share their sessions.

mod aside;
mod connect;
mod error;
mod fetch;
mod handle;
mod job;
mod names;
mod queue;
mod refusals;
mod report;
mod rows;
mod sessions;
mod stored;
mod worker;
mod workers;

pub use self::{
    connect::{NatsOptions, connect},
    error::NatsError,
    job::{Job, JobId},
    names::Names,
    queue::{Queue, QueueSettings},
    report::WorkerReport,
    rows::NatsRows,
    sessions::NatsSessions,
    stored::StoredResult,
    worker::{Stop, Worker},
};
