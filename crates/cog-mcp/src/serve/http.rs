//! Streamable HTTP.

use std::{
    borrow::Cow,
    convert::Infallible,
    pin::{Pin, pin},
    str,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use cog_run::Code;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use rmcp::{
    RoleServer,
    service::{ServerInitializeError, serve_server_with_ct},
    transport::{
        async_rw::AsyncRwTransport,
        stdio_pipes,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
        },
    },
};
use serde::de::IgnoredAny;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{ModuleServer, Opening};
use crate::verbatim::{self, BUFFER, incoming_call, outgoing_result};

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

    /// Answers a request whose body is complete. Its extensions reach the settings of the call ([`ModuleServer::new`]). The first
    /// poll parses the body.
    pub async fn handle(
        &self,
        request: Request<Bytes>,
    ) -> Response<impl Body<Data = Bytes, Error = Infallible> + Send + use<>> {
        let has_parameters =
            request.headers().keys().any(|name| name.as_str().starts_with(PARAMETER_HEADERS));
        let is_message = request.method() == Method::POST;
        let (parts, body) = request.into_parts();
        let body = match String::from_utf8(body.into()) {
            Ok(body) => body,
            Err(error) => return InvalidMessage::Json(error.to_string()).response(),
        };
        if is_message && let Some(invalid) = InvalidMessage::find(&body) {
            return invalid.response();
        }
        // `rmcp` compares these headers with the arguments, which it cannot see in their text.
        let body = match incoming_call(&body) {
            Cow::Owned(changed) if !has_parameters => changed,
            _ => body,
        };
        let response = self.0.handle(Request::from_parts(parts, body)).await;
        match response.status() {
            // `rmcp` says so, in a text, of JSON that is not a message.
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_message => InvalidMessage::Form.response(),
            _ => response.map(VerbatimBody::new),
        }
    }
}

/// Why a body is not a message of JSON-RPC.
enum InvalidMessage {
    /// It is not JSON.
    Json(String),
    /// It is a batch, which the revision 2025-03-26 has and the next one, 2025-06-18, removed.
    Batch,
    /// It is JSON of another form.
    Form,
}

impl InvalidMessage {
    /// Returns what is wrong with a body before `rmcp` reads it; none for an object, whose members `rmcp` checks.
    fn find(body: &str) -> Option<Self> {
        match serde_json::from_str::<IgnoredAny>(body) {
            Err(error) => Some(Self::Json(error.to_string())),
            Ok(_) if body.trim_start().starts_with('[') => Some(Self::Batch),
            Ok(_) => None,
        }
    }

    /// Returns the response. The id is null, because the id of the request is not known.
    fn response<B>(self) -> Response<VerbatimBody<B>> {
        let (code, name, message) = match self {
            Self::Json(error) => (-32700, Code::ParseError, format!("the body is not JSON: {error}")),
            Self::Batch => {
                let message = "batches are not supported, which the revision 2025-06-18 removed: send each message in a request of its own";
                (-32600, Code::UnsupportedValue, message.to_owned())
            }
            Self::Form => {
                let message = "the body is not a request, a notification or a response of JSON-RPC 2.0";
                (-32600, Code::InvalidInput, message.to_owned())
            }
        };
        let error =
            serde_json::json!({ "code": code, "message": message, "data": { "code": name.as_str() } });
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
        let mut response = Response::new(VerbatimBody::complete(body));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// How the headers begin that repeat arguments (SEP-2243).
const PARAMETER_HEADERS: &str = "mcp-param-";

/// The body of a response: one message, or events. Each message is a line.
struct VerbatimBody<B> {
    /// None at its end.
    body: Option<B>,
    /// The line that is not complete.
    line: Vec<u8>,
}

impl<B> VerbatimBody<B> {
    fn new(body: B) -> Self {
        Self { body: Some(body), line: Vec::new() }
    }

    /// Returns a body that is complete, and not changed.
    fn complete(text: String) -> Self {
        Self { body: None, line: text.into() }
    }

    /// Returns the complete lines of what has arrived, changed; at the end also the last one.
    fn take_lines(&mut self, arrived: &[u8]) -> Option<Frame<Bytes>> {
        let is_end = self.body.is_none();
        let mut lines = Vec::new();
        for part in arrived.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                lines.extend(changed(&std::mem::take(&mut self.line)));
            }
        }
        if is_end {
            lines.extend(changed(&std::mem::take(&mut self.line)));
        }
        (!lines.is_empty()).then(|| Frame::data(lines.into()))
    }
}

/// Returns a line with the message in it changed.
fn changed(line: &[u8]) -> Vec<u8> {
    let Ok(line) = str::from_utf8(line) else { return line.to_vec() };
    let message = line.strip_prefix("data:").unwrap_or(line);
    let (field, _) = line.split_at(line.len() - message.len());
    [field, &outgoing_result(message)].concat().into_bytes()
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for VerbatimBody<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let Some(body) = &mut self.body else {
                let rest = std::mem::take(&mut self.line);
                return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest.into()))));
            };
            let frame = match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.take_lines(&data),
                    Err(trailers) => Some(trailers),
                },
                Some(Err(never)) => match never {},
                None => {
                    self.body = None;
                    return Poll::Ready(self.take_lines(&[]).map(Ok));
                }
            };
            if let Some(frame) = frame {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

// Messages as lines: of standard input and output, or of any other pair of streams.

/// The maximum length of a message, in bytes. A longer one is dropped, and the connection stays open.
const MAX_MESSAGE: u64 = 32 << 20;
/// The maximum time that the last messages wait for a client that does not read them.
const MAX_LAST: Duration = Duration::from_secs(1);

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
        let (read, from_client) = duplex(BUFFER);
        let (write, to_client) = duplex(BUFFER);
        let mut reading = JoinSet::new();
        let mut writing = JoinSet::new();
        reading.spawn(async move {
            verbatim::pass(input, from_client, MAX_MESSAGE, incoming_call, |_, _| None).await
        });
        writing.spawn(async move {
            verbatim::pass(to_client, output, u64::MAX, outgoing_result, |_, _| None).await
        });
        // The pipe has dropped messages that are too long.
        let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(usize::MAX);
        let served = self.serve_transport(transport, stop).await;
        // The transport is closed by now, so that this ends once the client has the last message.
        let _ = timeout(MAX_LAST, writing.join_next()).await;
        served
    }

    async fn serve_transport(
        self,
        transport: AsyncRwTransport<RoleServer, DuplexStream, DuplexStream>,
        stop: CancellationToken,
    ) -> Result<(), String> {
        match serve_server_with_ct(self, Opening::new(transport), stop).await {
            Ok(service) => service.waiting().await.map(drop).map_err(|error| error.to_string()),
            // The client closed the connection before its first request.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
