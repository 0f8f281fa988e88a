//! The interface of a log that several servers share, and through which any of them resumes a session.

use std::pin::Pin;

use futures_core::Stream;

/// A future of a shared log.
pub type LogFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// A stream of a shared log.
pub type LogStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// The sessions of several servers. Each session has records, in order: lines of JSON, the first of which describes the run.
///
/// Only one server writes to a session at a time. The others notice by [`AppendError::Superseded`] that it is not theirs any more.
pub trait SharedLog: Send + Sync {
    /// Appends lines to a session, unless its last record is not `after`; 0 for none. Returns the number of the new record, once
    /// it is stored.
    fn append(&self, id: &str, after: u64, lines: String) -> LogFuture<Result<u64, AppendError>>;

    /// Reads a session: the records so far, and those that follow.
    fn read(&self, id: &str) -> LogFuture<Result<LogReading, AppendError>>;

    /// Returns whether the run of a session is in progress at a server. A server that does not reply runs nothing.
    fn is_running(&self, server: &str, id: &str) -> LogFuture<bool>;

    /// Requests that a server cancels the run of a session.
    fn cancel(&self, server: &str, id: &str) -> LogFuture<()>;

    /// Returns the requests of the other servers to this one.
    fn requests(&self) -> LogStream<LogRequest>;
}

/// The records of a session.
pub struct LogReading {
    /// The number of the last record so far; 0 for none.
    pub last: u64,
    /// The records from the first one on, without end.
    pub records: LogStream<LogRecord>,
}

/// A record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number. The numbers of a session increase.
    pub number: u64,
    /// The server that wrote it.
    pub server: String,
    /// Complete lines.
    pub lines: String,
}

/// A request of another server.
pub struct LogRequest {
    /// The session.
    pub id: String,
    /// Whether its run is to be cancelled.
    pub cancels: bool,
    /// Sends the reply: whether the run is in progress.
    pub reply: Box<dyn FnOnce(bool) + Send>,
}

/// Why lines were not appended, or records not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another server has appended to the session.
    #[error("another server has continued the session")]
    Superseded,
    /// The log cannot store these lines.
    #[error("{0}")]
    Refused(String),
    /// The log cannot be reached now.
    #[error("{0}")]
    Unavailable(String),
}
