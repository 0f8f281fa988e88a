//! Errors in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use cog_json::{ToJson, Writer};
use cog_spec::{Code, ErrorBody};

use super::names::PATHS;
use crate::{error::ApiError, guard::Refusal};

/// Shows OpenAI's clients whether to send the request again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Why a request fails, and which of its parameters is wrong.
#[derive(Debug)]
pub(super) struct OpenAiError {
    error: Box<ApiError>,
    param: Option<String>,
}

impl OpenAiError {
    /// The error of a parameter.
    pub(super) fn new(code: Code, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { error: Box::new(ApiError::new(code, message)), param: Some(param.into()) }
    }

    /// Adds a suggestion.
    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        *self.error = self.error.suggest(suggestion);
        self
    }
}

impl<E: Into<ApiError>> From<E> for OpenAiError {
    fn from(error: E) -> Self {
        let error = error.into();
        let param = first_path(error.body());
        Self { error: Box::new(error), param }
    }
}

/// Returns the path of the first violation, such as `input.query`.
fn first_path(error: &ErrorBody) -> Option<String> {
    let path = error.details.as_ref()?.pointer("/violations/0/path")?.as_str();
    path.filter(|path| path.starts_with("input")).map(str::to_owned)
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let Self { error, param } = self;
        let body = error.body().clone();
        // The status and the headers are those of the other routes.
        let mut response = error.into_response();
        let form = ErrorForm { error: &body, param: param.as_deref(), status: response.status() };
        *response.body_mut() = Body::from(form.to_json() + "\n");
        if body.recoverable == Some(false) {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// Returns the response to a request that a check refused: in OpenAI's form for these routes.
pub(crate) fn refusal(path: &str, refusal: Refusal) -> Response {
    let is_route = |route: &&str| match route.strip_suffix("{id}") {
        Some(prefix) => path.starts_with(prefix),
        None => path == *route,
    };
    match PATHS.iter().any(is_route) {
        true => OpenAiError::from(refusal).into_response(),
        false => refusal.into_response(),
    }
}

/// The document of an error.
struct ErrorForm<'a> {
    error: &'a ErrorBody,
    param: Option<&'a str>,
    status: StatusCode,
}

/// Written by hand: clients show the message alone, so that it includes the suggestion.
impl ToJson for ErrorForm<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let ErrorBody { code, message, suggestion, details, .. } = self.error;
        let message = match suggestion {
            Some(suggestion) => format!("{message}. {suggestion}"),
            None => message.clone(),
        };
        w.object(|w| {
            w.key("error").object(|w| {
                w.field("message", &message);
                w.field("type", error_type(self.status));
                w.key("param");
                match self.param {
                    Some(param) => w.string(param),
                    None => w.null(),
                }
                w.field("code", code.as_str());
                w.optional("details", details);
            });
        });
    }
}

/// Returns the type that OpenAI has for errors of this status.
fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
