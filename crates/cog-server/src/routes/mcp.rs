//! The modules as tools of MCP (docs/mcp.md).

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderValue, Method, Request, header, request::Parts},
    response::{IntoResponse as _, Response},
    routing::any,
};
use cog_mcp::{CallSettings, HttpSettings, McpHttp, ModuleServer};
use cog_spec::ErrorBody;

use crate::{
    error::ApiError,
    guard::BodyLease,
    request::{self, MediaOutput, Options},
    state::{App, Caller, client},
};

/// The path of the route.
pub(crate) const PATH: &str = "/mcp";

/// How a run continues if the client has no elicitation. A model reads it, so it does not say how a call is confirmed.
const ADVICE: &str = "A person checks the arguments and continues the run over the execute route of the module. Or use a client \
    that supports elicitation of revision 2026-07-28.";

/// Adds the route.
pub(crate) fn add(router: Router<App>, app: &App) -> Router<App> {
    let shared = app.clone();
    let server = ModuleServer::new(app.runtime.clone(), move |parts| settings(&shared, parts));
    let server = if app.settings.mcp_skills { server.with_skills() } else { server };
    let http = McpHttp::new(server, &HttpSettings::new(app.settings.keepalive_interval));
    let app = app.clone();
    router.route(PATH, any(async move |request: Request<Body>| answer(&app, &http, request).await))
}

async fn answer(app: &App, http: &McpHttp, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return http.handle(Request::from_parts(parts, Bytes::new())).await.map(Body::new);
    }
    let client = client(&parts.extensions);
    let http = http.clone();
    let headers = parts.headers.clone();
    let begun = request::read(app, &client, &headers, body, move |body: Bytes, lease: BodyLease| {
        // The memory of the body is in use until the call has ended.
        parts.extensions.insert(Arc::new(lease));
        // The type has been checked, and may be another one of JSON. `rmcp` accepts this one.
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok::<_, ApiError>(Answer::begin(http, Request::from_parts(parts, body)))
    });
    match begun.await {
        Ok(Answer::Done(response)) => response,
        Ok(Answer::Waiting(answer)) => answer.await,
        Err(error) => error.into_response(),
    }
}

/// The answer to a message that has been parsed.
enum Answer {
    Done(Response),
    /// The call of a tool is running.
    Waiting(Pin<Box<dyn Future<Output = Response> + Send>>),
}

impl Answer {
    /// Parses a message, on this thread. The library parses it in the first poll, because all bytes of the body are there.
    fn begin(http: McpHttp, request: Request<Bytes>) -> Self {
        let mut answer: Pin<Box<dyn Future<Output = Response> + Send>> =
            Box::pin(async move { http.handle(request).await.map(Body::new) });
        // Its next poll follows at once, so that this one needs no waker.
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => Self::Done(response),
            Poll::Pending => Self::Waiting(answer),
        }
    }
}

/// Returns what a call may use: the same as a request to the execute route.
fn settings(app: &App, parts: Option<&Parts>) -> Result<CallSettings, ErrorBody> {
    let Some(parts) = parts else { return Ok(CallSettings::default()) };
    let caller = Caller::from_extensions(&parts.extensions);
    let slot = app.guard.slots.take(&caller.client).map_err(|refusal| refusal.error().clone())?;
    // An image is content of the result.
    let mut options = Options { media: MediaOutput::Base64, ..Options::default() };
    options.set_caller(app, &caller);
    Ok(CallSettings {
        options: options.run,
        context: options.context,
        held: Some(Box::new(slot)),
        shutdown: app.guard.drain.over.clone(),
        confirmation_advice: Some(ADVICE.to_owned()),
    })
}
