//! `cog conformance`: the level of conformance that a runtime reaches (docs/conformance-levels.md).

mod chunks;
mod expect;
mod matching;
mod model;
mod parts;
mod reply;
mod report;
mod shorthand;
mod suite;
mod target;

use std::path::Path;

use cog_module::files;
use cog_spec::{Code, ErrorBody};
use serde_json::Value;
use tokio::net::TcpListener;

use self::{
    model::Model,
    parts::text_of,
    report::{CaseReport, LevelReport, Report},
    suite::{Case, Step, Suite},
    target::Target,
};
use super::{emit, runtime};
use crate::{
    args::ConformanceArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Progress},
};

/// Runs the cases of all levels, and prints the level that is reached.
pub(crate) fn conformance(args: &ConformanceArgs, console: &Console) -> Result<Exit, CliError> {
    let suite = Suite::read()?;
    if let Some(directory) = &args.write_modules {
        write_modules(&suite, directory)?;
        console.print(&setup(&suite, directory, args.mock_port))?;
        return Ok(Exit::Ok);
    }
    let Some(report) = runtime::wait(check(&suite, args, console))? else { return Ok(Exit::Interrupted) };
    let report = report?;
    if console.prints_json(args.format) {
        console.print_json(&report)?;
    } else {
        console.print(&report.text(console))?;
    }
    Ok(if report.is_reached() { Exit::Ok } else { Exit::Failed })
}

/// Starts the model, and the runtime without a URL, and runs the cases.
async fn check(suite: &Suite, args: &ConformanceArgs, console: &Console) -> Result<Report, CliError> {
    let port = if args.url.is_some() { args.mock_port } else { 0 };
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| no_port(port, &error))?;
    let address = listener.local_addr()?;
    let model = Model::default();
    let directory = tempfile::tempdir()?;
    let target = match &args.url {
        Some(url) => Target::remote(url)?,
        None => {
            write_modules(suite, &directory.path().join("cognitive/modules"))?;
            Target::own(directory.path(), address)?
        }
    };
    let run = Run { suite, target: &target, model: &model };
    tokio::select! {
        served = model.clone().serve(listener) => Err(served.err().unwrap_or_else(stopped).into()),
        report = run.report(args, console) => Ok(report?),
    }
}

fn stopped() -> std::io::Error {
    std::io::Error::other("the model of the cases stopped")
}

fn no_port(port: u16, error: &std::io::Error) -> CliError {
    CliError::Usage {
        message: format!("the model of the cases cannot listen at 127.0.0.1:{port}: {error}"),
        suggestion: Some("Choose another --mock-port, and configure the runtime with it.".to_owned()),
    }
}

/// One run of all cases.
struct Run<'a> {
    suite: &'a Suite,
    target: &'a Target,
    model: &'a Model,
}

