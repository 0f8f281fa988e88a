//! The runtime that is checked: this program as a server, or the server at a URL.

use std::{
    io::{BufRead, BufReader, Read as _},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use cog_provider::{PlainClient, PlainRequest, PlainResponse};
use cog_spec::{Code, ErrorBody};
use serde_json::{Map, Value};

use super::{
    chunks::{Arrived, read_events},
    expect::Received,
    model,
    suite::Step,
};

/// The time limit for a request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum bytes of a response.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The header that requests one envelope.
const SYNC: (&str, &str) = ("x-cognitive-response-mode", "sync");

/// The runtime that is checked.
pub(super) struct Target {
    /// Its URL, without a final slash.
    pub(super) url: String,
    client: PlainClient,
    /// The server, if it is this program.
    _own: Option<OwnServer>,
}

impl Target {
    /// Creates the target of a URL.
    ///
    /// # Errors
    /// E1001 if the URL is not valid.
    pub(super) fn remote(url: &str) -> Result<Self, ErrorBody> {
        let url = url.trim_end_matches('/').to_owned();
        let client = PlainClient::new(&url, TIMEOUT, MAX_BYTES).map_err(|reason| {
            ErrorBody::new(Code::InvalidInput, format!("--url: {reason}"))
                .suggest("Write it as http://127.0.0.1:8000, with the path before /v1 if there is one.")
        })?;
        Ok(Self { url, client, _own: None })
    }

    /// Starts this program as a server in a directory with modules.
    ///
    /// # Errors
    /// E4000 if it does not start.
    pub(super) fn own(directory: &Path, model: SocketAddr) -> Result<Self, ErrorBody> {
        let server = OwnServer::start(directory, model).map_err(|reason| {
            ErrorBody::new(Code::InternalError, format!("cannot start `cog serve`: {reason}"))
        })?;
        let target = Self::remote(&server.url)?;
        Ok(Self { _own: Some(server), ..target })
    }

    /// Sends the request of a step, and reads its response.
    ///
    /// # Errors
    /// If there is no response, with the reason.
    pub(super) async fn send(&self, step: &Step) -> Result<Received, String> {
        self.exchange(step, false).await
    }

    /// Sends the request of a step for one envelope.
    ///
    /// # Errors
    /// If the response is not JSON, with the reason.
    pub(super) async fn send_sync(&self, step: &Step) -> Result<Value, String> {
        let received = self.exchange(step, true).await?;
        serde_json::from_str(&received.text).map_err(|error| format!("the sync answer is not JSON: {error}"))
    }

    async fn exchange(&self, step: &Step, is_sync: bool) -> Result<Received, String> {
        let (method, path) = step.request.split_once(' ').unwrap_or(("GET", &step.request));
        let (method, url) = (method.to_owned(), format!("{}{path}", self.url));
        let mut headers: Vec<(String, String)> =
            step.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        if is_sync {
            headers.push((SYNC.0.to_owned(), SYNC.1.to_owned()));
        }
        let has_type = headers.iter().any(|(name, _)| name == "content-type");
        if step.body.is_some() && !has_type {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let body = match &step.body {
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(body) => body.to_string().into_bytes(),
            None => Vec::new(),
        };
        self.client.send(&PlainRequest { method, url, headers, body }).await.map(received)
    }
}

fn received(response: PlainResponse) -> Received {
    let text = String::from_utf8_lossy(&response.body).into_owned();
    let headers = response.headers.into_iter().map(|(name, value)| (name, Value::from(value)));
    let headers: Map<String, Value> = headers.collect();
    let kind = headers.get("content-type").and_then(Value::as_str).unwrap_or_default();
    let arrived = if kind.starts_with("text/event-stream") { read_events(&text) } else { Arrived::default() };
    Received { status: Some(response.status), headers, text, arrived, ..Received::default() }
}

/// `cog serve` as a process, until it is dropped.
struct OwnServer {
    child: Child,
    url: String,
}

impl OwnServer {
    fn start(directory: &Path, model: SocketAddr) -> Result<Self, String> {
        let mut child = serve(directory, model)?.spawn().map_err(|error| error.to_string())?;
        let stderr = child.stderr.take();
        let mut server = Self { child, url: String::new() };
        let mut lines = BufReader::new(stderr.ok_or("it has no stderr")?);
        server.url = wait_for_url(&mut lines)?;
        // Read to the end, so that the server never waits for its stderr to be read.
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        Ok(server)
    }
}

/// Returns the command of the server. Its environment has only what the cases need.
fn serve(directory: &Path, model: SocketAddr) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        // This program wrote the modules there.
        .args(["serve", "--port", "0", "--trust"])
        .current_dir(directory)
        .env_clear()
        .env("HOME", directory.join("home"))
        .env("LLM_PROVIDER", "openai")
        .env("LLM_MODEL", model::MODEL)
        .env("OPENAI_API_KEY", "none")
        .env("OPENAI_BASE_URL", model::base_url(model))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(command)
}

/// Reads the stderr of a server up to its URL. An error is what it printed.
fn wait_for_url(lines: &mut impl BufRead) -> Result<String, String> {
    let (mut line, mut printed) = (String::new(), String::new());
    while lines.read_line(&mut line).map_err(|error| error.to_string())? > 0 {
        if let Some(url) = url_of(&line) {
            return Ok(url.to_owned());
        }
        printed.push_str(&line);
        line.clear();
    }
    Err(printed)
}

/// Returns the URL in a line: `3 modules at http://127.0.0.1:40123 (Ctrl-C ends it)`.
fn url_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(" modules at ")?;
    rest.split_whitespace().next()
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
