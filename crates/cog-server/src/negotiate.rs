//! One envelope or a stream, and which: SPEC 8.2, docs/spec/streaming.md, rulings R54 and R55.

mod accept;

use axum::http::HeaderMap;
use cog_spec::{Code, ErrorBody, ResponseMode, Warning};

pub(crate) use self::accept::{Accept, Preferred};
use crate::{
    error::ApiError,
    request::{Mode, Options},
    transport::Wire,
};

/// The header that chooses the mode, above everything else.
const MODE_HEADER: &str = "x-cognitive-response-mode";
/// Its value that tells of the fallback (docs/spec/streaming.md).
const UNAVAILABLE: &str = "STREAMING_UNAVAILABLE; fallback=sync; reason=module_mode_sync";

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// One envelope.
    Whole,
    /// One envelope although a stream was asked for: W4010 (ruling R55).
    WholeInstead,
    /// A stream.
    Stream(Wire),
}

/// What a request says about how it wants to be answered.
pub(crate) struct ResponsePreference<'a> {
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its query string.
    pub(crate) query: Option<&'a str>,
    /// Its `_options`.
    pub(crate) options: &'a Options,
}

impl ResponsePreference<'_> {
    /// How the request is answered by a module of this mode.
    ///
    /// # Errors
    /// E1004 for a mode that is none; E4010 where a stream is required of a module that has none.
    pub(crate) fn delivery(&self, module: ResponseMode) -> Result<Delivery, ApiError> {
        let accept = Accept::of(self.headers);
        let asked = match self.asked()? {
            Some(mode) => Some(mode),
            None => accept.preferred().map(Preferred::mode),
        };
        match (asked, module) {
            (Some(Mode::Sync), _) | (None, ResponseMode::Sync | ResponseMode::Both) => Ok(Delivery::Whole),
            (Some(Mode::Streaming), ResponseMode::Sync) => self.instead(),
            (Some(Mode::Streaming), _) | (None, ResponseMode::Streaming) => {
                Ok(Delivery::Stream(accept.wire()))
            }
        }
    }

    /// The mode that the request names, strongest first: header, body, query. One that cannot be read is told even
    /// where a stronger one can.
    fn asked(&self) -> Result<Option<Mode>, ApiError> {
        let header = self.headers.get(MODE_HEADER).map(|value| value.to_str().unwrap_or("?"));
        let header =
            header.map(|word| Mode::read(word, "the header X-Cognitive-Response-Mode")).transpose()?;
        let query = self.query.and_then(|query| parameter(query, "response_mode"));
        let query = query.map(|word| Mode::read(word, "the query's response_mode")).transpose()?;
        Ok(header.or(self.options.asked()).or(query))
    }

    fn instead(&self) -> Result<Delivery, ApiError> {
        match self.options.require_streaming {
            true => Err(not_streaming()),
            false => Ok(Delivery::WholeInstead),
        }
    }
}

/// E4010: the module answers with one envelope alone.
pub(crate) fn not_streaming() -> ApiError {
    let message = "the module answers in one piece (`response.mode: sync`), and a stream is required";
    ErrorBody::new(Code::StreamingNotSupported, message)
        .suggest("leave out require_streaming, or choose a module whose mode is streaming or both")
        .into()
}

impl Delivery {
    /// What the answer warns of.
    pub(crate) fn warning(self) -> Option<Warning> {
        (self == Self::WholeInstead).then(Warning::sync_instead_of_stream)
    }

    /// The same as a header.
    pub(crate) fn warning_header(self) -> Option<&'static str> {
        (self == Self::WholeInstead).then_some(UNAVAILABLE)
    }
}

/// The value of a query's parameter, as it stands.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, it)| it)
}

#[cfg(test)]
mod tests;
