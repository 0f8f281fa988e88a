//! Which path leads where. Each handler says what it is by `#[utoipa::path]`, so that the OpenAPI document and the
//! router are one.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode},
    middleware::from_fn_with_state,
};
use cog_spec::Code;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    error::ApiError,
    guard,
    routes::{about, execute, legacy, media, modules, pages, sessions, socket},
    state::App,
};

/// The routes, and their OpenAPI document.
pub(crate) fn build(app: App) -> (Router, OpenApi) {
    let (router, openapi) = described().split_for_parts();
    let router = router.fallback(unknown_route).method_not_allowed_fallback(unknown_method);
    let guard = from_fn_with_state(app.guard.clone(), guard::enter);
    (router.layer(guard).with_state(app), openapi)
}

/// The paths that there are, with their variable parts in braces.
pub(crate) fn paths() -> &'static [String] {
    static PATHS: LazyLock<Vec<String>> =
        LazyLock::new(|| described().into_openapi().paths.paths.keys().cloned().collect());
    &PATHS
}

/// The routes with what their handlers say of them.
pub(crate) fn described() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(pages::index))
        .routes(routes!(pages::docs))
        .routes(routes!(pages::document))
        .routes(routes!(pages::asset))
        .routes(routes!(about::health))
        .routes(routes!(about::ready))
        .routes(routes!(about::declared))
        .routes(routes!(about::metrics))
        .routes(routes!(modules::list))
        .routes(routes!(modules::show))
        .routes(routes!(execute::execute))
        .routes(routes!(socket::socket))
        .routes(routes!(sessions::show, sessions::cancel))
        .routes(routes!(sessions::events))
        .routes(routes!(media::create))
        .routes(routes!(media::upload))
        .routes(routes!(media::show))
        .routes(routes!(legacy::run))
        .routes(routes!(legacy::list))
        .routes(routes!(legacy::show))
}

async fn unknown_route(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(200).collect();
    ApiError::new(Code::InvalidReference, format!("there is no route `{}`", path.escape_debug()))
        .suggest("GET / lists the routes")
        .with_status(StatusCode::NOT_FOUND)
}

async fn unknown_method(method: Method) -> ApiError {
    ApiError::new(Code::UnsupportedValue, format!("this route does not take {method}"))
        .suggest("the header Allow says what it takes")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
}
