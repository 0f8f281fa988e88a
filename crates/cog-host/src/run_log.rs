//! The log of runs: one JSON object per line, in two files of bounded size (docs/logs.md).

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use cog_json::{Node, ToJson as _, Value};
use cog_module::{Module, Origin};
use cog_run::{
    RunInput,
    events::{Needs, RunEvents, RunReport, ToolOutcome, ToolReport},
};
use cog_spec::{Code, Envelope, ErrorBody, Usage};
use cog_store::private;
use serde::{Deserialize, Serialize};

use crate::settings::{Redactor, Settings};

/// The newest runs.
const CURRENT: &str = "runs.ndjson";
/// The runs before them: the current file once it reached half of the maximum size.
const OLDER: &str = "runs.1.ndjson";
/// Locked while one of them replaces the other.
const LOCK: &str = "lock";

/// The maximum size of an entry with contents, in bytes; a larger one is stored without them.
const MAX_ENTRY: usize = 1 << 20;

/// The maximum number of tool calls in an entry: a composition over a long list has many.
const MAX_CALLS: usize = 1_000;

/// The maximum size of a file that is read.
const MAX_FILE: u64 = 1 << 40;

/// The log of runs.
pub struct RunLog {
    directory: PathBuf,
    /// The size at which the current file becomes the older one.
    max_file: u64,
    stores_contents: bool,
    /// What the settings request.
    requested: RequestedModel,
    redactor: Redactor,
}

/// The provider and the model that a run requests.
#[derive(Debug, Clone, Default)]
pub struct RequestedModel {
    /// The provider, or several in call order.
    pub provider: Option<String>,
    /// The model of the first provider.
    pub model: Option<String>,
}

impl RequestedModel {
    /// Returns what a run with these settings requests. The settings' model belongs to the settings' provider.
    fn or(self, settings: &Self) -> Self {
        let is_theirs = self.provider.is_none() || self.provider == settings.provider;
        let model = self.model.or_else(|| settings.model.clone().filter(|_| is_theirs));
        Self { provider: self.provider.or_else(|| settings.provider.clone()), model }
    }
}

impl RunLog {
    /// Returns the log of the settings; none if it is off, or if there is no home directory.
    pub fn new(settings: &Settings) -> Option<Self> {
        let logs = &settings.logs;
        let directory = logs.directory.value.clone().filter(|_| logs.enabled.value)?;
        Some(Self {
            directory,
            max_file: logs.max_bytes.value as u64 / 2,
            stores_contents: logs.contents.value,
            requested: RequestedModel {
                provider: settings.provider.value.clone(),
                model: settings.model.value.clone(),
            },
            redactor: settings.redactor().clone(),
        })
    }

    /// Returns the listener of one run, which adds it: [`RunOptions::events`](cog_run::RunOptions::events). What the run does not
    /// request itself comes from the settings. `failed` is called if the file cannot be written.
    pub fn listener(
        self: &Arc<Self>,
        requested: RequestedModel,
        failed: impl Fn(&io::Error) + Send + Sync + 'static,
    ) -> Arc<dyn RunEvents> {
        let calls = Mutex::default();
        Arc::new(LoggedRun { log: Arc::clone(self), requested, calls, failed: Box::new(failed) })
    }

