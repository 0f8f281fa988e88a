//! The modules as tools of MCP (docs/mcp.md).

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Method, request::Parts},
    response::{IntoResponse as _, Response},
    routing::any,
};
use cog_mcp::{CallSettings, HttpSettings, McpHttp, ModuleServer};
use cog_spec::ErrorBody;

use crate::{
    error::ApiError,
    request::{self, MediaOutput, Options},
    state::{App, Caller, client},
};

/// The path of the route.
pub(crate) const PATH: &str = "/mcp";

/// How a person continues a run if the client has no elicitation.
const ADVICE: &str = "A person checks the arguments, and continues the run: `POST /v1/modules/MODULE/execute` with \
    `{\"_continue\": {\"id\": \"ID\", \"confirm\": \"YES\"}}`. Or use a client that supports elicitation of revision 2026-07-28.";

/// Adds the route.
pub(crate) fn add(router: Router<App>, app: &App) -> Router<App> {
    let shared = app.clone();
    let server = ModuleServer::new(app.runtime.clone(), move |parts| settings(&shared, parts));
    let server = if app.settings.mcp_skills { server.with_skills() } else { server };
    let http = McpHttp::new(server, &HttpSettings::new(app.settings.keepalive_interval));
    let app = app.clone();
    router.route(PATH, any(async move |request: Request| answer(&app, &http, request).await))
}

async fn answer(app: &App, http: &McpHttp, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = match read(app, &mut parts, body).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    http.handle(Request::from_parts(parts, body)).await.map(Body::new)
}

/// Reads the body of a message within the limits of the server. Its memory is in use until the call has ended.
async fn read(app: &App, parts: &mut Parts, body: Body) -> Result<Body, ApiError> {
    if parts.method != Method::POST {
        return Ok(Body::empty());
    }
    let client = client(&parts.extensions);
    let (bytes, lease) = request::read(&parts.headers, body, &app.guard.bodies, &client).await?;
    parts.extensions.insert(Arc::new(lease));
    Ok(Body::from(bytes))
}

/// Returns what a call may use: the same as that of a request to the execute route.
fn settings(app: &App, parts: Option<&Parts>) -> Result<CallSettings, ErrorBody> {
    let Some(parts) = parts else { return Ok(CallSettings::default()) };
    let caller = Caller::from_extensions(&parts.extensions);
    let slot = app.guard.slots.take(&caller.client).map_err(|refusal| refusal.error().clone())?;
    // An image is content of the result.
    let mut options = Options { media: MediaOutput::Base64, ..Options::default() };
    app.own(&mut options, &caller);
    Ok(CallSettings {
        options: options.run,
        held: Some(Box::new(slot)),
        shutdown: app.guard.drain.over.clone(),
        confirmation_advice: Some(ADVICE.to_owned()),
    })
}
