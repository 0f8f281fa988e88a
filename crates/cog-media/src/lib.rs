//! Opens, checks and converts media files (SPEC 4, docs/spec/media.md).
//!
//! A source becomes [`Stored`] bytes, limited and hashed while they are read. [`check`] runs before a provider gets
//! them.
//!
//! - [`UrlGuard`] judges URLs that come from inputs or models, and only [`Fetcher`] fetches them.
//! - [`collect`] opens [`MediaSource`]s, within [`Access`]; [`prepare`] converts [`Media`] to what a provider supports.
//! - A [`Tool`] reads documents, audio and video in a separate process, which runs [`internal_media`].
//! - [`MediaError`] has a code for each refusal; [`MediaRules`] has the limits; a [`Delivery`] stores generated media.

mod check;
mod checksum;
mod collect;
mod deliver;
mod error;
#[cfg_attr(not(feature = "fetch"), path = "fetch/absent.rs")]
mod fetch;
mod files;
mod guard;
mod heif;
mod kind;
mod media;
mod normalise;
mod prepare;
mod report;
mod rules;
mod source;
mod store;
mod tool;

#[cfg(feature = "fetch")]
pub use crate::fetch::{FetchLimits, Proxy, ProxyError, ResolveFuture, Resolver, SystemResolver};
#[cfg(feature = "decode")]
pub use crate::tool::internal_media;
pub use crate::{
    check::check,
    checksum::Checksum,
    collect::{Access, Progress, Uploads, collect, obtain, receive},
    deliver::{Delivered, Delivery, MediaDirectory, Publish, Published, extension},
    error::{LimitKind, MediaError},
    fetch::{Fetched, Fetcher},
    files::FileGuard,
    guard::{AllowRule, Network, Refusal, RuleError, Target, UrlGuard},
    kind::{modality_of, sniff, type_of_name},
    media::{Expected, Facts, Media, Orientation},
    normalise::{MediaCapabilities, Part, Prepared, Step, normalise},
    prepare::prepare,
    report::{Processed, media_processed, media_validation},
    rules::MediaRules,
    source::{Detail, MediaLocation, MediaSource, Rotation},
    store::{Store, Stored, decode_base64, encode_base64},
    tool::{Frame, FramePlan, FrameSelection, PageText, Programs, READER_VARIABLE, Tool},
};
