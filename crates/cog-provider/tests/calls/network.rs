//! Tests for the environment variables that the HTTP client reads itself: proxies and certificate authorities.
//!
//! The environment belongs to a process, so each test runs a new process of this test binary.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
};

use cog_provider::{ConnectErrorKind, HttpProvider, ProviderError};
use cog_spec::ModelEvent;

use crate::support::{events_of, settings, simple_request, vendor};
use cog_testkit::{Mock, Wire};

#[test]
fn https_proxy_is_used_for_https() {
    let line = seen_by_proxy("HTTPS_PROXY", "network::calls_over_https");
    assert_eq!(line, "CONNECT vendor.invalid:443 HTTP/1.1");
}

#[test]
fn http_proxy_is_used_for_http() {
    let line = seen_by_proxy("HTTP_PROXY", "network::calls_over_http");
    assert_eq!(line, "POST http://vendor.invalid/v1/chat/completions HTTP/1.1");
}

#[tokio::test]
#[ignore = "started by https_proxy_is_used_for_https"]
async fn calls_over_https() {
    let error = call_at("https://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(error, ProviderError::Connect { kind: ConnectErrorKind::Proxy, .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("through the proxy http://127.0.0.1:") && message.contains("(HTTPS_PROXY)"),
        "{message}"
    );
    assert!(error.suggestion().unwrap().contains("NO_PROXY"));
}

#[test]
fn proxy_that_does_not_respond_is_named() {
    // Nothing listens at port 1. The password must not be in the message.
    let proxy = "http://me:canary@127.0.0.1:1";
    let status = child("network::calls_through_no_proxy").env("ALL_PROXY", proxy).status();
    assert!(status.unwrap().success());
}

#[tokio::test]
#[ignore = "started by proxy_that_does_not_respond_is_named"]
async fn calls_through_no_proxy() {
    let error = call_at("https://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(error, ProviderError::Connect { kind: ConnectErrorKind::Proxy, .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("through the proxy http://127.0.0.1:1 (ALL_PROXY): "), "{message}");
    assert!(!message.contains("canary"), "{message}");
}

#[tokio::test]
#[ignore = "started by http_proxy_is_used_for_http"]
async fn calls_over_http() {
    let error = call_at("http://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(error, ProviderError::Connect { kind: ConnectErrorKind::Proxy, .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("http://vendor.invalid/v1/chat/completions through the proxy http://127.0.0.1:"),
        "{message}"
    );
    assert!(message.ends_with("(HTTP_PROXY): status 502"), "{message}");
}

#[test]
fn missing_list_of_authorities_is_reported() {
    let status = child("network::calls_without_authorities").env("SSL_CERT_FILE", "/no/such/file").status();
    assert!(status.unwrap().success());
}

#[tokio::test]
#[ignore = "started by missing_list_of_authorities_is_reported"]
async fn calls_without_authorities() {
    let error = call_at("https://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(error, ProviderError::Connect { kind: ConnectErrorKind::Certificate, .. }), "{error}");
    assert!(error.suggestion().unwrap().contains("SSL_CERT_FILE"));
}

#[tokio::test]
async fn server_without_tls_is_called_once() {
    let mock = Mock::start([]);
    let base_url = mock.base_url(Wire::OpenAi).replace("http:", "https:");
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings(&base_url)).unwrap();
    let error = events_of(&provider, &simple_request()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Connect { kind: ConnectErrorKind::Tls, .. }), "{error}");
    assert!(!error.recoverable());
}

async fn call_at(base_url: &str) -> Result<Vec<ModelEvent>, ProviderError> {
    let settings = cog_provider::vendors::ProviderSettings { retries: 0, ..settings(base_url) };
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    events_of(&provider, &simple_request()).await
}

/// Returns the first line that a proxy receives while the named test runs with the variable set to its URL.
fn seen_by_proxy(variable: &str, test: &str) -> String {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap();
    let mut process = child(test).env(variable, format!("http://{port}")).spawn().unwrap();
    // Unblocks the proxy if the child process never connects.
    let waiter = std::thread::spawn(move || {
        let status = process.wait().unwrap();
        drop(TcpStream::connect(port));
        assert!(status.success());
    });
    let (mut client, _) = proxy.accept().unwrap();
    let mut start = [0; 1024];
    let length = client.read(&mut start).unwrap();
    client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(client);
    waiter.join().unwrap();
    String::from_utf8_lossy(&start[..length]).lines().next().unwrap_or_default().to_owned()
}

/// Creates a command that runs one test of this binary in its own environment.
fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]).env_clear();
    command
}
