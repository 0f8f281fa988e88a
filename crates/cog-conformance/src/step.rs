//! One step of a case.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::expect::Received;
use crate::http::{Request, Response};
use crate::lines::read_lines;
use crate::matching::fits;
use crate::model::Model;
use crate::outcome::Outcome;
use crate::reply::Reply;
use crate::scene::Scene;
use crate::server::{Deadline, PATIENCE, Server};
use crate::socket::{self, Act};

/// The header that requests a sync answer.
const SYNC: (&str, &str) = ("x-cognitive-response-mode", "sync");

/// A command, the start of a server, a request, a socket, or a signal. The first key decides which.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) enum Step {
    Command(CommandStep),
    Serve(ServeStep),
    Request(RequestStep),
    Socket(SocketStep),
    Signal(SignalStep),
}

/// The name by which the program is called.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Program {
    #[default]
    Cog,
    Cogn,
}

/// A command and its expectation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandStep {
    /// `cog`, or `cogn`.
    #[serde(default)]
    pub(crate) program: Program,
    /// Arguments of `cog`; `{directory}` stands for the case's directory.
    pub(crate) command: Vec<String>,
    /// Standard input.
    #[serde(default)]
    pub(crate) stdin: String,
    /// Environment variables; there are no others.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The reply of the model, if it differs from the case's.
    pub(crate) reply: Option<Reply>,
    /// What must come out: see [`Outcome`].
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
}

/// `cog serve` starts, and a model behind it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeStep {
    /// Its arguments.
    pub(crate) serve: Vec<String>,
}

/// A request to the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestStep {
    /// `POST /v1/modules/m/execute`.
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Text as it is, anything else as JSON.
    body: Option<Value>,
    /// Runs `act` once a chunk matches.
    once: Option<Value>,
    /// `leave`, the name of a signal to the server, or another request.
    act: Option<String>,
    /// Values to store: a name, and a pointer into the chunks or the body.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    #[serde(default)]
    expect: Map<String, Value>,
}

/// A WebSocket.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SocketStep {
    /// `/v1/modules/m/ws`.
    socket: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    acts: Vec<Value>,
    #[serde(default)]
    keep: BTreeMap<String, String>,
    #[serde(default)]
    expect: Map<String, Value>,
}

/// A signal to the server; then waits for its exit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalStep {
    /// `TERM`.
    signal: String,
    #[serde(default)]
    expect: Map<String, Value>,
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = serde_json::Error;

    fn try_from(step: Map<String, Value>) -> Result<Self, Self::Error> {
        let has = |key: &str| step.contains_key(key);
        let (serve, request, socket, signal) = (has("serve"), has("request"), has("socket"), has("signal"));
        let step = Value::Object(step);
        Ok(match () {
            () if serve => Self::Serve(serde_json::from_value(step)?),
            () if request => Self::Request(serde_json::from_value(step)?),
            () if socket => Self::Socket(serde_json::from_value(step)?),
            () if signal => Self::Signal(serde_json::from_value(step)?),
            () => Self::Command(serde_json::from_value(step)?),
        })
    }
}

impl Step {
    /// Runs the step, and returns all differences.
    pub(crate) fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        match self {
            Self::Command(step) => step.check(scene),
            Self::Serve(step) => step.start(scene),
            Self::Request(step) => step.check(scene),
            Self::Socket(step) => step.check(scene),
            Self::Signal(step) => step.check(scene),
        }
    }
}

impl Program {
    const fn path(self) -> &'static str {
        match self {
            Self::Cog => env!("CARGO_BIN_EXE_cog"),
            Self::Cogn => env!("CARGO_BIN_EXE_cogn"),
        }
    }
}

