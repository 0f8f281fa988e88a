//! The choice between one envelope and a stream: SPEC 8.2, docs/spec/streaming.md, rulings R54 and R55.

mod accept;

use axum::http::HeaderMap;
use cog_spec::{Code, ErrorBody, ResponseMode, Warning};

pub(crate) use self::accept::{Accept, Preferred};
use crate::{
    error::ApiError,
    request::{Mode, Options},
    transport::Wire,
};

/// The header that selects the mode. It overrides everything else.
const MODE_HEADER: &str = "x-cognitive-response-mode";
/// The value of `X-Cognitive-Warning` for a fallback (docs/spec/streaming.md).
const UNAVAILABLE: &str = "STREAMING_UNAVAILABLE; fallback=sync; reason=module_mode_sync";

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// One envelope.
    Envelope,
    /// One envelope although the client requested a stream: W4010 (ruling R55).
    EnvelopeInstead,
    /// A stream.
    Stream(Wire),
}

/// What a request contains about its response mode.
pub(crate) struct ResponsePreference<'a> {
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its query string.
    pub(crate) query: Option<&'a str>,
    /// Its `_options`.
    pub(crate) options: &'a Options,
}

impl ResponsePreference<'_> {
    /// Returns how a module of this mode answers the request.
    ///
    /// # Errors
    /// E1004 for an unknown mode; E4010 where the request requires a stream and the module has none.
    pub(crate) fn delivery(&self, module: ResponseMode) -> Result<Delivery, ApiError> {
        let accept = Accept::from_headers(self.headers);
        let requested = match self.requested()? {
            Some(mode) => Some(mode),
            None => accept.preferred().map(Preferred::mode),
        };
        match (requested, module) {
            (Some(Mode::Sync), _) | (None, ResponseMode::Sync | ResponseMode::Both) => Ok(Delivery::Envelope),
            (Some(Mode::Streaming), ResponseMode::Sync) => self.fall_back(),
            (Some(Mode::Streaming), _) | (None, ResponseMode::Streaming) => {
                Ok(Delivery::Stream(accept.wire()))
            }
        }
    }

    /// The mode that the request names, by precedence: header, body, query. An invalid value is an error even where another
    /// one takes precedence.
    fn requested(&self) -> Result<Option<Mode>, ApiError> {
        let header = self.headers.get(MODE_HEADER).map(|value| value.to_str().unwrap_or("?"));
        let header =
            header.map(|value| Mode::read(value, "the header X-Cognitive-Response-Mode")).transpose()?;
        let query = self.query.and_then(|query| parameter(query, "response_mode"));
        let query = query.map(|value| Mode::read(value, "the query parameter response_mode")).transpose()?;
        Ok(header.or(self.options.requested()).or(query))
    }

    fn fall_back(&self) -> Result<Delivery, ApiError> {
        match self.options.require_streaming {
            true => Err(not_streaming()),
            false => Ok(Delivery::EnvelopeInstead),
        }
    }
}

/// E4010: the module returns one envelope only.
pub(crate) fn not_streaming() -> ApiError {
    let message = "the module does not stream (`response.mode: sync`), but the request requires a stream";
    ErrorBody::new(Code::StreamingNotSupported, message)
        .suggest("Remove require_streaming, or use a module whose mode is streaming or both.")
        .into()
}

impl Delivery {
    /// The warning of the fallback.
    pub(crate) fn warning(self) -> Option<Warning> {
        (self == Self::EnvelopeInstead).then(Warning::sync_instead_of_stream)
    }

    /// The warning as a header.
    pub(crate) fn warning_header(self) -> Option<&'static str> {
        (self == Self::EnvelopeInstead).then_some(UNAVAILABLE)
    }
}

/// The value of a query parameter, undecoded.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, it)| it)
}

#[cfg(test)]
mod tests;
