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
mod mock;
mod newcomer;
mod reply;
mod script;
mod split;
mod wire;

pub use batches::{BatchStep, Batches};
pub use mock::{Mock, Received};
pub use newcomer::as_newcomer;
pub use reply::{Finish, Reply};
pub use split::splits;
pub use wire::Wire;
