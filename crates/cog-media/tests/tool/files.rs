//! The tool of these tests, and what it is given.

use cog_media::{MediaError, Store, Stored, Tool};

/// The tool whose program is this test.
pub(crate) fn tool() -> Tool {
    Tool::new(std::env::current_exe().unwrap())
}

/// Waits for what a tool does.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// These bytes, kept.
pub(crate) fn stored(bytes: &[u8]) -> Stored {
    let mut store = Store::with_limit(u64::MAX);
    store.push(bytes).unwrap();
    store.finish()
}

/// The code and the words of a refusal.
pub(crate) fn refusal<T>(outcome: Result<T, MediaError>) -> String {
    let error = outcome.err().expect("it is refused");
    format!("{} {error}", error.code().as_str())
}
