//! Jobs and sessions of Cognitive Modules in NATS JetStream.
//!
//! A [`Worker`] takes jobs from a work queue, runs them and stores each result under the id of its job. A message is acknowledged
//! after its result is stored, so a job that a worker loses is delivered again. A job whose result is stored does not run again.
//!
//! [`NatsRows`] runs the rows of a batch as jobs.
//!
//! [`NatsSessions`] is the log through which several servers share their sessions.

mod connect;
mod job;
mod names;
mod queue;
mod rows;
mod sessions;
mod worker;

pub use connect::{NatsError, NatsOptions, connect};
pub use job::{Job, JobId};
pub use names::Names;
pub use queue::{FailedJob, Queue, QueueSettings, StoredResult};
pub use rows::NatsRows;
pub use sessions::NatsSessions;
pub use worker::{Stop, Worker, WorkerReport};
