use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::origin::Page;

/// The methods that pages may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");

/// The headers that pages may send.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Content-Range, Content-Type, If-Range, Last-Event-ID, Mcp-Method, Mcp-Name, \
     Mcp-Protocol-Version, Mcp-Session-Id, Range, Traceparent, X-Request-Id, \
     X-Cognitive-Response-Mode, X-Cognitive-Recovery-Session, X-Cognitive-Recovery-Seq",
);

/// The headers that pages may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Content-Range, ETag, Location, Range, Retry-After, Server-Timing, X-Cognitive-Warning, X-Request-Id, \
     X-Session-Id",
);

/// How long a browser may cache the preflight response, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Whether the request is a CORS preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Responds to a preflight. The server's own pages need no permission.
pub(crate) fn preflight(page: &Page) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    *response.body_mut() = Body::empty();
    if let Page::Allowed(_) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
    response
}

/// Lets a listed page read the response.
///
/// Credentials (cookies) are never allowed: the page sends the token in a header.
pub(crate) fn allow(page: &Page, headers: &mut HeaderMap) {
    if let Page::Allowed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

/// Adds `Vary`, because the response depends on the origin.
pub(crate) fn vary(headers: &mut HeaderMap) {
    const NAMES: [HeaderName; 3] =
        [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_METHOD, header::ACCESS_CONTROL_REQUEST_HEADERS];
    for name in NAMES {
        headers.append(header::VARY, HeaderValue::from(name));
    }
}
