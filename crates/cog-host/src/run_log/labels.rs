//! The labels of runs: one JSON object per line, in a file that only grows (docs/labels.md).
//!
//! A label repeats what a calibration needs of its run, because the run may leave the log first.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use cog_json::{ToJson as _, Value};
use cog_module::Origin;
use cog_run::feedback::{Feedback, LabelKind};
use cog_spec::{Code, ErrorBody, Evidence};
use cog_store::{private, sync_directory_of};
use serde::{Deserialize, Serialize};

use super::facts::{is_of, now};
use crate::settings::{Redactor, Settings};

/// The file, in the directory of the log.
const FILE: &str = "labels.ndjson";

/// The maximum size of a line: a corrected answer of 1 MiB, and its escapes.
const MAX_LINE: usize = 4 << 20;

/// The maximum number of labels of one run: a client could otherwise fill the disk with changes.
const MAX_OF_RUN: usize = 100;

/// What a person said about the answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// The identifier of the run.
    pub run: String,
    /// When it was given, as RFC 3339 in UTC.
    pub time: String,
    /// Whether the answer is right.
    pub label: LabelKind,
    /// The right answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The client of the server that gave it; none for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What the run was.
    #[serde(flatten)]
    pub about: LabelledRun,
}

/// What a label repeats of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledRun {
    /// The name of the module.
    pub module: String,
    /// Its version.
    pub module_version: String,
    /// The directory of the module; none if it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The model that replied, as `PROVIDER/MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The SHA-256 of the input's canonical JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// Whether the run succeeded.
    pub ok: bool,
    /// The confidence that the answer states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What else is known about the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Label {
    /// Whether it is of a run of this module.
    pub fn is_of(&self, origin: &Origin) -> bool {
        is_of(origin, &self.about.module, self.about.directory.as_deref())
    }

    /// Returns the argument that selects the module of its run.
    pub fn target(&self) -> &str {
        self.about.directory.as_deref().unwrap_or(&self.about.module)
    }

    /// Whether another label says the same. Only times differ.
    fn repeats(&self, other: &Self) -> bool {
        (self.label, &self.data, &self.note, &self.client)
            == (other.label, &other.data, &other.note, &other.client)
    }
}

/// A label that was given, and whether it was new.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedLabel {
    /// The label as it is stored.
    pub label: Label,
    /// Whether it was added. A label that repeats the last one of its run is not.
    pub is_new: bool,
}

/// The labels that a run has.
#[derive(Default)]
struct GivenLabels {
    count: usize,
    last: Option<Label>,
}

/// The labels of all runs.
pub struct Labels {
    path: PathBuf,
    redactor: Redactor,
}

impl Labels {
    /// Returns the labels of the settings.
    ///
    /// # Errors
    /// E1006 if there is no directory for them.
    pub fn new(settings: &Settings) -> Result<Self, ErrorBody> {
        let directory = settings.logs.directory.value.as_deref().ok_or_else(|| {
            ErrorBody::new(Code::InvalidReference, "there is no directory for labels: HOME is not set")
                .suggest("Set COG_LOGS_DIRECTORY.")
        })?;
        Ok(Self::in_directory(directory, settings.redactor().clone()))
    }

    pub(super) fn in_directory(directory: &Path, redactor: Redactor) -> Self {
        Self { path: directory.join(FILE), redactor }
    }

    /// Adds a label of a run. It is on disk afterwards. Keys are masked.
    ///
    /// # Errors
    /// E1006 if the file cannot be read or written, E4002 if the run has too many labels.
    pub fn add(
        &self,
        run: &str,
        about: LabelledRun,
        client: Option<String>,
        feedback: Feedback,
    ) -> Result<AddedLabel, ErrorBody> {
        let Feedback { label, data, note, .. } = feedback;
        let label = Label { run: run.to_owned(), time: now(), label, data, note, client, about };
        let line = self.redactor.redact(&label.to_json());
        let label = read(line.as_bytes()).unwrap_or(label);
        let unwritable = |error: io::Error| self.unwritable(&error);
        let mut file = private::append(&self.path).map_err(unwritable)?;
        // Two people may label at once. Whoever waits here sees the other label.
        file.lock().map_err(unwritable)?;
        let given = self.given(run)?;
        if let Some(last) = given.last.filter(|last| last.repeats(&label)) {
            return Ok(AddedLabel { label: last, is_new: false });
        }
        if given.count >= MAX_OF_RUN {
            let message = format!("the run `{run}` has {MAX_OF_RUN} labels, the maximum");
            return Err(ErrorBody::new(Code::RateLimited, message).suggest("Its last label counts."));
        }
        self.append(&mut file, &line).map_err(unwritable)?;
        Ok(AddedLabel { label, is_new: true })
    }

    /// Appends a line with one write, and waits until it is on disk.
    fn append(&self, file: &mut File, line: &str) -> io::Result<()> {
        let is_first = file.metadata()?.len() == 0;
        // A full disk or a kill may have cut the last line. This one must not become its continuation.
        let separator = if ends_within_a_line(&self.path) { "\n" } else { "" };
        file.write_all(format!("{separator}{line}\n").as_bytes())?;
        file.sync_data()?;
        if is_first { sync_directory_of(&self.path) } else { Ok(()) }
    }

