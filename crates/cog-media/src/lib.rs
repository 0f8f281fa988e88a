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
    deliver::{Delivery, DeliveryPlace, MediaDirectory, StoredUrl, UrlStore, extension},
    error::{LimitKind, MediaError},
    fetch::{Fetcher, SourceContent},
    files::FileGuard,
    guard::{AllowRule, Network, Refusal, RuleError, Target, UrlGuard},
    kind::{modality_of, sniff, type_of_name},
    media::{Media, MediaDeclaration, MediaInfo, Orientation, Placeholder},
    normalise::{MediaCapabilities, MediaPart, PartKind, Step, normalise},
    prepare::prepare,
    report::{ProcessedMedia, media_processed, media_validation},
    rules::MediaRules,
    source::{Detail, MediaLocation, MediaSource, Rotation},
    store::{Store, Stored, decode_base64, encode_base64},
    tool::{Frame, FramePlan, FrameSelection, PageText, Programs, READER_VARIABLE, Tool},
};