    /// Adds a run. Keys are masked.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn add(
        &self,
        module: &Module,
        input: Option<&RunInput>,
        envelope: &Envelope,
        requested: &RequestedModel,
        calls: Vec<LoggedCall>,
    ) -> io::Result<()> {
        let contents = input.filter(|_| self.stores_contents).map(|input| Contents::new(input, envelope));
        let RequestedModel { provider, model } = requested.clone().or(&self.requested);
        let entry = Entry {
            requested_provider: provider,
            requested_model: model,
            calls,
            ..Entry::new(module, envelope, contents)
        };
        // `logs` reads a file at once; a run with an image of 20 MB must not push out a thousand others.
        let line = match entry.to_json() {
            line if line.len() > MAX_ENTRY => entry.without_contents().to_json(),
            line => line,
        };
        self.append(&format!("{}\n", self.redactor.redact(&line)))
    }

    /// Appends a line with one write, so that the lines of several programs do not mix.
    fn append(&self, line: &str) -> io::Result<()> {
        // A full disk may have cut the last line. This one must not become its continuation.
        let line = &if self.ends_within_a_line() { format!("\n{line}") } else { line.to_owned() };
        let path = self.directory.join(CURRENT);
        let mut file = private::append(&path)?;
        // An open file may be renamed meanwhile. Its line is then in the older file, which is read too.
        if self.is_full(file.metadata()?.len(), line) {
            self.rotate(line)?;
            file = private::append(&path)?;
        }
        file.write_all(line.as_bytes())
    }

    /// Whether the last line of the current file has no line break.
    fn ends_within_a_line(&self) -> bool {
        let mut last = [b'\n'];
        let path = self.directory.join(CURRENT);
        if fs::metadata(&path).is_ok_and(|about| about.is_file())
            && let Ok(mut file) = OpenOptions::new().read(true).open(path)
            && file.seek(SeekFrom::End(-1)).is_ok()
        {
            // If it cannot be read, the line is appended as usual.
            let _ = file.read_exact(&mut last);
        }
        last != [b'\n']
    }

    fn is_full(&self, size: u64, line: &str) -> bool {
        size > 0 && size + line.len() as u64 > self.max_file
    }

    /// Replaces the older file with the current one, unless another program has done it meanwhile.
    fn rotate(&self, line: &str) -> io::Result<()> {
        let lock = private::append(&self.directory.join(LOCK))?;
        lock.lock()?;
        let current = self.directory.join(CURRENT);
        // Another program may have waited for the same lock and rotated already. A second time would lose the older file.
        match fs::metadata(&current) {
            Ok(about) if self.is_full(about.len(), line) => fs::rename(&current, self.directory.join(OLDER)),
            _ => Ok(()),
        }
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, ErrorBody> {
        let path = self.directory.join(name);
        match private::read(&path, MAX_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| unreadable(&path, &error)),
        }
    }
}

/// A run that will be in the log.
struct LoggedRun {
    log: Arc<RunLog>,
    requested: RequestedModel,
    /// The calls of tools so far, also of parts.
    calls: Mutex<Vec<LoggedCall>>,
    failed: Box<dyn Fn(&io::Error) + Send + Sync>,
}

impl RunEvents for LoggedRun {
    fn needs(&self) -> Needs {
        Needs { envelope: true, content: self.log.stores_contents, ..Needs::default() }
    }

    fn tool_ended(&self, tool: &ToolReport<'_>) {
        let call = LoggedCall::new(tool, self.log.stores_contents);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < MAX_CALLS {
            calls.push(call);
        }
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        let Some(envelope) = run.envelope else { return };
        // A run that continues after a confirmation is given none: its input is that of the halted run.
        let input = run.input.filter(|input| !matches!(input, RunInput::Json(value) if value.is_null()));
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = self.log.add(run.module, input, envelope, &self.requested, calls) {
            (self.failed)(&error);
        }
    }
}

/// The entries of the log.
pub struct Entries {
    /// The files, the newest first. As bytes: a line that was cut within a character must not hide the others.
    files: [Vec<u8>; 2],
}

impl Entries {
    /// Reads the log of the settings.
    ///
    /// # Errors
    /// E1006 if runs are not logged, or if a file cannot be read.
    pub fn read(settings: &Settings) -> Result<Self, ErrorBody> {
        let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
        Ok(Self { files: [log.read(CURRENT)?, log.read(OLDER)?] })
    }

    /// Returns the entries, the newest first. A line that is not an entry, such as one that a full disk truncated, is
    /// skipped.
    pub fn newest_first(&self) -> impl Iterator<Item = Entry> {
        self.files.iter().flat_map(|bytes| bytes.rsplit(|byte| *byte == b'\n')).filter_map(Entry::read)
    }

    /// Returns the run whose ID begins with `id`; without an ID, the last run.
    ///
    /// # Errors
    /// E1006 if there is no such run, or more than one.
    pub fn find(&self, id: Option<&str>) -> Result<Entry, ErrorBody> {
        let Some(id) = id else {
            return self.newest_first().next().ok_or_else(|| missing("the log contains no runs"));
        };
        let mut found = self.newest_first().filter(|entry| entry.id.starts_with(id));
        let first =
            found.next().ok_or_else(|| missing(&format!("the log contains no run with the ID `{id}`")))?;
        match found.find(|entry| entry.id != first.id) {
            Some(_) => Err(missing(&format!("the ID `{id}` is ambiguous"))),
            None => Ok(first),
        }
    }
}

