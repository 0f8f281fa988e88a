//! Media: from where they are to bytes that were checked (SPEC 4, docs/spec/media.md).
//!
//! A source becomes [`Stored`] bytes, limited and hashed as they are read; nothing reaches a provider before [`check`]:
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), cog_media::MediaError> {
//! use cog_media::{Expected, MediaRules, Store, check, decode_base64};
//! let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
//! let stored = decode_base64(pixel, Store::within(20 << 20))?;
//! let media = check(stored, &Expected::default(), &MediaRules::default(), None).await?;
//! assert_eq!((media.media_type(), media.facts().width), ("image/gif", Some(1)));
//! # Ok(()) }
//! ```
//! - [`UrlGuard`] judges addresses that come from inputs or models, and only [`Fetcher`] asks them.
//! - [`collect`] opens [`MediaSource`]s, as far as [`Access`] lets it; [`prepare`] makes of [`Media`] what a provider takes.
//! - A [`Tool`] reads documents, sound and video in a process of its own, whose side is [`internal_media`].
//! - [`MediaError`] has a code for each refusal; [`MediaRules`] holds the limits; a [`Delivery`] takes what was made.

mod access;
mod base64;
mod blocking;
mod body;
mod check;
mod checksum;
mod collect;
mod deliver;
mod error;
mod facts;
#[cfg_attr(not(feature = "fetch"), path = "fetch/absent.rs")]
mod fetch;
mod files;
mod guard;
mod kind;
mod normalise;
#[cfg_attr(not(feature = "decode"), path = "picture/absent.rs")]
mod picture;
mod prepare;
mod report;
mod rules;
mod source;
mod store;
mod tool;

#[cfg(feature = "fetch")]
pub use crate::fetch::{Addresses, FetchLimits, Proxy, ProxyError, Resolver, SystemResolver};
#[cfg(feature = "decode")]
pub use crate::tool::internal_media;
pub use crate::{
    access::{Access, Uploads},
    base64::{decode_base64, encode_base64},
    check::{Expected, Media, check},
    checksum::Checksum,
    collect::{Progress, collect, obtain},
    deliver::{Delivered, Delivery, Publish, Published},
    error::{Excess, MediaError},
    facts::{Facts, Orientation},
    fetch::{Fetched, Fetcher},
    files::FileGuard,
    guard::{AllowRule, Network, Refusal, RuleError, Target, UrlGuard},
    kind::{modality_of, sniff},
    normalise::{MediaCapabilities, Part, Prepared, Step, normalise},
    prepare::prepare,
    report::{Processed, media_processed, media_validation},
    rules::MediaRules,
    source::{Detail, MediaSource, Place, Rotation},
    store::{Store, Stored},
    tool::{Frame, FramePlan, FrameSelection, PageText, Tool},
};
