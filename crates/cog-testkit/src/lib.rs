//! Raw material for tests: a server that answers as vendors do, and byte splitters.
//!
//! Nothing here uses the crates it helps to test: what the mock says is written down from the vendors'
//! own interfaces, and checked with their clients (`crates/cog-provider/tests/sdk`).
//!
//! ```
//! use cog_testkit::{Mock, Reply, Wire};
//!
//! let mock = Mock::start([Reply::text(r#"{"ok": true}"#).pieces(4)]);
//! let address = mock.base_url(Wire::OpenAi); // for OPENAI_BASE_URL
//! assert!(address.starts_with("http://127.0.0.1:") && address.ends_with("/v1"));
//! assert!(mock.requests().is_empty());
//! ```

mod mock;
mod reply;
mod script;
mod split;
mod wire;

pub use mock::{Mock, Received};
pub use reply::{Finish, Reply};
pub use split::{pieces_of, splits};
pub use wire::Wire;
