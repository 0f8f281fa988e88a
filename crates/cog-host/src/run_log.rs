//! The log of runs: one JSON object per line, in two files of bounded size (docs/logs.md).

mod entry;
mod facts;
mod labels;
#[cfg(feature = "server")]
mod served;

use std::{
    collections::HashSet,
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cog_json::ToJson as _;
use cog_run::{
    RunInput,
    events::{Needs, RunEvents, RunReport, ToolReport},
};
use cog_spec::{Code, Envelope, ErrorBody};
use cog_store::private;

use self::labels::ends_within_a_line;
#[cfg(feature = "server")]
pub use self::served::ServedRuns;
pub use self::{
    entry::{Contents, Entry, LoggedCall, new_run_id},
    labels::{AddedLabel, Label, LabelledRun, Labels},
};
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

/// What an entry has that the report of its run does not.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// What the run requests.
    pub requested: RequestedModel,
    /// The identifier of the entry; a new one by default.
    pub id: Option<String>,
    /// The client of the server; none for a run of this machine's user.
    pub client: Option<String>,
    /// The request of the client.
    pub request_id: Option<String>,
}

impl From<RequestedModel> for RunFacts {
    fn from(requested: RequestedModel) -> Self {
        Self { requested, ..Self::default() }
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
        run: impl Into<RunFacts>,
        failed: impl Fn(&io::Error) + Send + Sync + 'static,
    ) -> Arc<dyn RunEvents> {
        let calls = Mutex::default();
        Arc::new(LoggedRun { log: Arc::clone(self), run: run.into(), calls, failed: Box::new(failed) })
    }

    /// Adds a run. Keys are masked.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn add(
        &self,
        report: &RunReport<'_>,
        envelope: &Envelope,
        run: &RunFacts,
        calls: Vec<LoggedCall>,
    ) -> io::Result<()> {
        // A run that continues after a confirmation is given none: the halted run has its input.
        let input = report.input.filter(|input| !matches!(input, RunInput::Json(value) if value.is_null()));
        let contents = input.filter(|_| self.stores_contents).map(|input| Contents::new(input, envelope));
        let RequestedModel { provider, model } = run.requested.clone().or(&self.requested);
        let mut entry = Entry {
            requested_provider: provider,
            requested_model: model,
            client: run.client.clone(),
            session_id: run.client.as_ref().map(|_| report.session_id.to_owned()).filter(|id| !id.is_empty()),
            request_id: run.request_id.clone(),
            input_sha256: input.and_then(|input| input.sha256(report.module)),
            calls,
            ..Entry::new(report.module, envelope, contents)
        };
        run.id.iter().for_each(|id| entry.id.clone_from(id));
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
        let path = self.directory.join(CURRENT);
        let line = &if ends_within_a_line(&path) { format!("\n{line}") } else { line.to_owned() };
        let mut file = private::append(&path)?;
        // An open file may be renamed meanwhile. Its line is then in the older file, which is read too.
        if self.is_full(file.metadata()?.len(), line) {
            self.rotate(line)?;
            file = private::append(&path)?;
        }
        file.write_all(line.as_bytes())
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

    /// Removes all entries. Returns whether there were any. The labels stay.
    ///
    /// # Errors
    /// E1006 if a file cannot be removed.
    pub fn clear(settings: &Settings) -> Result<bool, ErrorBody> {
        let Some(directory) = &settings.logs.directory.value else { return Err(is_off(settings)) };
        let mut was_present = false;
        // The older file first: a run that ends meanwhile may rotate the log.
        for name in [OLDER, CURRENT] {
            let path = directory.join(name);
            match fs::remove_file(&path) {
                Ok(()) => was_present = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let message = format!("cannot remove the log {}: {error}", path.display());
                    return Err(ErrorBody::new(Code::InvalidReference, message)
                        .suggest("Check that you may write its directory."));
                }
            }
        }
        Ok(was_present)
    }
}

/// A run that will be in the log.
struct LoggedRun {
    log: Arc<RunLog>,
    run: RunFacts,
    /// The calls of tools so far, also of parts.
    calls: Mutex<Vec<LoggedCall>>,
    failed: Box<dyn Fn(&io::Error) + Send + Sync>,
}

impl RunEvents for LoggedRun {
    fn needs(&self) -> Needs {
        Needs {
            envelope: true,
            input: true,
            // A client names its run by the trace that the answer names.
            trace_id: self.run.client.is_some(),
            content: self.log.stores_contents,
            ..Needs::default()
        }
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
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = self.log.add(run, envelope, &self.run, calls) {
            (self.failed)(&error);
        }
    }
}

/// The entries of the log.
pub struct Entries {
    /// The files, the newest first. As bytes: a line that was cut within a character must not hide the others.
    files: Vec<Vec<u8>>,
}

