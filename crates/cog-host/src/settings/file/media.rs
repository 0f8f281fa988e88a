//! `[media]` of a settings file.

use std::{fmt::Display, path::PathBuf, str::FromStr};

use cog_media::{AllowRule, Proxy};
use serde::Deserialize;

use crate::settings::{amount, duration::Span};

/// `[media]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaContent {
    pub(crate) fetch: Option<bool>,
    pub(crate) by_url: Option<bool>,
    pub(crate) strip_metadata: Option<bool>,
    pub(crate) allow: Option<Vec<Parsed<AllowRule>>>,
    pub(crate) proxy: Option<Parsed<Proxy>>,
    pub(crate) timeout: Option<Span>,
    pub(crate) redirects: Option<u32>,
    pub(crate) cache: Option<Size>,
    pub(crate) roots: Option<Vec<PathBuf>>,
    pub(crate) ffmpeg: Option<PathBuf>,
}

/// A value that is read from a string by its own rules.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err: Display>")]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<T: FromStr> TryFrom<String> for Parsed<T> {
    type Error = T::Err;

    fn try_from(text: String) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

/// A size, written `256MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) usize);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        amount::bytes(&text).map(Size)
    }
}