impl CommandStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let arguments: Vec<String> = self.command.iter().map(|argument| scene.filled(argument)).collect();
        let output = self.run(scene, &arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (arrived, requests) = (read_lines(&text), scene.requests());
        let mut outcome = Outcome {
            exit: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            received: Received { arrived, text, requests, ..Received::default() },
        };
        if self.expect.contains_key("folds") {
            let output = self.run(scene, &without_stream(&arguments))?;
            outcome.received.sync = serde_json::from_slice(&output.stdout).ok();
        }
        let checked = outcome.check(&self.expect, scene);
        finish(scene, outcome);
        checked.map_err(|faults| format!("cog {}\n{faults}", arguments.join(" ")))
    }

    /// Runs the command with a model of its own, unless the server has one.
    fn run(&self, scene: &mut Scene<'_>, arguments: &[String]) -> Result<Output, String> {
        if scene.server.is_none() {
            let replies = self.reply.as_ref().map_or(scene.replies, std::slice::from_ref);
            scene.model = Model::start(replies, scene.base)?;
        }
        let mut command = Command::new(self.program.path());
        command
            .args(arguments)
            .current_dir(scene.directory)
            .env_clear()
            .env("COG_DETECT_OLLAMA", "off")
            .env("COG_TRUST", "1") // the case wrote the modules
            .env("HOME", scene.directory.join("home"));
        command
            .envs(scene.model.as_ref().map(Model::environment).into_iter().flatten())
            .envs(self.env.iter().map(|(name, value)| (name, scene.filled(value))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut input = child.stdin.take();
        let text = scene.filled(&self.stdin);
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            // A command may close the pipe without reading its input.
            let _ = input.take().map(|mut pipe| pipe.write_all(text.as_bytes()));
            let _ = send.send(child.wait_with_output());
        });
        let ended = receive.recv_timeout(PATIENCE).map_err(|_| format!("cog {arguments:?} does not end"))?;
        ended.map_err(|error| error.to_string())
    }
}

/// Runs the same command for one envelope.
fn without_stream(arguments: &[String]) -> Vec<String> {
    let mut arguments = arguments.iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stream" | "--require-streaming" => {}
            "--chunk-type" | "--buffer-size" => drop(arguments.next()),
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

impl ServeStep {
    fn start(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        if scene.model.is_none() {
            scene.model = Model::start(scene.replies, scene.base)?;
        }
        let arguments: Vec<String> = self.serve.iter().map(|argument| scene.filled(argument)).collect();
        scene.server = Some(Server::start(scene.directory, &arguments, scene.model.as_ref())?);
        Ok(())
    }
}

impl RequestStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let request = self.request(scene);
        let mut response = request.send(scene.address()?)?;
        self.read(scene, &mut response)?;
        let mut received = Received {
            status: Some(response.status),
            arrived: response.arrived(),
            text: response.text(),
            headers: response.headers.clone(),
            requests: scene.requests(),
            sync: None,
        };
        // Disconnects before the outcome is checked.
        drop(response);
        if self.expect.contains_key("folds") {
            received.sync = Some(sync_answer(scene, request.clone())?);
        }
        let complete = || serde_json::from_str(&received.text).unwrap_or_default();
        let chunks = &received.arrived.chunks;
        let arrived = if chunks.is_empty() { complete() } else { chunks.clone().into() };
        let outcome = Outcome { received, ..Outcome::default() };
        let checked = scene.keep(&self.keep, &arrived).and_then(|()| outcome.check(&self.expect, scene));
        finish(scene, outcome);
        checked.map_err(|faults| format!("{} {}\n{faults}", request.method, request.target))
    }

    fn request(&self, scene: &Scene<'_>) -> Request {
        let (method, target) = self.request.split_once(' ').unwrap_or(("GET", &self.request));
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_lowercase(), scene.filled(value))).collect();
        let body = self.body.as_ref().map(|body| scene.filled_in(body));
        if body.is_some() && !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let body = match body {
            Some(Value::String(text)) => text.into_bytes(),
            Some(body) => body.to_string().into_bytes(),
            None => Vec::new(),
        };
        Request { method: method.to_owned(), target: scene.filled(target), headers, body }
    }

    /// Reads the response to its end, or until the step disconnects.
    fn read(&self, scene: &mut Scene<'_>, response: &mut Response) -> Result<(), String> {
        let (mut waits_for, deadline) = (self.once.as_ref(), Deadline::begin());
        while response.more()? {
            deadline.check().map_err(|error| format!("{error}: {}", response.text()))?;
            let chunks = response.arrived().chunks;
            if let Some(expected) = waits_for
                && chunks.iter().any(|chunk| fits(chunk, expected))
            {
                waits_for = None;
                scene.keep(&self.keep, &Value::from(chunks))?;
                match self.act.as_deref() {
                    None | Some("leave") => return Ok(()),
                    Some(act) => perform(act, scene)?,
                }
            }
        }
        match waits_for {
            Some(expected) => Err(format!("no chunk fits {expected}: {}", response.text())),
            None => Ok(()),
        }
    }
}

