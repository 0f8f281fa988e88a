//! A server that passes a vendor's reply on, byte for byte: what axum and reqwest cost without anything of ours.

use std::{net::SocketAddr, process::ExitCode};

use axum::{Router, body::Body, body::Bytes, extract::State, http::header};

use crate::process::Process;

/// The forwarder, in a process of its own.
pub(crate) struct Forwarder {
    pub(crate) process: Process,
}

impl Forwarder {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let program = std::env::current_exe().unwrap().display().to_string();
        let to = format!("http://{to}/v1/chat/completions");
        Self { process: Process::start(&program, &["forward", &to], &[]) }
    }
}

/// Serves until it is killed; prints its URL to stderr as `cog serve` does.
#[expect(clippy::disallowed_methods, reason = "a client of the benchmark")]
pub(crate) fn serve(to: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        tell(listener.local_addr().unwrap());
        let router = Router::new().fallback(forward).with_state((reqwest::Client::new(), to.to_owned()));
        axum::serve(listener, router).await.unwrap();
    });
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "the URL is printed as a server prints it")]
fn tell(address: SocketAddr) {
    eprintln!("http://{address}");
}

async fn forward(
    State((client, to)): State<(reqwest::Client, String)>,
    body: Bytes,
) -> axum::response::Response {
    let reply =
        client.post(to).header(header::CONTENT_TYPE, "application/json").body(body).send().await.unwrap();
    axum::response::Response::new(Body::from_stream(reply.bytes_stream()))
}
