//! Model calls: wire protocols, vendors, the HTTP client, recording and replay.
//!
//! * [`Provider`] is the interface that the pipeline calls; [`HttpProvider`] implements it for vendors.
//! * [`protocol`] maps a [`ModelRequest`] to a [`WireRequest`], and bytes to `ModelEvent`s; [`batch`] does so for batch
//!   jobs.
//! * [`vendors`] is a table with one row per vendor; [`choose()`] selects one (docs/settings.md).
//! * [`ProviderError`] is the reason of a failed call; [`Breaker`] pauses a provider that failed several times.
//! * [`HttpProvider::record`] stores replies in a cassette, and [`HttpProvider::replay`] plays them back.
//!
//! ```
//! use {cog_harmony::{Conversation, Message}, cog_spec::ModelEvent, futures_util::TryStreamExt};
//! use cog_provider::{HttpProvider, ModelRequest, Provider, vendors::{ProviderSettings, Vendor}};
//! # let mock = cog_testkit::Mock::start([cog_testkit::Reply::text("{}")]);
//! # let base_url = Some(mock.base_url(cog_testkit::Wire::Ollama));
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let vendor = Vendor::by_name("ollama").ok_or("no such vendor")?;
//! let settings = ProviderSettings { base_url, ..ProviderSettings::default() };
//! let provider = HttpProvider::new(vendor, settings)?;
//! let request = ModelRequest::new(Conversation::new([Message::user("Answer with {}.")]));
//! let events: Vec<ModelEvent> = provider.call(&request).await?.try_collect().await?;
//! assert!(events.contains(&ModelEvent::Text("{}".to_owned())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! URLs and keys come only from the operator ([`vendors::ProviderSettings`]). The client reads the proxy variables and
//! `SSL_CERT_*`.

pub mod batch;
mod breaker;
#[cfg(feature = "http")]
mod cassette;
mod choose;
mod error;
mod formats;
#[cfg(feature = "http")]
mod http;
pub mod protocol;
mod protocol_kind;
mod provider;
mod request;
#[cfg(feature = "http")]
mod transport;
pub mod vendors;

pub use breaker::{Breaker, BreakerSettings};
#[cfg(feature = "http")]
pub use cassette::{Pace, Recording, RecordingFailure};
pub use choose::{Choice, OFFLINE, ProviderSelectError, choose, provider_names};
pub use error::{ConnectErrorKind, Deadline, Interruption, OptionalPart, ProviderError, RejectedPart};
pub use formats::{Formats, ManyImages};
#[cfg(feature = "http")]
pub use http::{BatchClient, HttpProvider, PlainClient, PlainRequest, PlainResponse};
pub use provider::{ListedModel, ModelFuture, ModelStream, Provider, ProviderInfo};
pub use request::{
    ImageRequest, ModelRequest, OutputGrammar, OutputSchema, Quota, ReplyHead, ReplyHook, RequestError,
    RetryHook, ToolRequest, WireRequest,
};
