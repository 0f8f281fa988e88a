//! A conformance case, as in its file (docs/conformance-cases.md).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    base::{ModuleParts, Reply},
    site::Page,
};

/// One case: its setup, its command, and the expected outcome.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The expected behaviour, as words joined by hyphens; among the cases of levels after its group: `O/exec-refuses`.
    pub(crate) name: String,
    /// The entries of the checklist that it covers.
    pub(crate) codes: Vec<String>,
    /// The level of conformance that contains the case; read by `cargo xtask generate`.
    #[serde(rename = "level")]
    _level: Option<u8>,
    /// Whether the level can be reached without it.
    #[serde(default)]
    pub(crate) optional: bool,
    /// Directories of this workspace to copy: target, source.
    #[serde(default)]
    pub(crate) copy: BTreeMap<String, String>,
    /// Changes to the base module, which is written to `m`, or for a server to `cognitive/modules/m`.
    pub(crate) module: Option<ModuleParts>,
    /// Further modules, each with its changes to the base module, in `cognitive/modules/NAME`.
    #[serde(default)]
    pub(crate) modules: BTreeMap<String, ModuleParts>,
    /// Files to write: a string as it is, bytes as base64, null removes, anything else as JSON.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Value>,
    /// The reply of the model to every step.
    pub(crate) reply: Option<Reply>,
    /// The replies of the model in order; the last one repeats.
    #[serde(default)]
    pub(crate) replies: Vec<Reply>,
    /// The pages of a web site on this machine, by path.
    #[serde(default)]
    pub(crate) site: BTreeMap<String, Page>,
    /// Arguments of a `cog serve` that runs before the steps.
    pub(crate) serve: Option<Vec<String>>,
    /// Shorthand for the command `run ./m --input-json INPUT`; without `module`, a copied module is used.
    pub(crate) input: Option<Value>,
    /// Arguments of `cog`.
    pub(crate) command: Option<Vec<String>>,
    /// The standard input of `cog`.
    #[serde(default)]
    pub(crate) stdin: String,
    /// Environment variables.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The expected outcome.
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
    /// Further commands in the same directory, in order.
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// Pages of this workspace that must contain these strings.
    #[serde(default)]
    pub(crate) contains: BTreeMap<String, Vec<String>>,
}

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

/// The program that a command calls.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Program {
    #[default]
    Cog,
    Cogn,
    /// A program that uses the library, with the arguments `MODULE INPUT [--stream]`.
    Library,
}

/// A command and its expectation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandStep {
    /// `cog`, `cogn`, or `library`.
    #[serde(default)]
    pub(crate) program: Program,
    /// Arguments of `cog`; `{directory}` stands for the directory of the case.
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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestStep {
    /// `POST /v1/modules/m/execute`.
    pub(crate) request: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A string as it is, `{"$base64": "…"}` as the bytes that it stands for, anything else as JSON.
    pub(crate) body: Option<Value>,
    /// Runs `act` once a chunk matches.
    pub(crate) once: Option<Value>,
    /// `leave`, the name of a signal to the server, or another request.
    pub(crate) act: Option<String>,
    /// Values to store: a name, and a pointer into the chunks or the body.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
}

/// A WebSocket.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SocketStep {
    /// `/v1/modules/m/ws`.
    pub(crate) socket: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) acts: Vec<Value>,
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
}

/// A signal to the server; then waits for its exit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalStep {
    /// `TERM`.
    pub(crate) signal: String,
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = serde_json::Error;

    fn try_from(step: Map<String, Value>) -> Result<Self, Self::Error> {
        let kind = ["serve", "request", "socket", "signal"].into_iter().find(|key| step.contains_key(*key));
        let step = Value::Object(step);
        Ok(match kind {
            Some("serve") => Self::Serve(serde_json::from_value(step)?),
            Some("request") => Self::Request(serde_json::from_value(step)?),
            Some("socket") => Self::Socket(serde_json::from_value(step)?),
            Some(_) => Self::Signal(serde_json::from_value(step)?),
            None => Self::Command(serde_json::from_value(step)?),
        })
    }
}
