//! The tool of these tests, and helpers.

use cog_media::{MediaError, Store, Stored, Tool};

/// Returns a tool with this test as its program.
pub(crate) fn tool() -> Tool {
    Tool::new(std::env::current_exe().unwrap())
}

/// Runs a future to its end.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Stores bytes.
pub(crate) fn stored(bytes: &[u8]) -> Stored {
    let mut store = Store::with_limit(u64::MAX);
    store.push(bytes).unwrap();
    store.finish()
}

/// Returns the code and message of an error.
pub(crate) fn refusal<T>(outcome: Result<T, MediaError>) -> String {
    let error = outcome.err().expect("an error");
    format!("{} {error}", error.code().as_str())
}
