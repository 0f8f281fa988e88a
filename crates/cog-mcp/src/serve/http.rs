//! Streamable HTTP.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::{
        async_rw::AsyncRwTransport,
        stdio_pipes,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
        },
    },
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{ModuleServer, handler::Opening};

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

// Messages as lines: of standard input and output, or of any other pair of streams.

/// The maximum length of a message, in bytes. A longer one is dropped, and the connection stays open.
const MAX_MESSAGE: usize = 32 << 20;

impl ModuleServer {
    /// Serves the client at standard input and output, until it closes them or `shutdown` is ready. Nothing else may write
    /// to standard output.
    ///
    /// # Errors
    /// The client does not follow the protocol, or is gone.
    pub async fn serve_stdio(self, shutdown: impl Future<Output = ()>) -> Result<(), String> {
        let (input, output) = stdio_pipes();
        self.serve_streams(input, output, shutdown).await
    }

    /// Serves the client at these streams.
    ///
    /// # Errors
    /// The client does not follow the protocol, or is gone.
    pub async fn serve_streams(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), String> {
        let stop = CancellationToken::new();
        let mut serving = pin!(self.serve_until(input, output, stop.clone()));
        tokio::select! {
            served = &mut serving => return served,
            () = shutdown => stop.cancel(),
        }
        serving.await
    }

    async fn serve_until(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), String> {
        let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
        match serve_server_with_ct(self, Opening::new(transport), stop).await {
            Ok(service) => service.waiting().await.map(drop).map_err(|error| error.to_string()),
            // The client closed the connection before its first request.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
