//! What whole commands cost, beside `/bin/true`, `curl`, and the time that a model takes.

mod cases;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::{Outcome, cargo, execute, say, target_directory, tracked};

/// How often each command is run; the contenders take turns.
const ROUNDS: usize = 60;

/// A ratio, and the bound that it must keep.
struct Bound<'a> {
    what: &'a str,
    at_most: f64,
}

/// Prints each ratio with its bound, and fails where one is not kept.
pub(crate) fn run() -> Outcome {
    execute(cargo().args([
        "build",
        "--release",
        "--locked",
        "--package",
        "cogn",
        "--package",
        "cog-testkit",
    ]))?;
    let binaries = target_directory()?.join("release");
    let cog = binaries.join("cog").display().to_string();
    let mock = binaries.join("cog-mock");
    let model = Model::start(&mock, ANSWER)?;
    let mut kept = vec![
        start_up(&cog, &["--version"], &Bound { what: "cog --version ÷ /bin/true", at_most: 4.0 })?,
        start_up(&cog, &["list"], &Bound { what: "cog list ÷ /bin/true", at_most: 8.0 })?,
        a_run(&cog, &model)?,
        cases::in_parallel(&cog, &mock)?,
    ];
    for module in shipped_modules()? {
        let what = format!("cog validate {module} ÷ /bin/true");
        kept.push(start_up(&cog, &["validate", &module], &Bound { what: &what, at_most: 8.0 })?);
    }
    if kept.iter().all(|kept| *kept) { Ok(()) } else { Err("a bound is not kept".to_owned()) }
}

/// Returns the names of the modules that the binary contains.
fn shipped_modules() -> Outcome<Vec<String>> {
    let manifests = tracked("modules", "/module.yaml")?;
    Ok(manifests.iter().filter_map(|path| path.split('/').nth(1)).map(str::to_owned).collect())
}

fn start_up(cog: &str, arguments: &[&str], bound: &Bound<'_>) -> Outcome<bool> {
    let mut ours = quiet(cog);
    ours.args(arguments);
    compare(&mut ours, &mut quiet("/bin/true"), bound)
}

fn a_run(cog: &str, model: &Model) -> Outcome<bool> {
    let mut ours = quiet(cog);
    ours.args(["run", "code-reviewer", "--args", "x = 1", "--provider", "openai"]);
    ours.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", format!("{}/v1", model.address));
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"x = 1"}]}"#;
    let asks = format!(
        "curl -s -H 'content-type: application/json' -d '{body}' {}/v1/chat/completions",
        model.address
    );
    let mut theirs = quiet("sh");
    theirs.args(["-c", &asks]);
    compare(&mut ours, &mut theirs, &Bound { what: "cog run ÷ sh with one curl", at_most: 1.5 })
}

fn compare(ours: &mut Command, theirs: &mut Command, bound: &Bound<'_>) -> Outcome<bool> {
    let mut our_times = Vec::new();
    let mut their_times = Vec::new();
    for _ in 0..ROUNDS {
        our_times.push(timed(ours)?);
        their_times.push(timed(theirs)?);
    }
    let ours = median(our_times);
    let theirs = median(their_times);
    say(format_args!("{:>8.2} ms, {:>8.2} ms", ours * 1000.0, theirs * 1000.0));
    Ok(report(ours / theirs, bound))
}

fn report(found: f64, bound: &Bound<'_>) -> bool {
    let kept = found <= bound.at_most;
    let verdict = if kept { "met" } else { "MISSED" };
    say(format_args!("{:<40} {found:>8.2}  (at most {:.1}: {verdict})", bound.what, bound.at_most));
    kept
}

fn timed(command: &mut Command) -> Outcome<Duration> {
    let start = Instant::now();
    let status = command.status().map_err(|error| error.to_string())?;
    let elapsed = start.elapsed();
    if status.success() { Ok(elapsed) } else { Err(format!("{command:?} failed: {status}")) }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

/// A command without output and without the environment's settings.
fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The mock vendor, ended when this is dropped.
struct Model {
    process: Child,
    address: String,
}

impl Model {
    /// Starts a vendor with this script.
    fn start(program: &Path, script: &str) -> Outcome<Self> {
        let mut command = Command::new(program);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if let Some(mut stdin) = process.stdin.take() {
            stdin.write_all(script.as_bytes()).map_err(|error| error.to_string())?;
        }
        let mut address = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut address).map_err(|error| error.to_string())?;
        }
        Ok(Self { process, address: address.trim().to_owned() })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const ANSWER: &str = r#"{"text": {"ok": true, "meta": {"confidence": 0.9, "risk": "none", "explain": "Nothing found."},
    "data": {"verdict": "approve", "issues": [], "rationale": "One assignment; nothing depends on it."}}}"#;