    /// Returns the number of labels of a run, and the last one.
    fn given(&self, run: &str) -> Result<GivenLabels, ErrorBody> {
        let mut given = GivenLabels::default();
        self.each_line(&mut |line| {
            // Most lines are of other runs, and need not be parsed.
            if !std::str::from_utf8(line).is_ok_and(|line| line.contains(run)) {
                return;
            }
            if let Some(label) = read(line).filter(|label| label.run == run) {
                given.count += 1;
                given.last = Some(label);
            }
        })?;
        Ok(given)
    }

    /// Passes each label on, the oldest first, with one in memory. A line that is not a label is skipped.
    ///
    /// # Errors
    /// E1006 if the file cannot be read.
    pub fn each(&self, act: &mut dyn FnMut(Label)) -> Result<(), ErrorBody> {
        self.each_line(&mut |line| read(line).into_iter().for_each(&mut *act))
    }

    fn each_line(&self, act: &mut dyn FnMut(&[u8])) -> Result<(), ErrorBody> {
        let file = match private::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|error| self.unreadable(&error))?,
        };
        private::each_line(BufReader::new(file), MAX_LINE, act)
            .map(drop)
            .map_err(|error| self.unreadable(&error))
    }

    /// Returns the labels of the runs that `is_wanted` accepts, the oldest first.
    ///
    /// # Errors
    /// As [`Labels::each`].
    pub fn of_runs(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Vec<Label>>, ErrorBody> {
        let mut found: HashMap<String, Vec<Label>> = HashMap::new();
        self.each(&mut |label| {
            if is_wanted(&label.run) {
                found.entry(label.run.clone()).or_default().push(label);
            }
        })?;
        Ok(found)
    }

    /// Returns what the last label of each run says.
    ///
    /// # Errors
    /// As [`Labels::each`].
    pub fn last(&self) -> Result<HashMap<String, LabelKind>, ErrorBody> {
        let mut last = HashMap::new();
        self.each(&mut |label| _ = last.insert(label.run, label.label))?;
        Ok(last)
    }

    /// Returns the last label of the run whose ID begins with `id`; it may have left the log.
    ///
    /// # Errors
    /// As [`Labels::each`]; E1006 if the ID is ambiguous.
    pub fn find(&self, id: &str) -> Result<Option<Label>, ErrorBody> {
        let mut found: Option<Label> = None;
        let mut is_ambiguous = false;
        self.each(&mut |label| {
            if label.run.starts_with(id) {
                is_ambiguous |= found.as_ref().is_some_and(|other| other.run != label.run);
                found = Some(label);
            }
        })?;
        match is_ambiguous {
            true => Err(ErrorBody::new(Code::InvalidReference, format!("the ID `{id}` is ambiguous"))
                .suggest("`cog logs` lists the runs and their IDs.")),
            false => Ok(found),
        }
    }

    /// Returns the last label of each run of a module, in the order in which the runs were first labelled.
    ///
    /// # Errors
    /// As [`Labels::each`].
    pub fn latest(&self, origin: &Origin) -> Result<Vec<Label>, ErrorBody> {
        let mut latest: Vec<Label> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        self.each(&mut |label| {
            if !label.is_of(origin) {
                return;
            }
            match places.get(&label.run).and_then(|place| latest.get_mut(*place)) {
                Some(known) => *known = label,
                None => {
                    places.insert(label.run.clone(), latest.len());
                    latest.push(label);
                }
            }
        })?;
        Ok(latest)
    }

    /// Removes all labels. Returns whether there were any.
    ///
    /// # Errors
    /// E1006 if the file cannot be written.
    pub fn clear(&self) -> Result<bool, ErrorBody> {
        if private::open(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(false);
        }
        self.truncate().map_err(|error| self.unwritable(&error))
    }

    /// Empties the file. It keeps its place: somebody who waits for its lock would write into a removed one.
    fn truncate(&self) -> io::Result<bool> {
        let file = private::append(&self.path)?;
        file.lock()?;
        let had_labels = file.metadata()?.len() > 0;
        file.set_len(0)?;
        file.sync_all()?;
        Ok(had_labels)
    }

    fn unreadable(&self, error: &io::Error) -> ErrorBody {
        let message = format!("cannot read the labels {}: {error}", self.path.display());
        ErrorBody::new(Code::InvalidReference, message)
            .suggest("Check that it is a regular file that you may read, or set COG_LOGS_DIRECTORY.")
    }

    fn unwritable(&self, error: &io::Error) -> ErrorBody {
        let message = format!("cannot write the labels {}: {error}", self.path.display());
        ErrorBody::new(Code::InvalidReference, message)
            .suggest("Check that it is a regular file that you may write, or set COG_LOGS_DIRECTORY.")
    }
}

fn read(line: &[u8]) -> Option<Label> {
    cog_json::from_value(&Value::parse_bytes(line).ok()?).ok()
}

/// Whether the last line of a file has no line break. False if it cannot be read.
pub(super) fn ends_within_a_line(path: &Path) -> bool {
    let mut last = [b'\n'];
    if fs::metadata(path).is_ok_and(|about| about.is_file())
        && let Ok(mut file) = private::open(path)
        && file.seek(SeekFrom::End(-1)).is_ok()
    {
        let _ = file.read_exact(&mut last);
    }
    last != [b'\n']
}
