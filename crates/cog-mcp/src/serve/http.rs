//! Streamable HTTP.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};

use super::ModuleServer;

/// The settings of streamable HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The interval of keep-alives in a stream without messages.
    pub keepalive_interval: Duration,
}

/// Answers requests of streamable HTTP, each on its own: there are no sessions, also not for clients of older revisions.
///
/// The caller checks Host, Origin and tokens, and limits the body.
#[derive(Clone)]
pub struct McpHttp(StreamableHttpService<ModuleServer, NeverSessionManager>);

impl HttpSettings {
    /// The settings with this interval of keep-alives.
    pub fn new(keepalive_interval: Duration) -> Self {
        Self { keepalive_interval }
    }
}

impl McpHttp {
    /// Serves these modules.
    pub fn new(server: ModuleServer, settings: &HttpSettings) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(Some(settings.keepalive_interval))
            .with_max_request_body_bytes(usize::MAX)
            .disable_allowed_hosts();
        Self(StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config))
    }

    /// Answers a request. Its extensions reach the settings of the call ([`ModuleServer::new`]).
    pub async fn handle<B>(
        &self,
        request: Request<B>,
    ) -> Response<impl Body<Data = Bytes, Error = Infallible> + Send + use<B>>
    where
        B: Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.0.handle(request).await
    }
}
