use std::sync::atomic::{AtomicUsize, Ordering};

use cog_module::Choice;
use cog_run::{Providers, RunInput, RunOptions, Value, provider};
use cog_spec::Envelope;

use super::*;

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "none", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing to change."}}"#;

/// Each use, for this module.
fn uses(name: &str) -> [Use<'_>; 9] {
    let module = NamedModule { name, choice: Choice::User };
    let run = Use::Run(module);
    let render = Use::Render(module);
    let batch = Use::Batch(module);
    let rest = [Use::Jobs, Use::Test, Use::Serve, Use::Worker, Use::Python, Use::Program];
    let [jobs, test, serve, worker, python, program] = rest;
    [run, render, batch, jobs, test, serve, worker, python, program]
}

/// Returns the uses for which something holds.
fn uses_where(name: &str, holds: impl Fn(Use<'_>) -> bool) -> Vec<String> {
    let holds = uses(name).into_iter().filter(|used| holds(*used));
    holds.map(|used| format!("{used:?}").split('(').next().unwrap().to_owned()).collect()
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let mut environment = Environment::from([("COG_DETECT_OLLAMA", "off")]);
    for (name, value) in variables {
        environment.set(name, value);
    }
    Settings::read(Flags::default(), environment).unwrap()
}

/// Runs a module in a runtime without other threads.
fn execute(runtime: &Runtime, module: &str, input: &str) -> Envelope {
    let module = runtime.load(module).unwrap();
    let input = RunInput::Json(Value::parse(input).unwrap());
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    events.block_on(runtime.run(&module, input, RunOptions::default()))
}

fn answering(answer: &'static str, calls: &Arc<AtomicUsize>) -> Option<Selected> {
    let calls = Arc::clone(calls);
    let provider = provider::from_fn("own", "m", move |_| {
        calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(answer))
    });
    Some(Providers::single(provider).into())
}

#[test]
fn only_runs_of_people_and_programs_reuse_answers() {
    let cached = |used: Use<'_>, record_mode| {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&[("COG_CACHE_DIRECTORY", directory.path().to_str().unwrap())]);
        let calls = Arc::new(AtomicUsize::new(0));
        let host = Host { providers: answering(ANSWER, &calls), record_mode, ..Host::new(&settings) };
        let runtime = host.runtime(used).unwrap().runtime;
        let input = r#"{"code": "fn main() {}", "language": "rust"}"#;
        assert!((0..2).all(|_| execute(&runtime, "code-reviewer", input).is_ok()));
        calls.load(Ordering::Relaxed) == 1
    };
    let expected = ["Run", "Batch", "Serve", "Worker", "Python", "Program"];
    assert_eq!(uses_where("code-reviewer", |used| cached(used, RecordMode::Off)), expected);
    let replay = RecordMode::Replay(Path::new("recording"));
    assert_eq!(uses_where("code-reviewer", |used| cached(used, replay)), [""; 0]);
}

#[cfg(feature = "mcp")]
#[test]
fn servers_start_for_the_module_that_needs_them_or_for_all() {
    let place = tempfile::tempdir().unwrap();
    let manifest = "name: searcher\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
                    policies: { tools_allowed: true }\ntools: { allowed: [web__search] }\n";
    let files = [
        ("module.yaml", manifest),
        ("prompt.md", "Search."),
        ("schema.json", r#"{"input": {}, "data": {}}"#),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    cog_module::files::write_directory(&place.path().join("searcher"), &files).unwrap();
    let searcher = place.path().join("searcher").display().to_string();
    let mut settings = settings(&[("LLM_PROVIDER", "offline")]);
    // Nothing listens there.
    let url = "http://127.0.0.1:1".to_owned();
    let transport = cog_mcp::McpTransport::http(url);
    settings.mcp = vec![cog_mcp::McpServer { required: true, ..cog_mcp::McpServer::new("web", transport) }];
    let starts = |used: Use<'_>| Host::new(&settings).runtime(used).is_err();
    assert_eq!(uses_where(&searcher, starts), ["Run", "Render", "Batch", "Serve", "Worker", "Program"]);
    assert_eq!(uses_where("code-reviewer", starts), ["Serve", "Worker", "Program"]);
}

#[cfg(feature = "telemetry")]
#[test]
fn every_use_that_runs_modules_exports_spans() {
    let exports = |used: Use<'_>| {
        // Nothing listens there.
        let settings = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")]);
        let host = Host { providers: answering(ANSWER, &Arc::default()), ..Host::new(&settings) };
        let runtime = host.runtime(used).unwrap().runtime;
        execute(&runtime, "code-reviewer", r#"{"code": "fn main() {}", "language": "rust"}"#);
        settings.close_telemetry().is_some()
    };
    let expected = ["Run", "Batch", "Test", "Serve", "Worker", "Python", "Program"];
    assert_eq!(uses_where("code-reviewer", exports), expected);
}

#[test]
fn callers_on_other_machines_open_no_files_of_this_one() {
    let settings = settings(&[("LLM_PROVIDER", "offline")]);
    let is_refused = |used: Use<'_>| {
        let runtime = Host::new(&settings).runtime(used).unwrap().runtime;
        let input = r#"{"images": [{"type": "file", "path": "Cargo.toml"}]}"#;
        let envelope = execute(&runtime, "image-analyzer", input);
        envelope.error().unwrap().code == Code::PermissionDenied.into()
    };
    assert_eq!(uses_where("image-analyzer", is_refused), ["Serve", "Worker"]);
}

#[test]
fn worker_and_program_require_a_provider() {
    let refused = |settings: &Settings| {
        uses_where("code-reviewer", |used| match Host::new(settings).runtime(used) {
            Ok(_) => false,
            Err(error) => error.code == Code::ProviderUnavailable.into(),
        })
    };
    assert_eq!(refused(&settings(&[])), ["Worker", "Program"]);
    assert_eq!(refused(&settings(&[("LLM_PROVIDER", "offline")])), [""; 0]);
}

#[test]
fn context_is_stored_in_the_state_directory_of_every_use() {
    const EMITTING: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "none", "explain": "Fine."},
        "data": {"rationale": "Known."}, "_emitted_context": {"user_profile": {"name": "Ada"}}}"#;
    let place = tempfile::tempdir().unwrap();
    let manifest = "name: profiler\nversion: 1.0.0\nresponsibility: Answer\ntier: exploration\n\
                    context: { emits: [{ type: user_profile, ttl: 86400 }] }\n";
    let files = [
        ("module.yaml", manifest),
        ("prompt.md", "Answer."),
        ("schema.json", r#"{"input": {}, "data": {}}"#),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    cog_module::files::write_directory(&place.path().join("profiler"), &files).unwrap();
    let profiler = place.path().join("profiler").display().to_string();
    let settings = settings(&[]);
    let stores = |used: Use<'_>| {
        let state = tempfile::tempdir().unwrap();
        let providers = answering(EMITTING, &Arc::default());
        let host = Host { providers, state_dir: Some(state.path()), ..Host::new(&settings) };
        let envelope = execute(&host.runtime(used).unwrap().runtime, &profiler, "{}");
        assert!(envelope.is_ok(), "{:?}", envelope.error());
        state.path().join("context").is_dir()
    };
    assert_eq!(uses_where(&profiler, stores).len(), uses(&profiler).len());
}
