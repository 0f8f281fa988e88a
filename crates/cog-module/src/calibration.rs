//! `calibration.json`: what the confidence of each model was worth on cases with a known truth (docs/calibration.md).
//!
//! The file decides which answers a program accepts without a look. So it counts only as long as nothing has changed that it
//! depends on, and only in a directory that is trusted.

use std::path::{Path, PathBuf};

use cog_json::{Limits, Value};
use cog_spec::{Calibration, CalibrationFile, Effort, EvidenceMap, EvidenceRequest, Form, ScoreCount};
use thiserror::Error;

use crate::{
    Module, Origin, Prompt,
    files::{self, FileError},
    forms::sha256,
    yaml::Content,
};

/// The maximum size of the file in bytes. The scores of a calibration are at most 10,001, so no number of cases reaches it.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The file of a module, read once.
#[derive(Debug, Clone, Default)]
pub struct Calibrations {
    entries: Vec<Entry>,
    /// Why the file is not used.
    problem: Option<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    calibration: Calibration,
    is_edited: bool,
}

/// How a model is asked, which a calibration depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationKey {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model.
    pub model: String,
    /// How much it is asked to think.
    pub effort: Option<Effort>,
    /// The form in which it is asked.
    pub form: &'static Form,
    /// What a run collects about its answer.
    pub evidence: EvidenceRequest,
}

/// What the file says about a model.
#[derive(Debug, Clone, PartialEq)]
pub enum CalibrationEntry<'a> {
    /// A calibration that applies.
    Valid(&'a Calibration),
    /// A calibration that does not apply, and why not.
    Stale(&'a Calibration, String),
    /// There is none, and why not.
    Missing(String),
}

impl Calibrations {
    /// Returns what the file says about a model.
    pub fn find(&self, module: &Module, key: &CalibrationKey) -> CalibrationEntry<'_> {
        let CalibrationKey { provider, model, effort, form, evidence } = key;
        if let Some(problem) = &self.problem {
            return CalibrationEntry::Missing(problem.clone());
        }
        let of_model =
            |entry: &&Entry| entry.calibration.provider == *provider && entry.calibration.model == *model;
        let Some(entry) =
            self.entries.iter().filter(of_model).find(|entry| entry.calibration.effort == *effort)
        else {
            let others = self.entries.iter().any(|entry| of_model(&entry));
            return CalibrationEntry::Missing(match (others, effort) {
                (true, Some(effort)) => format!("{provider}/{model} was not measured with effort `{effort}`"),
                (true, None) => format!("{provider}/{model} was measured only with an effort"),
                (false, _) => format!("{provider}/{model} was not measured"),
            });
        };
        let calibration = &entry.calibration;
        let reason = if entry.is_edited {
            "it was edited".to_owned()
        } else if calibration.module != module.fingerprint {
            "manifest, prompt or schema has changed since".to_owned()
        } else if calibration.form != *form {
            format!("the model was asked in the form `{}`, and is now in `{form}`", calibration.form)
        } else if let Some(reason) = collected_otherwise(calibration, evidence) {
            reason
        } else if !module.trust.allows_tools() {
            "its directory is not trusted".to_owned()
        } else {
            return CalibrationEntry::Valid(calibration);
        };
        CalibrationEntry::Stale(calibration, reason)
    }

    /// Returns why the file is not used; none if it is, or if there is no file.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the models that the file has calibrations of.
    pub fn models(&self) -> impl Iterator<Item = &Calibration> {
        self.entries.iter().map(|entry| &entry.calibration)
    }
}

/// The result of a calibration, to be stored.
#[derive(Debug, Clone)]
pub struct NewCalibration {
    /// How the model was asked.
    pub key: CalibrationKey,
    /// The map.
    pub map: EvidenceMap,
    /// The cases, from the highest score to the lowest.
    pub scores: Vec<ScoreCount>,
    /// The cases by the map itself, if `scores` are by others.
    pub compared: Vec<ScoreCount>,
}

