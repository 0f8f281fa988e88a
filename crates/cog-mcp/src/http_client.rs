//! The HTTP client of the connection to a server. It sends calls itself, so that arguments and results stay as they were written,
//! and leaves all other messages to `rmcp`.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use reqwest::{Client, RequestBuilder, Response, redirect::Policy};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage},
    transport::auth::AuthError,
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
        StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use sse_stream::{Sse, SseStream};

use crate::{
    oauth::Authorization,
    shared::Shared,
    tls,
    verbatim::{incoming, incoming_result, outgoing_call},
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION_ID: &str = "mcp-session-id";
const MAX_REDIRECTS: usize = 10;

type Headers = HashMap<HeaderName, HeaderValue>;
pub(crate) type HttpError = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

#[derive(Clone)]
pub(crate) struct VerbatimClient {
    client: Client,
    shared: Arc<Shared>,
    /// None for a server whose token the operator set.
    authorization: Option<Arc<Authorization>>,
}

impl VerbatimClient {
    /// Creates a client. It follows redirects that repeat the request at the same origin, and no others.
    #[expect(clippy::disallowed_methods, reason = "its requests go to MCP servers of the operator")]
    pub(crate) fn new(shared: Arc<Shared>, authorization: Option<Authorization>) -> reqwest::Result<Self> {
        tls::install();
        let redirect = Policy::custom(|attempt| {
            let is_repeated =
                matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let first = attempt.previous().first();
            let is_here = first.is_some_and(|first| first.origin() == attempt.url().origin());
            match is_repeated && is_here {
                true if attempt.previous().len() > MAX_REDIRECTS => attempt.error("too many redirects"),
                true => attempt.follow(),
                false => attempt.stop(),
            }
        });
        // A connection whose last response was not read to its end would delay the next request.
        let client = Client::builder().pool_max_idle_per_host(0).redirect(redirect).build()?;
        Ok(Self { client, shared, authorization: authorization.map(Arc::new) })
    }

    /// Sends a request with the token of the server. If the server rejects it, the token is renewed, and the request repeated once.
    async fn authorized<T, F>(
        &self,
        token: Option<String>,
        send: impl Fn(Option<String>) -> F + Send + Sync,
    ) -> Result<T, HttpError>
    where
        T: Send,
        F: Future<Output = Result<T, HttpError>> + Send,
    {
        let Some(authorization) = &self.authorization else { return send(token).await };
        let token = authorization.token().await?;
        let rejected = match send(token.clone()).await {
            Err(error) if is_unauthorized(&error) => error,
            answered => return answered,
        };
        let token = match authorization.renew(token.as_deref()).await {
            // Nobody has signed in: the server's own words say more.
            Err(AuthError::AuthorizationRequired) if !has_challenge(&rejected) => return Err(rejected),
            renewed => renewed?,
        };
        match send(Some(token.clone())).await {
            Err(error) if is_unauthorized(&error) => Err(authorization.refuse(token).into()),
            answered => answered,
        }
    }

    /// Sends a call with its arguments as the model wrote them.
    async fn call(
        &self,
        request: RequestBuilder,
        has_session: bool,
        message: &ClientJsonRpcMessage,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let text = serde_json::to_string(message)?;
        let response = request.body(outgoing_call(&text).into_owned()).send().await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if has_session => Err(HttpError::SessionExpired),
            status if status.is_success() => reply(response, limits, &self.shared).await,
            _ => failed(response, limits).await,
        }
    }

    /// Returns the request of a message, without its body.
    fn post(
        &self,
        uri: &str,
        session_id: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> RequestBuilder {
        let mut request = self.client.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        request = request.header(CONTENT_TYPE, JSON).headers(headers.into_iter().collect());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        match session_id {
            Some(id) => request.header(SESSION_ID, id),
            None => request,
        }
    }
}

/// Reads the reply to a call.
async fn reply(
    response: Response,
    limits: StreamableHttpResponseLimits,
    shared: &Arc<Shared>,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let session_id = header(&response, SESSION_ID);
    if is(&response, EVENTS) {
        let bytes = bounded(response.bytes_stream(), limits.max_sse_event_size);
        let events = SseStream::from_bytes_stream(bytes).boxed();
        return Ok(StreamableHttpPostResponse::Sse(verbatim(events, Arc::clone(shared)), session_id));
    }
    if !is(&response, JSON) {
        return Err(HttpError::UnexpectedContentType(header(&response, CONTENT_TYPE.as_str())));
    }
    let max_size = limits.max_json_response_size;
    let body = body(response, max_size).await?.ok_or(HttpError::ResponseBodyTooLarge { max_size })?;
    let text = String::from_utf8_lossy(&body);
    let message = serde_json::from_str(&incoming_result(&text));
    let message = message.map_err(|error| HttpError::UnexpectedServerResponse(error.to_string().into()))?;
    Ok(StreamableHttpPostResponse::Json(message, session_id))
}

/// Reads the response to a call that failed: an error of the protocol, or one of HTTP.
async fn failed(
    response: Response,
    limits: StreamableHttpResponseLimits,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    let challenge = header(&response, WWW_AUTHENTICATE.as_str());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(HttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            return Err(HttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)));
        }
        _ => {}
    }
    let retry_after = header(&response, RETRY_AFTER.as_str());
    let unavailable = (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
        .then(|| HttpStatusError::new(status.as_u16(), retry_after));
    let is_refused =
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
    let session_id = header(&response, SESSION_ID);
    let body = if is(&response, JSON) && !is_refused {
        let body = body(response, limits.max_json_response_size).await?.unwrap_or_default();
        if let Ok(message @ JsonRpcMessage::Error(_)) = serde_json::from_slice::<ServerJsonRpcMessage>(&body)
        {
            return Ok(StreamableHttpPostResponse::Json(message, session_id));
        }
        body
    } else if unavailable.is_none() {
        beginning(response, limits.max_error_response_size).await?
    } else {
        Vec::new() // the status says it all, and a server that is overloaded may never end its body
    };
    if let Some(unavailable) = unavailable {
        return Err(unavailable.into());
    }
    let shown = body.get(..limits.max_error_response_size).unwrap_or(&body);
    let message = format!("HTTP {status}: {}", String::from_utf8_lossy(shown));
    Err(HttpError::UnexpectedServerResponse(message.into()))
}

