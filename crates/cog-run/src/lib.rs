//! The pipeline: a module, an input and a provider to chunks and one envelope.
//!
//! [`Runtime`] is the Rust API. Set one up, load a module, run it:
//!
//! ```
//! use cog_run::{RunInput, RunOptions, Runtime};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().build(); // offline: golden answers and samples
//! let module = runtime.load("code-reviewer").map_err(|error| error.message)?;
//! let input = RunInput::Args("fn main() {}".to_owned());
//! let envelope = runtime.execute(&module, input, RunOptions::default()).await;
//! assert!(envelope.is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! A stream is the same run, chunk by chunk; [`ChunkStream::fold`] gives the envelope:
//!
//! ```
//! use cog_run::{RunInput, RunOptions, Runtime};
//! use futures_util::StreamExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().build();
//! let module = runtime.load("code-reviewer").map_err(|error| error.message)?;
//! let input = RunInput::Args("fn main() {}".to_owned());
//! let mut chunks = runtime.execute_stream(&module, input, RunOptions::default()).map_err(|_| "refused")?;
//! while let Some(chunk) = chunks.next().await {
//!     println!("{}", chunk.event_name());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A vendor is a [`cog_provider::HttpProvider`]; a provider of one's own implements
//! [`cog_provider::Provider`] and goes to [`Builder::provider`].

mod drive;
mod fault;
mod input;
mod media;
mod modules;
mod offline;
mod options;
mod permit;
mod pipeline;
mod prompt;
mod rendered;
mod runtime;
mod session;
mod stream;
mod words;

pub use crate::{
    input::RunInput,
    options::{Caller, RunOptions},
    rendered::Rendered,
    runtime::{Builder, Runtime},
    stream::ChunkStream,
};
