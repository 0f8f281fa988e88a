//! Bodies of entries.

use cog_json::{Value, Writer};
use cog_spec::Code;
use thiserror::Error;

use crate::WireRequest;

/// The reason why a job cannot contain a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The vendor has no batches for the endpoint.
    #[error("the vendor has no batches for this kind of request")]
    Endpoint,
    /// A class of service, which batches do not have.
    #[error("a batch has no `service_tier`: it is a class of service itself")]
    ServiceTier,
    /// The request is larger than a job.
    #[error("the request has {bytes} bytes, but a job accepts at most {limit}")]
    TooLarge {
        /// The size of the request, in bytes.
        bytes: usize,
        /// The maximum size of a job, in bytes.
        limit: usize,
    },
}

impl EntryError {
    /// Returns the error code of the specification.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Endpoint => Code::MultimodalNotSupported,
            Self::ServiceTier => Code::UnsupportedValue,
            Self::TooLarge { .. } => Code::InputTooLarge,
        }
    }
}

/// The members of a body that only a stream has.
const STREAM_MEMBERS: &[&str] = &["stream", "stream_options"];
/// The members that set a class of service.
const TIER_MEMBERS: &[&str] = &["service_tier", "serviceTier"];

/// Writes the body of a request without what belongs to a stream.
pub(super) fn write_body(w: &mut Writer<'_>, body: &Value) {
    w.object(|w| {
        for (key, value) in body.members().filter(|(key, _)| !STREAM_MEMBERS.contains(key)) {
            w.key(key).node(value);
        }
    });
}

/// Returns the body of a request.
pub(super) fn body(request: &WireRequest) -> Result<Value, EntryError> {
    let body = Value::parse_bytes(&request.body).unwrap_or_default();
    match TIER_MEMBERS.iter().any(|key| body.get(key).is_some()) {
        true => Err(EntryError::ServiceTier),
        false => Ok(body),
    }
}

/// Returns an object, as JSON.
pub(super) fn object(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = String::new();
    Writer::compact(&mut out).object(members);
    out
}
