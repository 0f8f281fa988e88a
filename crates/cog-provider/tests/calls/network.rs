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

use crate::support::{ask, question, settings, vendor};
use cog_testkit::{Mock, Wire};

#[test]
fn https_proxy_is_used_for_https() {
    let line = seen_by_proxy("HTTPS_PROXY", "network::asks_over_https");
    assert_eq!(line, "CONNECT vendor.invalid:443 HTTP/1.1");
}

#[test]
fn http_proxy_is_used_for_http() {
    let line = seen_by_proxy("HTTP_PROXY", "network::asks_over_http");
    assert_eq!(line, "POST http://vendor.invalid/v1/chat/completions HTTP/1.1");
}

#[tokio::test]
#[ignore = "started by https_proxy_is_used_for_https"]
async fn asks_over_https() {
    let refused = ask_at("https://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(refused, ProviderError::Connect { kind: ConnectErrorKind::Proxy, .. }), "{refused}");
    assert!(refused.suggestion().unwrap().contains("HTTPS_PROXY"));
}

#[tokio::test]
#[ignore = "started by http_proxy_is_used_for_http"]
async fn asks_over_http() {
    ask_at("http://vendor.invalid/v1").await.unwrap_err();
}

#[test]
fn a_list_of_authorities_that_is_not_there_is_told() {
    let child = again("network::asks_without_authorities").env("SSL_CERT_FILE", "/no/such/file").status();
    assert!(child.unwrap().success());
}

#[tokio::test]
#[ignore = "started by a_list_of_authorities_that_is_not_there_is_told"]
async fn asks_without_authorities() {
    let barred = ask_at("https://vendor.invalid/v1").await.unwrap_err();
    assert!(matches!(barred, ProviderError::Connect { kind: ConnectErrorKind::Certificate, .. }), "{barred}");
    assert!(barred.suggestion().unwrap().contains("SSL_CERT_FILE"));
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart_and_asked_once() {
    let mock = Mock::start([]);
    let address = mock.base_url(Wire::OpenAi).replace("http:", "https:");
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings(&address)).unwrap();
    let barred = ask(&provider, &question()).await.unwrap_err();
    assert!(matches!(barred, ProviderError::Connect { kind: ConnectErrorKind::Tls, .. }), "{barred}");
    assert!(!barred.recoverable());
}

async fn ask_at(base_url: &str) -> Result<Vec<ModelEvent>, ProviderError> {
    let settings = cog_provider::vendors::ProviderSettings { retries: 0, ..settings(base_url) };
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    ask(&provider, &question()).await
}

/// Returns the first line that a proxy receives while the named test runs with the variable set to its URL.
fn seen_by_proxy(variable: &str, test: &str) -> String {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap();
    let mut child = again(test).env(variable, format!("http://{port}")).spawn().unwrap();
    // Unblocks the proxy if the child process never connects.
    let ended = std::thread::spawn(move || {
        let ended = child.wait().unwrap();
        drop(TcpStream::connect(port));
        assert!(ended.success());
    });
    let (mut client, _) = proxy.accept().unwrap();
    let mut start = [0; 1024];
    let length = client.read(&mut start).unwrap();
    client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(client);
    ended.join().unwrap();
    String::from_utf8_lossy(&start[..length]).lines().next().unwrap_or_default().to_owned()
}

/// Creates a command that runs one test of this binary in its own environment.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]).env_clear();
    command
}
