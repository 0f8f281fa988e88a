//! The pages: the workbench, which runs modules, and the API reference. They load nothing from other hosts, and contain nothing
//! that needs a token.
//!
//! `without_scripts`: the modules as plain HTML.

mod without_scripts;

use axum::{
    body::Bytes,
    extract::{Query, State},
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
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A module of the workbench.
macro_rules! script {
    ($name:literal) => {
        ($name, SCRIPT, include_str!(concat!("../../pages/workbench/", $name)))
    };
}

/// The files of the pages.
const ASSETS: [(&str, &str, &str); 26] = [
    ("page.css", CSS, include_str!("../../pages/page.css")),
    ("docs.js", SCRIPT, include_str!("../../pages/docs.js")),
    script!("answer.js"),
    script!("api.js"),
    script!("charts.js"),
    script!("compare.js"),
    script!("diff.js"),
    script!("dom.js"),
    script!("fold.js"),
    script!("form.js"),
    script!("help.js"),
    script!("highlight.js"),
    script!("input.js"),
    script!("main.js"),
    script!("media.js"),
    script!("modules.js"),
    script!("operator.js"),
    script!("path.js"),
    script!("run.js"),
    script!("schema.js"),
    script!("state.js"),
    script!("tests.js"),
    script!("texts.js"),
    script!("tree.js"),
    script!("trust.js"),
    script!("write.js"),
];

/// Whether a path needs no token: a token is entered in the pages.
pub(crate) fn is_public(path: &str) -> bool {
    matches!(path, "/" | "/docs" | "/openapi.json") || path.starts_with("/assets/")
}

/// Returns the workbench, a page that runs modules; for programs, general information and the list of routes.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "index",
    tag = "about",
    params(("module" = Option<String>, Query, description = "The module that the page shows")),
    responses(
        (status = 200, description = "A page, or API information", content(
            (ref("#/components/schemas/ApiInformation") = "application/json"),
            (String = "text/html"),
        )),
        Refused,
    )
)]
pub(crate) async fn index(
    State(app): State<App>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    if !Accept::is_page(&headers) {
        return super::about::information(app.paths);
    }
    let module = query.iter().find(|(key, _)| key == "module").map(|(_, name)| name.as_str());
    page(HTML, Bytes::from(without_scripts::workbench(&app, module).await))
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
    params(("file" = String, Path, description = "The name of the file", pattern = r"^(page\.css|(docs|answer|api|charts|compare|diff|dom|fold|form|help|highlight|input|main|media|modules|operator|path|run|schema|state|tests|texts|tree|trust|write)\.js)$")),
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
    page(kind, Bytes::from_static(body.as_bytes()))
}

fn page(kind: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(body.into());
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