impl Run<'_> {
    async fn report(&self, args: &ConformanceArgs, console: &Console) -> Result<Report, ErrorBody> {
        let claimed = self.claimed_level().await?;
        let mut progress = Progress::begin(console, "cases");
        let (mut levels, mut calls) = (Vec::<LevelReport>::new(), 0);
        let mut is_missing = true;
        for (level, case, module) in self.suite.cases() {
            progress.show(format!("level {} · {}", level.level, case.name));
            let (differences, statuses) = self.case(case, &module).await;
            calls += self.model.requests().len();
            // All requests of level 1 execute modules.
            is_missing &= level.level > 1 || statuses.iter().all(|status| *status == 404);
            if levels.last().is_none_or(|last| last.level != level.level) {
                let (level, title) = (level.level, level.title.clone());
                levels.push(LevelReport { level, title, passed: true, cases: Vec::new() });
            }
            if let Some(level) = levels.last_mut() {
                level.passed &= differences.is_empty() || case.optional;
                level.cases.push(case_report(case, differences));
            }
        }
        let mut report = Report::new(args.url.clone(), args.level.unwrap_or(claimed), levels);
        report.hint = args.url.as_ref().and_then(|_| hint(is_missing, calls));
        Ok(report)
    }

    /// Returns the level that the capabilities of the runtime claim.
    async fn claimed_level(&self) -> Result<u8, ErrorBody> {
        let step = Step::get("/v1/capabilities");
        let received = self.target.send(&step).await.map_err(|reason| {
            ErrorBody::new(
                Code::ProviderUnavailable,
                format!("{} does not respond: {reason}", self.target.url),
            )
            .suggest("Start the runtime, and check --url.")
        })?;
        Ok(claimed(&serde_json::from_str(&received.text).unwrap_or_default()))
    }

    /// Returns what differs in a case, and the statuses of all responses.
    async fn case(&self, case: &Case, module: &str) -> (Vec<String>, Vec<u16>) {
        self.model.begin(case.replies(&self.suite.base));
        let (mut differences, mut statuses) = (Vec::new(), Vec::new());
        let steps = case.steps(module);
        for step in &steps {
            let found = match self.step(step).await {
                Ok((found, status)) => {
                    statuses.extend(status);
                    found
                }
                Err(reason) => vec![reason],
            };
            let request = if steps.len() > 1 { format!("{}: ", step.request) } else { String::new() };
            differences.extend(found.into_iter().map(|found| format!("{request}{found}")));
        }
        (differences, statuses)
    }

    async fn step(&self, step: &Step) -> Result<(Vec<String>, Option<u16>), String> {
        let mut received = self.target.send(step).await?;
        received.requests = self.model.requests();
        if step.expect.contains_key("folds") {
            received.sync = Some(self.target.send_sync(step).await?);
        }
        let check = |(what, expected): (&String, &Value)| {
            let found = received.check(what, expected).unwrap_or_default();
            found.into_iter().map(|found| format!("{what}{found}")).collect::<Vec<_>>()
        };
        Ok((step.expect.iter().flat_map(check).collect(), received.status))
    }
}

fn case_report(case: &Case, differences: Vec<String>) -> CaseReport {
    CaseReport {
        name: case.name.clone(),
        codes: case.codes.clone(),
        optional: case.optional,
        passed: differences.is_empty(),
        differences,
    }
}

/// A runtime that declares streaming or media claims level 4, any other one level 3.
fn claimed(capabilities: &Value) -> u8 {
    let declared = |pointer: &str| capabilities.pointer(pointer);
    let streams = declared("/capabilities/streaming").and_then(Value::as_bool) == Some(true);
    let media = declared("/capabilities/multimodal/input").and_then(Value::as_array);
    let has_media = media.into_iter().flatten().any(|kind| kind.as_str().is_some_and(|kind| kind != "text"));
    if streams || has_media { 4 } else { 3 }
}

fn hint(is_missing: bool, calls: usize) -> Option<String> {
    let text = match (is_missing, calls) {
        (true, _) => "The runtime does not have the modules of the cases.",
        (_, 0) => "The runtime did not call the model of the cases.",
        _ => return None,
    };
    Some(format!("{text} `cog conformance --write-modules DIR` writes the modules and shows the setup."))
}

/// Writes the modules of all cases.
fn write_modules(suite: &Suite, directory: &Path) -> Result<(), CliError> {
    for (name, parts) in suite.modules() {
        let directory = directory.join(name);
        write(&directory.join("module.yaml"), &parts.manifest())?;
        write(&directory.join("schema.json"), &text_of(&parts.schema))?;
        write(&directory.join("prompt.md"), parts.prompt.as_deref().unwrap_or_default())?;
        for (name, content) in &parts.files {
            write(&directory.join(name), &text_of(content))?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(Into::into);
    written
        .and_then(|()| files::write_atomic(path, text.as_bytes()))
        .map_err(|error| emit::unwritable(path, error))
}

/// Describes how another runtime is checked.
fn setup(suite: &Suite, directory: &Path, port: u16) -> String {
    format!(
        "{} modules are in {}.\n\n\
         1. Start the runtime with these modules. Configure its provider for OpenAI Chat Completions:\n\
         \x20  base URL http://127.0.0.1:{port}/v1, any key, any model.\n\
         2. Run `cog conformance --url URL --mock-port {port}`.\n",
        suite.modules().len(),
        directory.display(),
    )
}
