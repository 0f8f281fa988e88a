//! The pages: one that runs modules, and the API reference. They load nothing from other hosts, and contain nothing that
//! needs a token.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use cog_spec::Code;

use crate::{
    error::ApiError,
    negotiate::Accept,
    openapi::Refused,
    state::{App, Name},
};

/// Allows scripts, styles and requests of this origin only.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; media-src data: blob:; \
     base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);
const HTML: &str = "text/html; charset=utf-8";
/// The files of the pages.
const ASSETS: [(&str, &str, &str); 3] = [
    ("page.css", "text/css; charset=utf-8", include_str!("../../pages/page.css")),
    ("run.js", "text/javascript; charset=utf-8", include_str!("../../pages/run.js")),
    ("docs.js", "text/javascript; charset=utf-8", include_str!("../../pages/docs.js")),
];

/// Whether a path needs no token: a token is entered in the pages.
pub(crate) fn is_public(path: &str) -> bool {
    matches!(path, "/" | "/docs" | "/openapi.json") || path.starts_with("/assets/")
}

/// Returns a page that runs modules; for programs, general information and the list of routes.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "index",
    tag = "about",
    responses(
        (status = 200, description = "A page, or API information", content(
            (ref("#/components/schemas/ApiInformation") = "application/json"),
            (String = "text/html"),
        )),
        Refused,
    )
)]
pub(crate) async fn index(State(app): State<App>, headers: HeaderMap) -> Response {
    match Accept::is_page(&headers) {
        true => text(HTML, include_str!("../../pages/index.html")),
        false => super::about::information(app.paths),
    }
}

/// Returns this document (OpenAPI 3.1).
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    tag = "about",
    responses((status = 200, description = "The document", body = Object), Refused)
)]
pub(crate) async fn document(State(app): State<App>) -> Response {
    text("application/json", app.openapi)
}

/// Returns the API reference as a page.
#[utoipa::path(
    get,
    path = "/docs",
    operation_id = "docs",
    tag = "about",
    responses((status = 200, description = "The page", body = String, content_type = "text/html"), Refused)
)]
pub(crate) async fn docs() -> Response {
    text(HTML, include_str!("../../pages/docs.html"))
}

/// Returns a script or style sheet of the pages.
#[utoipa::path(
    get,
    path = "/assets/{file}",
    operation_id = "asset",
    tag = "about",
    params(("file" = String, Path, description = "The name of the file", pattern = r"^(page\.css|run\.js|docs\.js)$")),
    responses(
        (status = 200, description = "A script or a style sheet", content(
            (String = "text/javascript"),
            (String = "text/css"),
        )),
        Refused,
    )
)]
pub(crate) async fn asset(Name(name): Name) -> Result<Response, ApiError> {
    let found = ASSETS.iter().find(|(file, ..)| *file == name);
    let (_, kind, body) = found.ok_or_else(no_file)?;
    Ok(text(kind, body))
}

fn no_file() -> ApiError {
    ApiError::new(Code::InvalidReference, "file not found").with_status(StatusCode::NOT_FOUND)
}

fn text(kind: &'static str, body: &'static str) -> Response {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()).into());
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
