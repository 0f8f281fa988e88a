//! The four levels of conformance: their cases, which a runtime must pass over HTTP, and the report.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use cog_spec::{Code, ErrorBody};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    base::{Base, ModuleParts, expanded},
    case::{Case, RequestStep, Step},
    directory,
    http::{Endpoint, Remote},
    model::Model,
    outcome::describe,
    scene::Scene,
    server::{Programs, Server},
};

/// The cases: `cargo xtask generate` collects them from `conformance/`.
const CASES: &str = include_str!("levels.json");

/// The cases of all levels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    base: Base,
    levels: Vec<Level>,
}

/// The cases of one level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    level: u8,
    title: String,
    cases: Vec<Case>,
}

/// The runtime that is checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// The program `cog` at this path, as a server.
    Program(PathBuf),
    /// The runtime at a URL, which has the modules of the cases and calls OpenAI Chat Completions at a port of this machine.
    Url {
        /// The URL before `/v1`.
        url: String,
        /// The port of the scripted model.
        mock_port: u16,
    },
}

/// Why a runtime cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The built-in cases cannot be read.
    #[error("the built-in cases are not valid: {0}")]
    Cases(#[source] serde_json::Error),
    /// The URL cannot be used.
    #[error("the URL of the runtime: {0}")]
    Url(String),
    /// The scripted model cannot listen.
    #[error("the model of the cases cannot listen at 127.0.0.1:{port}: {source}")]
    Port {
        /// The port.
        port: u16,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The program does not start as a server, or its modules cannot be written.
    #[error("cannot start `cog serve`: {0}")]
    Start(String),
    /// The runtime does not respond.
    #[error("{url} does not respond: {reason}")]
    NoResponse {
        /// The URL before `/v1`.
        url: String,
        /// The reason.
        reason: String,
    },
}

impl CheckError {
    /// Returns the code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Cases(_) | Self::Start(_) => Code::InternalError,
            Self::Url(_) | Self::Port { .. } => Code::InvalidInput,
            Self::NoResponse { .. } => Code::ProviderUnavailable,
        }
    }

    /// Returns what to do about the error, if something helps.
    pub fn suggestion(&self) -> Option<&'static str> {
        match self {
            Self::Cases(_) | Self::Start(_) => None,
            Self::Url(_) => {
                Some("Write it as http://127.0.0.1:8000, with the path before /v1 if there is one.")
            }
            Self::Port { .. } => Some("Choose another port, and configure the runtime with it."),
            Self::NoResponse { .. } => Some("Start the runtime, and check the URL."),
        }
    }
}

impl From<CheckError> for ErrorBody {
    fn from(error: CheckError) -> Self {
        let body = ErrorBody::new(error.code(), error.to_string());
        match error.suggestion() {
            Some(suggestion) => body.suggest(suggestion),
            None => body,
        }
    }
}

impl Levels {
    /// Reads the cases, which are part of this crate.
    ///
    /// # Errors
    /// [`CheckError::Cases`].
    pub fn new() -> Result<Self, CheckError> {
        let cases: Value = serde_json::from_str(CASES).map_err(CheckError::Cases)?;
        serde_json::from_value(expanded(cases)).map_err(CheckError::Cases)
    }

    /// Writes the modules of the cases to a directory, and returns how many they are.
    ///
    /// # Errors
    /// The path and the error of the operating system.
    pub fn write_modules(&self, directory: &Path) -> Result<usize, String> {
        let modules = self.modules();
        for (name, parts) in &modules {
            directory::write_module(parts, &directory.join(name))?;
        }
        Ok(modules.len())
    }

