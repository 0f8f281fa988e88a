//! Errors in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use cog_json::{ToJson, Writer};
use cog_spec::{Code, ErrorBody};

use super::PATHS;
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

impl OpenAiError {
    /// Returns the members of the error.
    pub(super) fn members(&self) -> Members<'_> {
        Members { error: self.error.body(), param: self.param.as_deref(), status: self.error.status() }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let text = ErrorForm(self.members()).to_json() + "\n";
        let is_final = self.error.body().recoverable == Some(false);
        // The status and the headers are the same as for the other routes.
        let mut response = self.error.into_response();
        *response.body_mut() = Body::from(text);
        if is_final {
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
pub(super) struct ErrorForm<'a>(pub(super) Members<'a>);

impl ToJson for ErrorForm<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("error", &self.0);
        });
    }
}

/// The members of an error.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    error: &'a ErrorBody,
    param: Option<&'a str>,
    status: StatusCode,
}

impl Members<'_> {
    /// Returns the message with the suggestion: clients show it alone.
    pub(super) fn message(&self) -> String {
        match &self.error.suggestion {
            Some(suggestion) => format!("{}. {suggestion}", self.error.message),
            None => self.error.message.clone(),
        }
    }

    /// Returns our code.
    pub(super) fn code(&self) -> &str {
        self.error.code.as_str()
    }

    /// Writes the parameter, or null.
    pub(super) fn write_param(&self, w: &mut Writer<'_>) {
        w.key("param");
        match self.param {
            Some(param) => w.string(param),
            None => w.null(),
        }
    }
}

/// Written by hand: the type depends on the status.
impl ToJson for Members<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("message", &self.message());
            w.field("type", error_type(self.status));
            self.write_param(w);
            w.field("code", self.code());
            w.optional("details", &self.error.details);
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