/// Reads the beginning of a body, for a message about it.
async fn beginning(response: Response, max_size: usize) -> Result<Vec<u8>, HttpError> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while body.len() < max_size
        && let Some(chunk) = stream.next().await
    {
        body.extend_from_slice(&chunk?);
    }
    Ok(body)
}

/// Reads a body; none if it is too large.
async fn body(response: Response, max_size: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > max_size {
            return Ok(None);
        }
    }
    Ok(Some(body))
}

/// Ends a stream with an error before an event is too large.
fn bounded(
    stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    max_size: usize,
) -> BoxStream<'static, std::io::Result<Bytes>> {
    let mut event = 0;
    let mut line = 0;
    let mut follows_return = false;
    let checked = stream.map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        for byte in &chunk {
            // A line ends with `\n`, `\r\n`, or `\r` alone. An empty one ends an event.
            let is_second = *byte == b'\n' && follows_return;
            follows_return = *byte == b'\r';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    event = if line == 0 { 0 } else { event + line + 1 };
                    line = 0;
                }
                _ => line += 1,
            }
            if event + line > max_size {
                return Err(std::io::Error::other("an event of the stream is too large"));
            }
        }
        Ok(chunk)
    });
    checked.boxed()
}

/// Returns the events with their messages changed, as the pipe of a program changes its lines.
fn verbatim(events: Events, shared: Arc<Shared>) -> Events {
    events
        .map(move |event| {
            let mut event = event?;
            event.data = event.data.map(|data| incoming(&data, &shared).into_owned());
            Ok(event)
        })
        .boxed()
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Returns whether a server rejects a token.
fn is_unauthorized(error: &HttpError) -> bool {
    match error {
        HttpError::AuthRequired(_) => true,
        HttpError::UnexpectedServerResponse(message) => message.starts_with("HTTP 401"),
        _ => false,
    }
}

/// Returns whether a server that rejects a token says how to get one.
fn has_challenge(error: &HttpError) -> bool {
    matches!(error, HttpError::AuthRequired(_))
}

/// Whether a response has a content type.
fn is(response: &Response, content_type: &str) -> bool {
    let given = header(response, CONTENT_TYPE.as_str()).unwrap_or_default();
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(content_type))
}