impl Entries {
    /// Reads the log of the settings.
    ///
    /// # Errors
    /// E1006 if runs are not logged, or if a file cannot be read.
    pub fn read(settings: &Settings) -> Result<Self, ErrorBody> {
        let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
        let mut files = Vec::new();
        for mut file in log.open()?.into_iter().rev() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|error| unreadable(&log.directory, &error))?;
            files.push(bytes);
        }
        Ok(Self { files })
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
        let found = self.find_any(id)?;
        found.ok_or_else(|| missing(&format!("the log contains no run with the ID `{id}`")))
    }

    /// Returns the run whose ID begins with `id`, if there is one.
    fn find_any(&self, id: &str) -> Result<Option<Entry>, ErrorBody> {
        let mut found = self.newest_first().filter(|entry| entry.id.starts_with(id));
        let Some(first) = found.next() else { return Ok(None) };
        match found.find(|entry| entry.id != first.id) {
            Some(_) => Err(missing(&format!("the ID `{id}` is ambiguous"))),
            None => Ok(Some(first)),
        }
    }
}

/// A run that can be labelled.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelTarget {
    /// Its identifier.
    pub id: String,
    /// What its label repeats.
    pub about: LabelledRun,
}

impl LabelTarget {
    /// Returns the run with exactly this ID: one of the log, or one that left it and has a label.
    ///
    /// # Errors
    /// E1006 if runs are not logged, or if a file cannot be read.
    pub fn by_id(settings: &Settings, id: &str) -> Result<Option<Self>, ErrorBody> {
        if let Some(entry) = Entries::read(settings)?.newest_first().find(|entry| entry.id == id) {
            return Ok(Some(Self { id: entry.id.clone(), about: entry.labelled() }));
        }
        let labels = Labels::new(settings)?.of_runs(|run| run == id)?.remove(id).unwrap_or_default();
        Ok(labels.into_iter().next_back().map(|label| Self { id: label.run, about: label.about }))
    }

    /// Returns the run whose ID begins with `id`: one of the log, or one that left it and has a label.
    ///
    /// # Errors
    /// E1006 if there is no such run, or more than one, or if a file cannot be read.
    pub fn find(settings: &Settings, id: &str) -> Result<Self, ErrorBody> {
        let entries = Entries::read(settings)?;
        if let Some(entry) = entries.find_any(id)? {
            return Ok(Self { id: entry.id.clone(), about: entry.labelled() });
        }
        match Labels::new(settings)?.find(id)? {
            Some(label) => Ok(Self { id: label.run, about: label.about }),
            None => Err(missing(&format!("the log contains no run with the ID `{id}`"))),
        }
    }
}

impl Entry {
    /// Returns entries with their labels.
    ///
    /// # Errors
    /// E1006 if the labels cannot be read.
    pub fn with_labels(mut entries: Vec<Self>, labels: &Labels) -> Result<Vec<Self>, ErrorBody> {
        let ids: HashSet<String> = entries.iter().map(|entry| entry.id.clone()).collect();
        let mut found = labels.of_runs(|run| ids.contains(run))?;
        for entry in &mut entries {
            entry.labels = found.remove(&entry.id).unwrap_or_default();
        }
        Ok(entries)
    }
}

/// Passes each entry of the log of the settings on, the oldest first, with one line in memory.
///
/// # Errors
/// As [`Entries::read`].
pub fn each_entry(settings: &Settings, act: &mut dyn FnMut(Entry)) -> Result<(), ErrorBody> {
    let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
    log.each_line(&mut |line| Entry::read(line).into_iter().for_each(&mut *act))
}

impl RunLog {
    /// Passes each line on, the oldest first, with one in memory.
    fn each_line(&self, act: &mut dyn FnMut(&[u8])) -> Result<(), ErrorBody> {
        for file in self.open()? {
            let read = private::each_line(io::BufReader::new(file), 2 * MAX_ENTRY, &mut *act);
            read.map_err(|error| unreadable(&self.directory, &error))?;
        }
        Ok(())
    }

    /// Opens the files, the older one first.
    fn open(&self) -> Result<Vec<fs::File>, ErrorBody> {
        // The current file may become the older one meanwhile. It is then opened twice, and read once.
        let current = self.open_file(CURRENT)?;
        let older = self.open_file(OLDER)?;
        let is_rotated =
            current.as_ref().zip(older.as_ref()).is_some_and(|(one, other)| private::is_same(one, other));
        Ok(older.filter(|_| !is_rotated).into_iter().chain(current).collect())
    }

    fn open_file(&self, name: &str) -> Result<Option<fs::File>, ErrorBody> {
        let path = self.directory.join(name);
        match private::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| unreadable(&path, &error)),
        }
    }
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