/// Sends a signal to the server, or sends another request, and continues.
fn perform(act: &str, scene: &Scene<'_>) -> Result<(), String> {
    let Some((method, target)) = act.split_once(' ') else {
        return scene.server.as_ref().ok_or("no server runs")?.signal(act);
    };
    let (method, target) = (method.to_owned(), scene.filled(target));
    let mut response =
        Request { method, target, headers: Vec::new(), body: Vec::new() }.send(scene.address()?)?;
    while response.more()? {}
    if response.status < 300 {
        Ok(())
    } else {
        Err(format!("{act}: {} {}", response.status, response.text()))
    }
}

/// Sends the same request for one envelope.
fn sync_answer(scene: &Scene<'_>, mut request: Request) -> Result<Value, String> {
    request.headers.retain(|(name, _)| name != SYNC.0);
    request.headers.push((SYNC.0.to_owned(), SYNC.1.to_owned()));
    let mut response = request.send(scene.address()?)?;
    while response.more()? {}
    serde_json::from_str(&response.text()).map_err(|error| format!("{error}: {}", response.text()))
}

impl SocketStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let acts = self.acts.iter().map(|act| serde_json::from_value(scene.filled_in(act)));
        let acts: Vec<Act> = acts.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), scene.filled(value))).collect();
        let conversation = socket::converse(scene.address()?, &self.socket, &headers, &acts)?;
        let mut received = Received {
            status: Some(conversation.status),
            text: conversation.refusal,
            arrived: conversation.arrived,
            requests: scene.requests(),
            ..Received::default()
        };
        if self.expect.contains_key("folds") {
            received.sync = Some(sync_answer(scene, self.as_request(&acts))?);
        }
        let chunks = Value::from(received.arrived.chunks.clone());
        let outcome = Outcome { received, ..Outcome::default() };
        let checked = scene.keep(&self.keep, &chunks).and_then(|()| outcome.check(&self.expect, scene));
        finish(scene, outcome);
        checked.map_err(|faults| format!("socket {}\n{faults}", self.socket))
    }

    /// The request that the socket sends.
    fn as_request(&self, acts: &[Act]) -> Request {
        let body = acts.iter().find_map(|act| match act {
            Act::Send(body) => Some(body.to_string()),
            _ => None,
        });
        let target = self.socket.replace("/ws", "/execute");
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Request { method: "POST".to_owned(), target, headers, body: body.unwrap_or_default().into_bytes() }
    }
}

impl SignalStep {
    fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let server = scene.server.take().ok_or("no server runs")?;
        server.signal(&self.signal)?;
        let received = Received { requests: scene.requests(), ..Received::default() };
        let outcome = Outcome { exit: server.ended()?, received, ..Outcome::default() };
        outcome.check(&self.expect, scene)
    }
}

/// Stores what later steps compare with.
fn finish(scene: &mut Scene<'_>, outcome: Outcome) {
    let Received { requests, arrived, .. } = outcome.received;
    scene.earlier = requests.last().cloned().or(scene.earlier.take());
    if !arrived.chunks.is_empty() {
        scene.chunks = arrived.chunks;
    }
}
