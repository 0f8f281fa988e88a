//! Test support: a mock server of model providers, a function that splits bytes, and ratios of times for benchmarks.
//!
//! This crate uses none of the crates that it tests. The mock's replies follow the API references of the vendors, and
//! their clients validate them (`crates/cog-provider/tests/sdk`).
//!
//! ```
//! use cog_testkit::{Mock, Reply, Wire};
//!
//! let mock = Mock::start([Reply::text(r#"{"ok": true}"#).chunk_size(4)]);
//! let base_url = mock.base_url(Wire::OpenAi); // for OPENAI_BASE_URL
//! assert!(base_url.starts_with("http://127.0.0.1:") && base_url.ends_with("/v1"));
//! assert!(mock.requests().is_empty());
//! ```

#[expect(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the index of a value is null if it is absent, and the directory is the test's own"
)]
mod batches;
pub mod bench;
mod forms;
mod limits;
#[expect(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the index of a value is null if it is absent, and the files are those of the tests"
)]
mod mistakes;
mod mock;
#[expect(clippy::indexing_slicing, reason = "the index of a value is null if it is absent")]
mod protected;
mod reply;
mod wire;

use std::{net::TcpStream, path::Path, process::Command};

pub use batches::{BatchStep, Batches};
pub use mistakes::{EditedModule, Mistakes};
pub use mock::{Mock, Received};
pub use protected::{OAuthProblems, ProtectedServer};
pub use reply::{Finish, Reply};
pub use wire::Wire;

/// Returns every split of the bytes into two parts, which may be empty.
pub fn splits(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|at| {
        let (left, right) = bytes.split_at(at);
        [left, right]
    })
}

/// Where Ollama listens.
const OLLAMA: (&str, u16) = ("localhost", 11434);
/// A URL at which nothing listens.
const CLOSED: &str = "http://127.0.0.1:1";

/// Gives a command the environment of a newcomer: a home, a path, no key and no setting, as `env -i HOME=… PATH=…` does.
///
/// The command looks for an Ollama, as it does for a newcomer. If one runs on this machine, its models would answer instead of the
/// samples that the tests expect; only then is the search pointed to a closed port, where it finds nothing.
pub fn as_newcomer<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("HOME", home).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    if TcpStream::connect(OLLAMA).is_ok() {
        command.env("COG_DETECT_OLLAMA", CLOSED);
    }
    command
}