impl StreamableHttpClient for VerbatimClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let is_call = matches!(&message, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::CallToolRequest(_)));
        let message = &message;
        self.authorized(token, |token| {
            let uri = Arc::clone(&uri);
            let session_id = session_id.clone();
            let headers = headers.clone();
            async move {
                if is_call {
                    let request = self.post(&uri, session_id.as_deref(), token, headers);
                    return self.call(request, session_id.is_some(), message, limits).await;
                }
                let message = message.clone();
                self.client
                    .post_message_with_response_limits(uri, message, session_id, token, headers, limits)
                    .await
            }
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        let size = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, token, headers, size).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
        size: usize,
    ) -> Result<Events, HttpError> {
        let events = self.authorized(token, |token| {
            let uri = Arc::clone(&uri);
            let last = last_event_id.clone();
            let session_id = session_id.clone();
            let headers = headers.clone();
            self.client.get_stream_with_max_sse_event_size(uri, session_id, last, token, headers, size)
        });
        Ok(verbatim(events.await?, Arc::clone(&self.shared)))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.authorized(token, |token| {
            self.client.delete_session(Arc::clone(&uri), Arc::clone(&session_id), token, headers.clone())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        net::TcpListener,
    };

    use super::*;

    /// Answers one request with a redirect.
    fn redirect(listener: &TcpListener, location: &str) {
        let (mut stream, _) = listener.accept().unwrap();
        let head = BufReader::new(&stream).lines().take_while(|line| !line.as_ref().unwrap().is_empty());
        assert!(head.count() > 0);
        let head =
            format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
    }

    #[tokio::test]
    async fn redirect_to_another_origin_is_not_followed() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [first, other] = listeners.each_ref().map(|it| format!("http://{}", it.local_addr().unwrap()));
        let [server, unused] = listeners;
        let (here, elsewhere) = (format!("{first}/b"), format!("{other}/c"));
        let server = std::thread::spawn(move || {
            redirect(&server, &here);
            redirect(&server, &elsewhere);
        });
        let client = VerbatimClient::new(Arc::default(), None).unwrap();
        let token = Some("token-canary".to_owned());
        let request = client.post(&format!("{first}/a"), None, token, Headers::new());
        let response = request.send().await.unwrap();
        server.join().unwrap();
        assert_eq!((response.status().as_u16(), response.url().path()), (307, "/b"));
        unused.set_nonblocking(true).unwrap();
        assert!(unused.accept().is_err(), "the other origin was called");
    }

    async fn passes(text: &'static str, max_size: usize) -> bool {
        // Each byte is a chunk, so that no end of a line is seen at once.
        let chunks = text.as_bytes().chunks(1).map(|chunk| Ok(Bytes::from_static(chunk)));
        bounded(futures_util::stream::iter(chunks), max_size)
            .all(|chunk| std::future::ready(chunk.is_ok()))
            .await
    }

    #[tokio::test]
    async fn each_event_has_the_limit_and_the_stream_has_none() {
        for end in ["\n", "\r\n", "\r"] {
            let events: &'static str = format!("data: 123456{end}{end}").repeat(100).leak();
            assert!(passes(events, 13).await && !passes(events, 11).await, "{end:?}");
            let lines: &'static str = format!("data: 1{end}data: 2{end}data: 3{end}").leak();
            assert!(!passes(lines, 20).await, "{end:?}");
        }
    }
}
