//! The pipeline: a module, an input and a provider to chunks and one envelope.
//!
//! [`Runtime`] is the Rust API. Set one up, load a module, run it; [`Runtime::execute_stream`] is the same run, chunk by
//! chunk, and [`ChunkStream::fold`] makes the envelope of it:
//!
//! ```
//! use cog_run::{RunInput, RunOptions, Runtime};
//! use futures_util::StreamExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().build(); // offline: golden answers and samples
//! let module = runtime.load("code-reviewer").map_err(|error| error.message)?;
//! let input = RunInput::Args("fn main() {}".to_owned());
//!
//! let envelope = runtime.execute(&module, input.clone(), RunOptions::default()).await;
//! assert!(envelope.is_ok());
//!
//! let stream = runtime.execute_stream(&module, input, RunOptions::default()).map_err(|_| "refused")?;
//! let events: Vec<_> = stream.map(|chunk| chunk.event_name()).collect().await;
//! assert_eq!((events.first(), events.last()), (Some(&"meta"), Some(&"final")));
//! # Ok(())
//! # }
//! ```
//!
//! A vendor is a [`cog_provider::HttpProvider`]; a provider of one's own implements
//! [`cog_provider::Provider`]. Both go to [`Builder::provider`], or several of them to [`Builder::providers`].

mod cancellation;
mod compiled;
mod context;
mod drive;
mod error;
mod input;
mod media;
mod modules;
mod observe;
#[cfg_attr(not(feature = "offline"), path = "offline/absent.rs")]
mod offline;
mod options;
mod pipeline;
mod plan;
mod preflight;
mod prompt;
mod providers;
mod rendered;
mod request;
mod runtime;
mod session;
pub mod sessions;
mod stream;
mod words;

pub use crate::{
    cancellation::{CancelReason, Cancellation},
    input::RunInput,
    observe::{Call, CallOutcome, Ended, Observer, RunOutcome},
    options::{Caller, RecoveryOffer, RunOptions},
    providers::Providers,
    rendered::Rendered,
    runtime::{Builder, Runtime},
    stream::ChunkStream,
};
