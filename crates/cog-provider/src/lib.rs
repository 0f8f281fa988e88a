//! ModelFuture a model: wire protocols, vendors, the HTTP client, recording and replay.
//!
//! * [`Provider`] is what the pipeline talks to; [`HttpProvider`] is the one for vendors.
//! * [`protocol`] holds one pure mapping for each wire form: a [`ModelRequest`] to a [`WireRequest`],
//!   bytes to `ModelEvent`s.
//! * [`vendors`] is a table, a row for each vendor; [`choose()`] picks one (docs/spec/settings.md).
//! * [`ProviderError`] says why no answer came, with its code.
//! * [`Breaker`] leaves a provider alone that failed several times in a row.
//! * [`HttpProvider::record`] and [`HttpProvider::replay`] keep replies in a cassette and play them.
//!
//! ```
//! use cog_harmony::{Conversation, Message};
//! use cog_provider::{HttpProvider, ModelRequest, Provider, vendors::{ProviderSettings, Vendor}};
//! use cog_spec::ModelEvent;
//! use futures_util::TryStreamExt;
//! # let mock = cog_testkit::Mock::start([cog_testkit::Reply::text("{}")]);
//! # let address = Some(mock.base_url(cog_testkit::Wire::Ollama));
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let vendor = Vendor::named("ollama").ok_or("no such vendor")?;
//! let settings = ProviderSettings { base_url: address, ..ProviderSettings::default() };
//! let provider = HttpProvider::new(vendor, settings)?;
//! let request = ModelRequest::new(Conversation::new([Message::user("Answer with {}.")]));
//! let events: Vec<ModelEvent> = provider.ask(&request).await?.try_collect().await?;
//! assert!(events.contains(&ModelEvent::Text("{}".to_owned())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Addresses and keys come from the operator alone, through [`vendors::ProviderSettings`]; nothing here
//! reads the environment, but for what the HTTP client does by itself: the usual proxy variables, and
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` for the certificates to trust.

mod breaker;
#[cfg(feature = "http")]
mod cassette;
mod choose;
mod connect_error;
mod error;
#[cfg(feature = "http")]
mod http;
pub mod protocol;
mod provider;
mod request;
#[cfg(feature = "http")]
mod transport;
pub mod vendors;

pub use breaker::{Breaker, BreakerSettings};
#[cfg(feature = "http")]
pub use cassette::{Pace, Recording};
pub use choose::{Choice, OFFLINE, ProviderSelectError, choose, known};
pub use connect_error::ConnectErrorKind;
pub use error::{Deadline, Interruption, ProviderError};
#[cfg(feature = "http")]
pub use http::HttpProvider;
pub use provider::{Formats, ModelFuture, ModelStream, Provider};
pub use request::{ModelRequest, OutputSchema, RequestError, WireRequest};