/// Passes each entry of the log of the settings on, the oldest first, with one line in memory.
///
/// # Errors
/// As [`Entries::read`].
pub fn each_entry(settings: &Settings, act: &mut dyn FnMut(Entry)) -> Result<(), ErrorBody> {
    let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
    let open = |name: &str| {
        let path = log.directory.join(name);
        match private::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| unreadable(&path, &error)),
        }
    };
    // The current file may become the older one meanwhile. It is then opened twice, and read once.
    let current = open(CURRENT)?;
    let older = open(OLDER)?;
    let is_rotated =
        current.as_ref().zip(older.as_ref()).is_some_and(|(one, other)| private::is_same(one, other));
    for file in older.filter(|_| !is_rotated).into_iter().chain(current) {
        let read = private::each_line(io::BufReader::new(file), 2 * MAX_ENTRY, &mut |line| {
            Entry::read(line).into_iter().for_each(&mut *act);
        });
        read.map_err(|error| unreadable(&log.directory, &error))?;
    }
    Ok(())
}

fn is_off(settings: &Settings) -> ErrorBody {
    let (message, advice) = match settings.logs.enabled.value {
        true => ("there is no directory for the log: HOME is not set", "Set COG_LOGS_DIRECTORY."),
        false => ("runs are not logged: `logs.enabled` is false", "`cog config` shows what sets it."),
    };
    ErrorBody::new(Code::InvalidReference, message).suggest(advice)
}

fn missing(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, message).suggest("`cog logs` lists the runs and their IDs.")
}

fn unreadable(path: &Path, error: &io::Error) -> ErrorBody {
    let message = format!("cannot read the log {}: {error}", path.display());
    ErrorBody::new(Code::InvalidReference, message)
        .suggest("Check that it is a regular file that you may read, or set COG_LOGS_DIRECTORY.")
}

/// The characters of an ID: none looks like another one.
const ID_CHARACTERS: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";
const ID_LENGTH: usize = 8;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The identifier.
    pub id: String,
    /// The end of the run, as RFC 3339 in UTC.
    pub time: String,
    /// The name of the module.
    pub module: String,
    /// Its version.
    pub module_version: String,
    /// The directory of the module; none if it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The providers that the settings select, `openai,anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_provider: Option<String>,
    /// The model that the settings select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
    /// The model that replied, as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Whether the run succeeded.
    pub ok: bool,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The duration in milliseconds.
    pub time_ms: Option<u64>,
    /// The tokens.
    pub usage: Option<Usage>,
    /// The calls of tools in the order of their ends, up to 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<LoggedCall>,
    /// The input and the answer, only if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedCall {
    /// The end of the call, as RFC 3339 in UTC.
    pub time: String,
    /// The name of the tool.
    pub tool: String,
    /// The identifier of the call.
    pub id: String,
    /// `success`, the code or the type of an error, `halted`, or `dropped`.
    pub result: String,
    /// What a person decided about a call that was halted: `confirmed`, `denied`, or `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The SHA-256 of the arguments.
    pub arguments_sha256: String,
    /// The arguments, only if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

impl LoggedCall {
    fn new(tool: &ToolReport<'_>, stores_contents: bool) -> Self {
        let result = match tool.outcome {
            ToolOutcome::Returned => "success",
            ToolOutcome::Failed(error) => error,
            ToolOutcome::Halted => "halted",
            _ => "dropped",
        };
        Self {
            time: now(),
            tool: tool.name.to_owned(),
            id: tool.call_id.to_owned(),
            result: result.to_owned(),
            decision: tool.decision.map(str::to_owned),
            arguments_sha256: tool.arguments_sha256.to_owned(),
            arguments: tool.arguments.filter(|_| stores_contents).map(str::to_owned),
        }
    }
}

/// The input and the answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// The text of `--args`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// The input as JSON; with `args`, its other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The envelope.
    pub envelope: Value,
}

impl Entry {
    fn new(module: &Module, envelope: &Envelope, contents: Option<Contents>) -> Self {
        Self {
            id: new_id(),
            time: now(),
            module: module.manifest.name.clone(),
            module_version: module.manifest.version.clone(),
            directory: directory_of(&module.origin),
            requested_provider: None,
            requested_model: None,
            model: envelope.meta.runtime.model.clone(),
            ok: envelope.is_ok(),
            code: envelope.error().map(|error| error.code.as_str().to_owned()),
            time_ms: envelope.meta.runtime.processing_time_ms,
            usage: envelope.usage().cloned(),
            calls: Vec::new(),
            contents,
        }
    }

