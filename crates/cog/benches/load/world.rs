//! What the scenarios share: the mock, the server that calls it, and requests to both.

use std::net::SocketAddr;

use crate::{cores, http, mock::Mock, process::Process};

const MANIFEST: &str = "\
name: load
version: 1.0.0
responsibility: Say what there is to say about a text.
excludes: [anything else]
tier: exploration
response: {mode: both}
modalities: {input: [text], output: [text]}
";
const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
    "text": {"type": "string"}, "focus": {"type": "array", "uniqueItems": true, "items": {"enum": ["style"]}}}},
  "data": {"type": "object", "required": ["rationale", "text"],
    "properties": {"rationale": {"type": "string"}, "text": {"type": "string"}}}
}"#;

/// The size of the cache of [`World::with_state`], and about how many answers fit into it.
const CACHE_BYTES: &str = "256KiB";

/// The mock, and the server under load.
pub(crate) struct World {
    pub(crate) mock: Mock,
    pub(crate) server: Process,
    _directory: tempfile::TempDir,
}

/// The program that receives the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The mock itself.
    Raw,
    /// The server, which calls the mock.
    Ours,
}

impl World {
    /// The mock is on the core of the rest, except where it is itself what is measured: [`World::raw`].
    pub(crate) fn start() -> Self {
        Self::with_model("whole")
    }

    /// A server whose requests without a model get the answer of this one.
    pub(crate) fn with_model(model: &str) -> Self {
        let unlimited = ["--requests-per-second", "0", "--max-streams-per-client", "10000"];
        Self::new(&unlimited, model)
    }

    /// A server with the limits that it has by default, except for these.
    pub(crate) fn with_limits(limits: &[&str]) -> Self {
        Self::new(limits, "whole")
    }

    /// A server with a small cache, on which the tool of the module `agent` waits for a confirmation.
    pub(crate) fn with_state(limits: &[&str]) -> Self {
        let home = home();
        let settings = home.path().join(".config/cog/config.toml");
        let answers = home.path().join("answers");
        let text = format!(
            "[cache]\ndirectory = '{}'\nmax_bytes = '{CACHE_BYTES}'\n[tools]\nconfirm = ['load']\n",
            answers.display()
        );
        std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
        std::fs::write(settings, text).unwrap();
        Self::in_home(home, limits, "whole")
    }

    fn new(limits: &[&str], model: &str) -> Self {
        Self::in_home(home(), limits, model)
    }

    fn in_home(directory: tempfile::TempDir, limits: &[&str], model: &str) -> Self {
        cores::pin(cores::REST);
        let mock = Mock::start(|| cores::pin(cores::REST)).unwrap();
        let server = Self::serve(directory.path(), mock.address, limits, model);
        Self { mock, server, _directory: directory }
    }

    /// A mock that has the measured core for itself.
    pub(crate) fn raw() -> Mock {
        Mock::start(|| cores::pin(cores::MEASURED)).unwrap()
    }

    fn serve(modules: &std::path::Path, mock: SocketAddr, limits: &[&str], model: &str) -> Process {
        let base_url = format!("http://{mock}/v1");
        let modules = modules.display().to_string();
        let arguments = [&["serve", "--port", "0", "--workers", "1"], limits].concat();
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", modules.as_str()),
            ("COGNITIVE_MODULES_PATH", modules.as_str()),
            ("LLM_MODEL", model),
            ("LLM_PROVIDER", "openai"),
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_BASE_URL", base_url.as_str()),
        ];
        Process::start(env!("CARGO_BIN_EXE_cog"), &arguments, &environment)
    }

    /// Where a side is, and the request that has it answer with this script of the mock.
    pub(crate) fn request(&self, side: Side, script: &str, streams: bool) -> (SocketAddr, Vec<u8>) {
        match side {
            Side::Raw => (self.mock.address, raw_request(script)),
            Side::Ours => (self.server.address, request(script, streams)),
        }
    }
}

/// The request that the mock receives directly.
pub(crate) fn raw_request(script: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"{script}","stream":true,"messages":[{{"role":"user","content":"two words"}}]}}"#
    );
    http::post("/v1/chat/completions", "text/event-stream", &body)
}

/// The request for one envelope of a module, with an answer of this script. The text can end in something of its own.
pub(crate) fn execute(module: &str, script: &str, end: &str) -> Vec<u8> {
    let body = format!(r#"{{"input":{{"text":"two words{end}"}},"_options":{{"model":"{script}"}}}}"#);
    http::post(&format!("/v1/modules/{module}/execute"), "application/json", &body)
}

fn request(script: &str, streams: bool) -> Vec<u8> {
    let body = format!(r#"{{"input":{{"text":"two words"}},"_options":{{"model":"{script}"}}}}"#);
    let accept = if streams { "application/x-ndjson" } else { "application/json" };
    http::post("/v1/modules/load/execute", accept, &body)
}

/// The request for one envelope.
pub(crate) fn whole_request() -> Vec<u8> {
    request("whole", false)
}

/// What the server is asked for an answer of this script as server-sent events.
pub(crate) fn sse_request(script: &str) -> Vec<u8> {
    let body = format!(r#"{{"input":{{"text":"two words"}},"_options":{{"model":"{script}"}}}}"#);
    http::post("/v1/modules/load/execute", "text/event-stream", &body)
}

/// The modules `load` and `agent`, which has `load` as its tool.
fn home() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let agent = MANIFEST.replace("name: load", "name: agent");
    let agent = format!("{agent}policies: {{tools_allowed: true}}\ntools: {{allowed: [load]}}\n");
    for (name, manifest) in [("load", MANIFEST), ("agent", &agent)] {
        let module = directory.path().join(name);
        std::fs::create_dir(&module).unwrap();
        for (name, text) in
            [("module.yaml", manifest), ("schema.json", SCHEMA), ("prompt.md", "Say something.\n")]
        {
            std::fs::write(module.join(name), text).unwrap();
        }
    }
    directory
}
