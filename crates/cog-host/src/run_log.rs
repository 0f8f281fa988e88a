//! The log of runs: one JSON object per line, in two files of bounded size (docs/logs.md).

mod entry;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use cog_json::ToJson as _;
use cog_module::{
    Module,
    files::{self, FileError},
};
use cog_run::RunInput;
use cog_spec::{Code, Envelope, ErrorBody};
use cog_store::private;

use crate::settings::{Redactor, Settings};

pub use self::entry::{Contents, Entry};

/// The newest runs.
const CURRENT: &str = "runs.ndjson";
/// The runs before them: the current file once it reached half of the maximum size.
const OLDER: &str = "runs.1.ndjson";
/// Locked while one of them replaces the other.
const LOCK: &str = "lock";

/// The maximum size of an entry with contents, in bytes; a larger one is stored without them.
const MAX_ENTRY: usize = 1 << 20;

/// The maximum size of a file that is read.
const MAX_FILE: u64 = 1 << 40;

/// The log of runs.
pub struct RunLog {
    directory: PathBuf,
    /// The size at which the current file becomes the older one.
    max_file: u64,
    stores_contents: bool,
    /// What the settings request.
    requested: Requested,
    redactor: Redactor,
}

/// The provider and the model that a run requests.
#[derive(Debug, Clone, Default)]
pub struct Requested {
    /// The provider, or several in call order.
    pub provider: Option<String>,
    /// The model of the first provider.
    pub model: Option<String>,
}

impl Requested {
    /// Returns what a run with these settings requests. The model of the settings is that of their own provider.
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
            requested: Requested {
                provider: settings.provider.value.clone(),
                model: settings.model.value.clone(),
            },
            redactor: settings.redactor().clone(),
        })
    }

    /// Whether inputs and answers are stored.
    pub fn stores_contents(&self) -> bool {
        self.stores_contents
    }

    /// Adds a run; `input` is none if it was not read, or if contents are not stored. What the run does not request itself
    /// comes from the settings. Keys are masked.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(
        &self,
        module: &Module,
        input: Option<&RunInput>,
        envelope: &Envelope,
        requested: Requested,
    ) -> io::Result<()> {
        let contents = input.filter(|_| self.stores_contents).map(|input| Contents::new(input, envelope));
        let Requested { provider, model } = requested.or(&self.requested);
        let entry = Entry {
            requested_provider: provider,
            requested_model: model,
            ..Entry::new(module, envelope, contents)
        };
        let line = match entry.to_json() {
            line if line.len() > MAX_ENTRY => entry.without_contents().to_json(),
            line => line,
        };
        self.append(&format!("{}\n", self.redactor.redact(&line)))
    }

    /// Appends a line with one write, so that the lines of several programs do not mix.
    fn append(&self, line: &str) -> io::Result<()> {
        let path = self.directory.join(CURRENT);
        let mut file = private::append(&path)?;
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
        match fs::metadata(&current) {
            Ok(about) if self.is_full(about.len(), line) => fs::rename(&current, self.directory.join(OLDER)),
            _ => Ok(()),
        }
    }

    fn text(&self, name: &str) -> Result<String, ErrorBody> {
        let path = self.directory.join(name);
        match files::read_text(&path, MAX_FILE) {
            Err(FileError::Missing | FileError::Empty) => Ok(String::new()),
            read => read.map_err(|error| unreadable(&path, &error)),
        }
    }
}

/// The entries of the log.
pub struct Entries {
    /// The files, the newest first.
    files: [String; 2],
}

impl Entries {
    /// Reads the log of the settings.
    ///
    /// # Errors
    /// E1006 if runs are not logged, or if a file cannot be read.
    pub fn read(settings: &Settings) -> Result<Self, ErrorBody> {
        let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
        Ok(Self { files: [log.text(CURRENT)?, log.text(OLDER)?] })
    }

    /// Returns the entries, the newest first. A line that is not an entry, such as one that a full disk truncated, is
    /// skipped.
    pub fn newest_first(&self) -> impl Iterator<Item = Entry> {
        self.files.iter().flat_map(|text| text.lines().rev()).filter_map(Entry::read)
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

fn unreadable(path: &Path, error: &FileError) -> ErrorBody {
    let message = format!("cannot read the log {}: {error}", path.display());
    ErrorBody::new(Code::InvalidReference, message).suggest("Remove the file to start a new log.")
}