    /// Checks a runtime: sends the requests of each case, and compares the responses and the requests to the model. Blocks, so an
    /// async program calls it on a thread of its own.
    ///
    /// `required_level` is the level that the runtime must reach, by default the one that its capabilities claim. `progress`
    /// receives the level and the name of each case before it runs, and may end the check; there is no report then.
    ///
    /// # Errors
    /// See [`CheckError`].
    pub fn check(
        &self,
        target: &Target,
        required_level: Option<u8>,
        mut progress: impl FnMut(u8, &str) -> ControlFlow<()>,
    ) -> Result<Option<Report>, CheckError> {
        let directory = tempfile::tempdir().map_err(|error| CheckError::Start(error.to_string()))?;
        let programs = Programs::default();
        let mut scene = Scene::new(directory.path(), &programs, &[], &self.base.reply);
        let model = listen(target)?;
        scene.endpoint = Some(self.open(target, directory.path(), &model)?);
        scene.model = Some(model);
        let claimed = claimed_level(&mut scene, target)?;
        let mut run = Run { scene, base: &self.base, calls: 0, is_missing: true };
        let mut levels = Vec::new();
        for level in &self.levels {
            let mut report = LevelReport {
                level: level.level,
                title: level.title.clone(),
                passed: true,
                cases: Vec::new(),
            };
            for (case, module) in level.named_cases() {
                if progress(level.level, &case.name).is_break() {
                    return Ok(None);
                }
                let case_report = run.check(level.level, case, &module);
                report.passed &= case_report.passed || case.optional;
                report.cases.push(case_report);
            }
            levels.push(report);
        }
        let url = match target {
            Target::Url { url, .. } => Some(url.clone()),
            Target::Program(_) => None,
        };
        let mut report = Report::new(url, required_level.unwrap_or(claimed), levels);
        report.hint = report.url.as_ref().and_then(|_| run.hint());
        Ok(Some(report))
    }

    fn open(&self, target: &Target, directory: &Path, model: &Model) -> Result<Endpoint, CheckError> {
        match target {
            Target::Url { url, .. } => Ok(Endpoint::Remote(Remote::new(url).map_err(CheckError::Url)?)),
            Target::Program(program) => {
                self.write_modules(&directory.join("cognitive/modules")).map_err(CheckError::Start)?;
                let server = Server::start(program, directory, &[], Some(model));
                Ok(Endpoint::Server(server.map_err(CheckError::Start)?))
            }
        }
    }

    /// Returns the modules of all cases by name.
    fn modules(&self) -> BTreeMap<String, ModuleParts> {
        let mut modules = BTreeMap::new();
        for (case, name) in self.levels.iter().flat_map(Level::named_cases) {
            let own = case.module.iter().map(|parts| (name.clone(), parts));
            let others = case.modules.iter().map(|(name, parts)| (name.clone(), parts));
            modules.extend(own.chain(others).map(|(name, parts)| {
                let parts = self.base.module.changed(parts).named(&name);
                (name, parts)
            }));
        }
        modules
    }
}

impl Level {
    /// Returns each case with the name of its module. All modules are in one directory, so each has a name of its own.
    fn named_cases(&self) -> impl Iterator<Item = (&Case, String)> {
        let numbered = (1..).zip(&self.cases);
        numbered.map(|(number, case)| (case, format!("level{}-{number:02}", self.level)))
    }
}

/// Starts the scripted model: at the port that a runtime at a URL calls, otherwise at any.
fn listen(target: &Target) -> Result<Model, CheckError> {
    let port = match target {
        Target::Url { mock_port, .. } => *mock_port,
        Target::Program(_) => 0,
    };
    Model::listen(port).map_err(|source| CheckError::Port { port, source })
}

/// Returns the level that the capabilities of the runtime claim: 4 with streams or media, otherwise 3.
fn claimed_level(scene: &mut Scene<'_>, target: &Target) -> Result<u8, CheckError> {
    let step = RequestStep { request: "GET /v1/capabilities".to_owned(), ..RequestStep::default() };
    let outcome = step.send(scene).map_err(|reason| CheckError::NoResponse {
        url: match target {
            Target::Url { url, .. } => url.trim_end_matches('/').to_owned(),
            Target::Program(_) => "`cog serve`".to_owned(),
        },
        reason,
    })?;
    let capabilities: Value = serde_json::from_str(&outcome.text).unwrap_or_default();
    let streams = capabilities.pointer("/capabilities/streaming").and_then(Value::as_bool) == Some(true);
    let media = capabilities.pointer("/capabilities/multimodal/input").and_then(Value::as_array);
    let has_media = media.into_iter().flatten().any(|kind| kind.as_str().is_some_and(|kind| kind != "text"));
    Ok(if streams || has_media { 4 } else { 3 })
}

/// One run of all cases.
struct Run<'a> {
    scene: Scene<'a>,
    base: &'a Base,
    /// The calls of the model.
    calls: usize,
    /// Whether the runtime has had none of the modules so far.
    is_missing: bool,
}

