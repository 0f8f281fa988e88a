//! What the HTTP client takes from the environment by itself: proxies.
//!
//! The environment belongs to a process, so each question is asked by this test binary started anew.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
};

use cog_provider::HttpProvider;

use crate::support::{ask, question, settings, vendor};
use cog_testkit::Wire;

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
    ask_at("https://vendor.invalid/v1").await;
}

#[tokio::test]
#[ignore = "started by http_proxy_is_used_for_http"]
async fn asks_over_http() {
    ask_at("http://vendor.invalid/v1").await;
}

async fn ask_at(base_url: &str) {
    let settings = cog_provider::vendors::ProviderSettings { retries: 0, ..settings(base_url) };
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    let _ = ask(&provider, &question()).await;
}

/// The first line that a proxy gets to see when the test of this name runs with the variable set to it.
fn seen_by_proxy(variable: &str, test: &str) -> String {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .env_clear()
        .env(variable, format!("http://{port}"))
        .spawn()
        .unwrap();
    // A child that asks nobody must not leave the proxy waiting.
    let ended = std::thread::spawn(move || {
        child.wait().unwrap();
        drop(TcpStream::connect(port));
    });
    let (mut client, _) = proxy.accept().unwrap();
    let mut start = [0; 1024];
    let length = client.read(&mut start).unwrap();
    client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(client);
    ended.join().unwrap();
    String::from_utf8_lossy(&start[..length]).lines().next().unwrap_or_default().to_owned()
}