    /// Reads a line of the log.
    fn read(line: &[u8]) -> Option<Self> {
        cog_json::from_value(&Value::parse_bytes(line).ok()?).ok()
    }

    fn without_contents(mut self) -> Self {
        self.calls.iter_mut().for_each(|call| call.arguments = None);
        Self { contents: None, ..self }
    }

    /// Returns `ok`, or the code of the error.
    pub fn result(&self) -> &str {
        match &self.code {
            _ if self.ok => "ok",
            Some(code) => code,
            None => "failed",
        }
    }

    /// Whether it is a run of this module.
    pub fn is_of(&self, origin: &Origin) -> bool {
        match origin {
            Origin::BuiltIn(module) => self.directory.is_none() && self.module == module.name,
            _ => self.directory == directory_of(origin),
        }
    }

    /// Returns the argument that selects its module.
    pub fn target(&self) -> &str {
        self.directory.as_deref().unwrap_or(&self.module)
    }

    /// Returns the input and the answer.
    ///
    /// # Errors
    /// E1006 if they are not stored.
    pub fn stored_contents(&self) -> Result<&Contents, ErrorBody> {
        self.contents.as_ref().ok_or_else(|| {
            let message = format!("the input of the run `{}` is not stored", self.id);
            let advice = "Set COG_LOGS_CONTENTS=true, or `contents = true` in [logs] of ~/.config/cog/config.toml, to \
                          store the inputs of later runs up to 1 MiB.";
            ErrorBody::new(Code::InvalidReference, message).suggest(advice)
        })
    }

    /// Returns the providers that were requested, otherwise the one that replied.
    pub fn providers(&self) -> Vec<String> {
        let providers = self.requested_provider.as_deref().or_else(|| self.replied());
        providers.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
    }

    /// Returns the provider that replied; if the parts of a composition gave the answer, the provider of the first part.
    fn replied(&self) -> Option<&str> {
        let contents = self.contents.as_ref();
        let parts = contents.and_then(|contents| contents.envelope.get("meta")?.get("parts"));
        let parts = parts.into_iter().flat_map(Node::elements).filter_map(|part| part.get("model")?.as_str());
        let models = self.model.as_deref().into_iter().chain(parts);
        let mut providers = models.filter_map(|model| Some(model.split_once('/')?.0));
        providers.find(|name| cog_provider::provider_names().contains(name))
    }
}

impl Contents {
    fn new(input: &RunInput, envelope: &Envelope) -> Self {
        let (args, input) = match input {
            RunInput::Json(value) => (None, Some(value.clone())),
            RunInput::Args(text) => (Some(text.clone()), None),
            RunInput::ArgsWith(text, rest) => (Some(text.clone()), Some(rest.clone())),
            _ => (None, None),
        };
        Self { args, input, envelope: cog_json::to_value(envelope).unwrap_or_default() }
    }

    /// Returns the input as the run received it.
    pub fn run_input(&self) -> RunInput {
        match (self.args.clone(), self.input.clone()) {
            (Some(text), Some(rest)) => RunInput::ArgsWith(text, rest),
            (Some(text), None) => RunInput::Args(text),
            (None, input) => RunInput::Json(input.unwrap_or_default()),
        }
    }
}

/// Returns the directory of a module; none if it is built in.
fn directory_of(origin: &Origin) -> Option<String> {
    let Origin::Directory(directory) = origin else { return None };
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    Some(directory.to_string_lossy().into_owned())
}

fn new_id() -> String {
    // The list is not empty, so that the other character is never used.
    (0..ID_LENGTH).map(|_| fastrand::choice(ID_CHARACTERS).map_or('2', |byte| char::from(*byte))).collect()
}

#[expect(clippy::disallowed_methods, reason = "the log has the time of each run; no decision depends on it")]
fn now() -> String {
    rfc3339(SystemTime::now())
}

/// Formats a time. A clock that was never set may be before 1970, which the format cannot express.
fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_before_1970_is_the_first_one() {
        for before in [Duration::from_nanos(1), Duration::from_secs(20 * 365 * 24 * 3600)] {
            assert_eq!(rfc3339(UNIX_EPOCH - before), "1970-01-01T00:00:00Z");
        }
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(1)), "1970-01-01T00:00:01Z");
    }
}
