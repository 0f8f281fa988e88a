//! Requests to a URL of the operator that call no model.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use reqwest::{Method, redirect};

use super::{
    cause::root_cause,
    client::{USER_AGENT, install_crypto, is_local_host},
};

/// A request that calls no model.
#[derive(Debug, Clone, Default)]
pub struct PlainRequest {
    /// The method: `GET`, `POST`.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A complete response.
#[derive(Debug, Clone, Default)]
pub struct PlainResponse {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends requests to a URL that the operator set. Redirects are not followed.
#[derive(Debug, Clone)]
pub struct PlainClient {
    http: reqwest::Client,
    max_bytes: usize,
}

impl PlainClient {
    /// Creates a client for a server, with a time limit for each request and a limit for the bytes of a response. This
    /// machine is called directly, even if a proxy is set.
    ///
    /// # Errors
    /// If the URL is not valid, or the certificates of the system cannot be loaded.
    #[expect(clippy::disallowed_methods, reason = "its requests go to URLs of the operator")]
    pub fn new(base_url: &str, timeout: Duration, max_bytes: usize) -> Result<Self, String> {
        let url = reqwest::Url::parse(base_url).map_err(|error| format!("not a URL: {error}"))?;
        install_crypto();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never());
        if url.host_str().is_some_and(is_local_host) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]); // loading certificates takes longer than a request
        }
        let http = builder.build().map_err(|error| root_cause(&error))?;
        Ok(Self { http, max_bytes })
    }

    /// Sends a request, and reads the response to its end.
    ///
    /// # Errors
    /// If there is no complete response within the limits, with the reason.
    pub async fn send(&self, request: &PlainRequest) -> Result<PlainResponse, String> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut builder = self.http.request(method, &request.url).body(request.body.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let response = builder.send().await.map_err(|error| root_cause(&error))?;
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let headers = headers.collect();
        let mut chunks = response.bytes_stream();
        let mut body = Vec::new();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| root_cause(&error))? {
            let chunk: Bytes = chunk;
            if body.len() + chunk.len() > self.max_bytes {
                return Err(format!("the response has more than {} bytes", self.max_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(PlainResponse { status, headers, body })
    }
}
