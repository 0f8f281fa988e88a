use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use cog_spec::Code;

use crate::{
    error::ApiError,
    guard::Client,
    state::{self, Caller},
};

/// The path parameter of a route: the name of a module, the id of a session.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let name = params.ok().and_then(|params| params.iter().next().map(|(_, value)| value.to_owned()));
        name.map(Self).ok_or_else(|| {
            ApiError::new(Code::InvalidReference, "the path is not UTF-8")
                .suggest("Use lower case letters, digits and hyphens in a name.")
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::from_extensions(&parts.extensions))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(state::client(&parts.extensions))
    }
}