impl Run<'_> {
    /// Returns what differs in a case.
    fn check(&mut self, level: u8, case: &Case, module: &str) -> CaseReport {
        let mut found = Differences::default();
        self.run(level, case, module, &mut found);
        CaseReport {
            name: case.name.clone(),
            codes: case.codes.clone(),
            optional: case.optional,
            passed: found.differences.is_empty(),
            differences: found.differences,
            beyond: found.beyond,
        }
    }

    fn run(&mut self, level: u8, case: &Case, module: &str, found: &mut Differences) {
        let replies = case.reply.iter().chain(&case.replies);
        let scripts: Result<Vec<_>, _> =
            replies.map(|reply| script(reply.script(&self.base.reply))).collect();
        match (scripts, &self.scene.model) {
            (Ok(scripts), Some(model)) => model.reset(scripts),
            (Err(error), _) => return found.differences.push(error),
            (Ok(_), None) => return found.differences.push("there is no model".to_owned()),
        }
        let applies_rulings = self.scene.applies_rulings();
        let steps = requests(case, module);
        for step in &steps {
            let name = if steps.len() > 1 { format!("{}: ", step.request) } else { String::new() };
            let outcome = match step.send(&mut self.scene) {
                Ok(outcome) => outcome,
                Err(reason) => {
                    found.differences.push(format!("{name}{reason}"));
                    continue;
                }
            };
            // All requests of level 1 execute modules.
            self.is_missing &= level > 1 || outcome.status == Some(404);
            for difference in outcome.differences(&step.expect, &self.scene) {
                let is_beyond = !applies_rulings && is_only_of_rulings(&difference);
                found.add(is_beyond, format!("{name}{difference}"));
            }
            // A stream that the case leaves has no end.
            if let Some(verdict) = outcome.verify().filter(|_| step.act.is_none()) {
                for violation in verdict.violations.iter().filter(|one| one.rule != "rationale") {
                    found.add(false, format!("{name}response{}", describe(violation)));
                }
                for warning in &verdict.warnings {
                    found.add(!applies_rulings, format!("{name}response{}", describe(warning)));
                }
            }
        }
        self.calls += self.scene.requests().len();
    }

    /// Returns what is probably wrong with the setup of another runtime.
    fn hint(&self) -> Option<String> {
        let problem = match self.calls {
            _ if self.is_missing => "The runtime does not have the modules of the cases.",
            0 => "The runtime did not call the model of the cases.",
            _ => return None,
        };
        Some(format!(
            "{problem} `cog conformance --write-modules DIR` writes the modules and shows the setup."
        ))
    }
}

/// What differs in a case.
#[derive(Default)]
struct Differences {
    differences: Vec<String>,
    beyond: Vec<String>,
}

impl Differences {
    fn add(&mut self, is_beyond: bool, difference: String) {
        let list = if is_beyond { &mut self.beyond } else { &mut self.differences };
        if !list.contains(&difference) {
            list.push(difference);
        }
    }
}

/// Returns whether only a ruling expects what a difference is about: the specification names neither the details of an error nor
/// the form of a warning, and does not compare a stream with the sync answer.
fn is_only_of_rulings(difference: &str) -> bool {
    let expectations = ["folds", "body.error.details", "body._warnings", "headers.x-cognitive-warning"];
    expectations.into_iter().any(|expectation| difference.starts_with(expectation))
}

/// Reads the reply of the model. A failure may be repeated at once, so that the check does not wait for another runtime.
fn script(mut reply: Value) -> Result<cog_testkit::Reply, String> {
    if let Some(members) = reply.as_object_mut().filter(|members| members.contains_key("status")) {
        members.entry("headers").or_insert_with(|| json!({ "retry-after": "0" }));
    }
    cog_testkit::Reply::from_json(&reply)
}

/// Returns the requests of a case. `m` in a path is the module of the case, and `input` the body of a request to execute it.
fn requests(case: &Case, module: &str) -> Vec<RequestStep> {
    let of_input = case.input.as_ref().map(|input| RequestStep {
        request: "POST /v1/modules/m/execute".to_owned(),
        body: Some(json!({ "input": input })),
        expect: of_response(&case.expect),
        ..RequestStep::default()
    });
    let others = case.steps.iter().filter_map(|step| match step {
        Step::Request(step) => Some(step.clone()),
        _ => None,
    });
    let mut steps: Vec<RequestStep> = of_input.into_iter().chain(others).collect();
    for step in &mut steps {
        step.request = match step.request.strip_suffix("/v1/modules/m") {
            Some(method) => format!("{method}/v1/modules/{module}"),
            None => step.request.replace("/v1/modules/m/", &format!("/v1/modules/{module}/")),
        };
    }
    steps
}

