//! The routes of docs/spec/http.md, one file per family.

pub(crate) mod about;
pub(crate) mod execute;
pub(crate) mod feedback;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod media;
pub(crate) mod pages;
pub(crate) mod workbench;

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode},
    middleware::from_fn_with_state,
};
use cog_spec::Code;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{error::ApiError, guard, openapi::document_text, state::App, vendor_api};

// The routes. Each handler describes itself with `#[utoipa::path]`, so that router and OpenAPI document agree.

/// Returns the router with its guard.
pub(crate) fn build(app: App) -> Router {
    let router = match app.only_mcp {
        false => vendor_api::add(Router::from(described())),
        true => Router::from(health()),
    };
    let router = match app.bench.is_some() {
        true => router.merge(Router::from(workbench::described())),
        false => router,
    };
    #[cfg(feature = "mcp")]
    let router = mcp::add(router, &app);
    let router = router.fallback(unknown_route).method_not_allowed_fallback(unknown_method);
    let guard = from_fn_with_state(app.guard.clone(), guard::enter);
    router.layer(guard).with_state(app)
}

/// Returns the OpenAPI 3.1 document of every server, as JSON with a newline at the end.
pub fn openapi() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| document_text(described().merge(workbench::described()).into_openapi()));
    &TEXT
}

/// The routes that are not in the OpenAPI document, because another specification describes them.
fn further() -> impl Iterator<Item = &'static str> {
    #[cfg(feature = "mcp")]
    let mcp = [mcp::PATH];
    #[cfg(not(feature = "mcp"))]
    let mcp = [];
    vendor_api::PATHS.iter().copied().chain(mcp)
}

/// Returns the paths of all routes, with their parameters in braces.
pub(crate) fn paths(has_workbench: bool) -> &'static [String] {
    static PATHS: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| {
        let usual = described().into_openapi().paths.paths;
        let usual: Vec<String> = usual.keys().cloned().chain(further().map(str::to_owned)).collect();
        let bench = workbench::described().into_openapi().paths.paths;
        let all = usual.iter().cloned().chain(bench.keys().cloned()).collect();
        [usual, all]
    });
    let [usual, all] = &*PATHS;
    if has_workbench { all } else { usual }
}

/// The routes that every server has.
fn health() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(about::health)).routes(routes!(about::ready))
}

/// The routes with the descriptions of their handlers.
fn described() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(pages::index))
        .routes(routes!(pages::docs))
        .routes(routes!(pages::document))
        .routes(routes!(pages::asset))
        .merge(health())
        .routes(routes!(about::card))
        .routes(routes!(about::declared))
        .routes(routes!(about::metrics))
        .routes(routes!(about::list_modules))
        .routes(routes!(about::show_module))
        .routes(routes!(execute::execute))
        .routes(routes!(execute::socket))
        .routes(routes!(execute::show, execute::cancel))
        .routes(routes!(execute::events))
        .routes(routes!(feedback::create))
        .routes(routes!(media::create))
        .routes(routes!(media::upload))
        .routes(routes!(media::show, media::remove))
        .routes(routes!(execute::run))
        .routes(routes!(about::list_modules_older))
        .routes(routes!(about::show_module_older))
}

async fn unknown_route(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(200).collect();
    ApiError::new(Code::InvalidReference, format!("route not found: `{}`", path.escape_debug()))
        .suggest("GET / lists all routes.")
        .with_status(StatusCode::NOT_FOUND)
}

async fn unknown_method(method: Method) -> ApiError {
    ApiError::new(Code::UnsupportedValue, format!("method not allowed: {method}"))
        .suggest("Use a method that the header Allow lists.")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
}