/// Why a calibration was not stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeepCalibrationError {
    /// The module is in memory, or there is no state directory for a module that is built in.
    #[error("there is no directory for it")]
    NoDirectory,
    /// The file that is there cannot be used.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The file cannot be written.
    #[error("{}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: FileError,
    },
}

impl Module {
    /// Reads the calibrations of the module: in its directory, or for a module that is built in, in the user's state directory.
    pub fn calibrations(&self, state: Option<&Path>) -> Calibrations {
        let Some(path) = self.calibration_file(state) else { return Calibrations::default() };
        match read(&self.origin, &path) {
            Ok(Some(file)) => Calibrations {
                entries: file
                    .calibrations
                    .into_iter()
                    .map(|calibration| Entry {
                        is_edited: checksum(&calibration) != calibration.checksum || !is_sane(&calibration),
                        calibration,
                    })
                    .collect(),
                problem: None,
            },
            Ok(None) => Calibrations::default(),
            Err(problem) => {
                let problem = format!("{} {problem}", CalibrationFile::NAME);
                Calibrations { entries: Vec::new(), problem: Some(problem) }
            }
        }
    }

    /// Returns the path of the calibrations; none if there is no directory for them.
    pub fn calibration_file(&self, state: Option<&Path>) -> Option<PathBuf> {
        if let Origin::BuiltIn(shipped) = &self.origin {
            return Some(state?.join("calibrations").join(format!("{}.json", shipped.name)));
        }
        self.origin.directory().map(|directory| directory.join(CalibrationFile::NAME))
    }

    /// Checks that [`Module::keep_calibration`] could store a calibration, before the calls, which cost money.
    ///
    /// # Errors
    /// As [`Module::keep_calibration`].
    pub fn check_calibrations(&self, state: Option<&Path>) -> Result<PathBuf, KeepCalibrationError> {
        let path = self.calibration_file(state).ok_or(KeepCalibrationError::NoDirectory)?;
        kept(&self.origin, &path)?;
        let unwritable = |error| KeepCalibrationError::Unwritable { path: path.clone(), error };
        if let (Origin::BuiltIn(_), Some(parent)) = (&self.origin, path.parent()) {
            files::create_directory(parent).map_err(unwritable)?;
        }
        files::check_writable(&path).map_err(unwritable)?;
        Ok(path)
    }

    /// Stores a calibration, in place of the one for the same provider, model and effort. Returns the path.
    ///
    /// # Errors
    /// If the module has no directory, the file that is there is damaged, or it cannot be written.
    pub fn keep_calibration(
        &self,
        state: Option<&Path>,
        new: NewCalibration,
    ) -> Result<PathBuf, KeepCalibrationError> {
        let path = self.check_calibrations(state)?;
        let mut file = kept(&self.origin, &path)?;
        let NewCalibration { key, map, scores, compared } = new;
        let CalibrationKey { provider, model, effort, form, evidence } = key;
        let collected = evidence.to_string();
        let module = self.fingerprint.clone();
        let checksum = String::new();
        let unsigned =
            Calibration { provider, model, effort, form, collected, map, scores, compared, module, checksum };
        let calibration = Calibration { checksum: self::checksum(&unsigned), ..unsigned };
        file.calibrations.retain(|other| {
            (&other.provider, &other.model, other.effort)
                != (&calibration.provider, &calibration.model, calibration.effort)
        });
        file.calibrations.push(calibration);
        file.calibrations
            .sort_by(|a, b| (&a.provider, &a.model, a.effort).cmp(&(&b.provider, &b.model, b.effort)));
        let unwritable = |error| KeepCalibrationError::Unwritable { path: path.clone(), error };
        let text =
            serde_json::to_string_pretty(&file).map_err(|error| unwritable(FileError::Io(error.into())))?;
        files::write_atomic(&path, format!("{text}\n")).map_err(unwritable)?;
        Ok(path)
    }
}