/// Translates what is expected of `cog run` to a response: the exit code becomes a status.
fn of_response(expect: &Map<String, Value>) -> Map<String, Value> {
    let translated = expect.iter().map(|(key, expected)| match (key.as_str(), expected.as_u64()) {
        ("exit", Some(0)) => ("status".to_owned(), json!({ "$min": 200, "$max": 299 })),
        ("exit", _) => ("status".to_owned(), json!({ "$min": 400 })),
        ("stdout", _) => ("body".to_owned(), expected.clone()),
        ("stdout_members", _) => ("body_members".to_owned(), expected.clone()),
        _ => (key.clone(), expected.clone()),
    });
    translated.collect()
}

/// The result of a check.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The URL of the runtime; null for the program.
    pub url: Option<String>,
    /// The level that the runtime reaches; 0 if it reaches none.
    pub level: u8,
    /// The level that it must reach.
    pub required_level: u8,
    /// The levels, lowest first.
    pub levels: Vec<LevelReport>,
    /// What is probably wrong with the setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of one level.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct LevelReport {
    /// The number, 1 to 4.
    pub level: u8,
    /// What its cases are about.
    pub title: String,
    /// Whether each case passed that is not optional.
    pub passed: bool,
    /// The cases.
    pub cases: Vec<CaseReport>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct CaseReport {
    /// The group and the name.
    pub name: String,
    /// The entries of the checklist.
    pub codes: Vec<String>,
    /// Whether the level can be reached without it.
    pub optional: bool,
    /// Whether nothing differs.
    pub passed: bool,
    /// What differs from the specification.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// What another runtime does differently where the specification is open. It changes no result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<String>,
}

impl Report {
    /// Creates the report. A level is reached if it and all below it passed.
    fn new(url: Option<String>, required_level: u8, levels: Vec<LevelReport>) -> Self {
        let passed = levels.iter().take_while(|level| level.passed);
        let level = passed.last().map_or(0, |level| level.level);
        Self { url, level, required_level, levels, hint: None }
    }

    /// Returns whether the required level is reached.
    pub fn is_reached(&self) -> bool {
        self.level >= self.required_level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_levels_are_requests() {
        let levels = Levels::new().unwrap();
        let numbers: Vec<u8> = levels.levels.iter().map(|level| level.level).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let directory = tempfile::tempdir().unwrap();
        let programs = Programs::default();
        let scene = Scene::new(directory.path(), &programs, &[], &levels.base.reply);
        for (case, name) in levels.levels.iter().flat_map(Level::named_cases) {
            assert!(!case.codes.is_empty(), "{}", case.name);
            let mut replies = case.reply.iter().chain(&case.replies);
            assert!(replies.all(|reply| !reply.0.contains_key("protocol")), "{}", case.name);
            assert!(case.serve.as_ref().is_none_or(Vec::is_empty), "{}", case.name);
            assert!(case.steps.iter().all(|step| matches!(step, Step::Request(_))), "{}", case.name);
            let steps = requests(case, &name);
            assert!(!steps.is_empty(), "{}", case.name);
            for step in steps {
                let found = crate::outcome::Outcome::default().differences(&step.expect, &scene);
                let unknown = found.iter().find(|found| found.contains("there is no such expectation"));
                assert_eq!(unknown, None, "{}", case.name);
                let of_process = ["exit", "stderr", "files"];
                assert!(!step.expect.keys().any(|key| of_process.contains(&key.as_str())), "{}", case.name);
            }
        }
    }

    #[test]
    fn modules_of_a_name_are_the_same() {
        let levels = Levels::new().unwrap();
        let modules = levels.modules();
        for (case, _) in levels.levels.iter().flat_map(Level::named_cases) {
            for (name, parts) in &case.modules {
                let parts = levels.base.module.changed(parts).named(name);
                let stored = &modules[name];
                assert_eq!(stored.manifest(), parts.manifest(), "{name}");
                assert_eq!((&stored.schema, &stored.prompt), (&parts.schema, &parts.prompt), "{name}");
            }
        }
    }
}
