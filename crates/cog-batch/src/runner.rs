//! Where rows run, if not in this process.

use std::pin::Pin;

use cog_run::RunInput;
use cog_spec::Envelope;

use crate::RowHash;

/// The result of a row that runs somewhere else.
pub type RowFuture<'a> = Pin<Box<dyn Future<Output = Envelope> + Send + 'a>>;

/// Runs rows somewhere else than in this process.
pub trait Runner: Send + Sync {
    /// Returns the envelope of a row. A future that is dropped no longer waits for it.
    fn run<'a>(&'a self, row: u64, hash: RowHash, input: &'a RunInput) -> RowFuture<'a>;

    /// Returns why no row can run now, if none can.
    fn trouble(&self) -> Option<String>;
}