/// Returns how the evidence of a run differs from the evidence of the cases. A kind that the run does not collect at all is absent
/// from its answer, which says so.
fn collected_otherwise(calibration: &Calibration, of_run: &EvidenceRequest) -> Option<String> {
    let of_cases: EvidenceRequest = calibration.collected.parse().ok()?;
    let reads = |kind: &str| calibration.map.slopes.contains_key(kind);
    if let (Some(before), Some(now)) = (of_cases.agreement, of_run.agreement)
        && before != now
        && reads("agreement")
    {
        return Some(format!("its agreement is of {before} runs, and this one of {now}"));
    }
    if let (Some(before), Some(now)) = (of_cases.judge, &of_run.judge)
        && before != *now
        && reads("judge")
    {
        return Some(format!("its judge is `{before}`, and is now `{now}`"));
    }
    None
}

/// Returns the file that is there, or an empty one.
fn kept(origin: &Origin, path: &Path) -> Result<CalibrationFile, KeepCalibrationError> {
    let found = read(origin, path)
        .map_err(|problem| KeepCalibrationError::Damaged { path: path.to_owned(), problem })?;
    Ok(found.unwrap_or(CalibrationFile { version: CalibrationFile::VERSION, calibrations: Vec::new() }))
}

/// Reads a file, if there is one.
///
/// # Errors
/// Why it is not used, as the end of a sentence.
fn read(origin: &Origin, path: &Path) -> Result<Option<CalibrationFile>, String> {
    let text = match origin {
        Origin::Directory(_) => origin.read(CalibrationFile::NAME, MAX_FILE).map(|source| source.text),
        _ => files::read_text(path, MAX_FILE),
    };
    let text = match text {
        Ok(text) => text,
        Err(FileError::Missing) => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let limits = Limits::default().with_bytes(MAX_FILE);
    let tree =
        Value::parse_within(text.as_bytes(), limits).map_err(|error| format!("is not JSON: {error}"))?;
    // Before the other members, which another version may have changed.
    match tree.get("version").and_then(|version| version.as_u64()) {
        Some(version) if version == u64::from(CalibrationFile::VERSION) => {}
        Some(version) => {
            return Err(format!(
                "has version {version}, and this program reads {}",
                CalibrationFile::VERSION
            ));
        }
        None => return Err("has no version".to_owned()),
    }
    cog_json::from_value(&tree).map(Some).map_err(|error| format!("is damaged: {error}"))
}

/// Whether the numbers can be those of a calibration.
fn is_sane(calibration: &Calibration) -> bool {
    let Calibration { map, scores, compared, .. } = calibration;
    let is_score = |count: &ScoreCount| {
        (0.0..=1.0).contains(&count.score) && count.cases > 0 && count.right <= count.cases
    };
    let is_list = |list: &[ScoreCount]| {
        list.is_sorted_by(|one, other| one.score > other.score) && list.iter().all(is_score)
    };
    let has_map =
        !map.slopes.is_empty() && map.slopes.values().chain([&map.intercept]).all(|n| n.is_finite());
    has_map && is_list(scores) && is_list(compared)
}

/// Returns the SHA-256 of a calibration without its checksum.
fn checksum(calibration: &Calibration) -> String {
    let unsigned = Calibration { checksum: String::new(), ..calibration.clone() };
    sha256(&serde_json::to_string(&unsigned).unwrap_or_default())
}

/// The keys of a manifest that change nothing in an answer, so that a new gate or test needs no new calibration.
const IRRELEVANT: [&str; 3] = ["version", "confidence", "tests"];

/// Returns the SHA-256 of what the answers of a module depend on.
pub(crate) fn fingerprint(manifest: &Content, prompt: &Prompt, schema: &serde_json::Value) -> String {
    let mut entries = Vec::new();
    if let Content::Map(members) = manifest {
        let relevant = members.iter().filter(|entry| !IRRELEVANT.contains(&entry.key.as_str()));
        entries.extend(relevant.map(|entry| (entry.key.as_str(), entry.value.to_json())));
    }
    entries.sort_by_key(|(key, _)| *key);
    // Git may write other line ends on another machine.
    let prompt = prompt.text().replace("\r\n", "\n");
    sha256(&serde_json::json!([entries, prompt, schema]).to_string())
}

#[cfg(test)]
mod tests;
