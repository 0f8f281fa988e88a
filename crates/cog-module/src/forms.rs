//! `forms.json`: the form in which a model is asked, chosen by measurement (ruling R91).
//!
//! The file can only choose among the forms, so it is read for every module, trusted or not.

use std::{fmt::Write as _, ops::Range, path::PathBuf};

use cog_json::{Limits, Node, Path, Value};
use cog_spec::{Form, FormsFile, MeasuredForm};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{
    Diagnostic, Origin, Prompt, Rule, Severity,
    diagnostic::shown,
    directory::unreadable,
    files::{self, FileError},
    source::Source,
};

/// The measured forms of a module.
#[derive(Debug, Clone, Default)]
pub struct Forms {
    entries: Vec<Entry>,
    /// Whether the file cannot be read.
    is_broken: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    measured: MeasuredForm,
    state: EntryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryState {
    Valid,
    Edited,
    Outdated,
}

/// What `forms.json` says about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormEntry<'a> {
    /// The form that was measured to be best.
    Measured(&'a MeasuredForm),
    /// The prompt or the schema has changed since it was measured.
    Outdated,
    /// The entry was edited.
    Edited,
    /// The file cannot be read.
    Broken,
    /// The model was not measured.
    Missing,
}

impl Forms {
    /// Reads the file of a module, if there is one. Returns an error for everything in it that is ignored, and a warning for an
    /// entry that is older than the module.
    pub(crate) fn read(
        origin: &Origin,
        prompt: &Prompt,
        schema: &serde_json::Value,
    ) -> (Self, Vec<Diagnostic>) {
        match read(origin) {
            Ok(Some(found)) => {
                let current = fingerprint(prompt, schema);
                let mut problems = Vec::new();
                let entries = found.entries(&current, &mut problems);
                (Self { entries, is_broken: false }, problems)
            }
            Ok(None) => (Self::default(), Vec::new()),
            Err(problem) => (Self { entries: Vec::new(), is_broken: true }, vec![*problem]),
        }
    }

    /// Returns what the file says about a model.
    pub fn find(&self, provider: &str, model: &str) -> FormEntry<'_> {
        if self.is_broken {
            return FormEntry::Broken;
        }
        let mut entries = self.entries.iter();
        match entries.find(|entry| entry.measured.provider == provider && entry.measured.model == model) {
            Some(Entry { measured, state: EntryState::Valid }) => FormEntry::Measured(measured),
            Some(Entry { state: EntryState::Edited, .. }) => FormEntry::Edited,
            Some(Entry { state: EntryState::Outdated, .. }) => FormEntry::Outdated,
            None => FormEntry::Missing,
        }
    }

    /// Returns whether a model may be asked in a form with examples.
    pub fn use_examples(&self) -> bool {
        self.entries.iter().any(|entry| entry.measured.form.examples > 0)
    }
}

/// A file, and the text that its diagnostics point into.
struct Found {
    source: Source,
    tree: Value,
    file: FormsFile,
}

impl Found {
    /// Judges each entry. A second entry for the same model is left out.
    fn entries(&self, current: &str, problems: &mut Vec<Diagnostic>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (index, measured) in self.file.forms.iter().enumerate() {
            let name = shown(&format!("{}/{}", measured.provider, measured.model));
            let is_repeated = entries.iter().any(|other| {
                other.measured.provider == measured.provider && other.measured.model == measured.model
            });
            if is_repeated {
                let message = format!("{name} has two entries; the first one is used");
                let found = self.about(Rule::FormsFile, index, "model", message);
                problems.push(found.suggest("Remove one of them."));
                continue;
            }
            let state = if checksum(measured) != measured.checksum {
                let message = format!("the entry of {name} was edited, so it is ignored");
                let found = self.about(Rule::FormsFile, index, "checksum", message);
                problems.push(found.suggest(
                    "Measure again with `cog test MODULE --forms --keep`. To choose a form yourself, set `ask` in the manifest.",
                ));
                EntryState::Edited
            } else if measured.module != current {
                let message = format!(
                    "the prompt or the schema has changed since `{}` was measured for {name}, so the entry is ignored",
                    measured.form
                );
                let found = self.about(Rule::FormsOutdated, index, "module", message);
                let found = Diagnostic { severity: Severity::Warning, ..found };
                problems.push(found.suggest("Measure again with `cog test MODULE --forms --keep`."));
                EntryState::Outdated
            } else {
                EntryState::Valid
            };
            entries.push(Entry { measured: measured.clone(), state });
        }
        entries
    }

    /// Returns an error at a member of an entry.
    fn about(&self, rule: Rule, index: usize, member: &str, message: String) -> Diagnostic {
        let node = self.tree.pointer(&format!("/forms/{index}/{member}")).unwrap_or(self.tree.node());
        Diagnostic::error(rule, &self.source.path, message).at(&self.source, span(node))
    }
}

/// The maximum size of the file in bytes.
const MAX_FORMS: u64 = 1024 * 1024;

fn read(origin: &Origin) -> Result<Option<Found>, Box<Diagnostic>> {
    let path = origin.path_of(FormsFile::NAME);
    let source = match origin.read(FormsFile::NAME, MAX_FORMS) {
        Ok(source) => source,
        Err(FileError::Missing) => return Ok(None),
        Err(error) => {
            return Err(Box::new(Diagnostic { rule: Rule::FormsFile, ..unreadable(&path, &error) }));
        }
    };
    let limits = Limits::default().with_bytes(MAX_FORMS);
    let tree = match Value::parse_within(source.text.as_bytes(), limits) {
        Ok(tree) => tree,
        Err(error) => {
            let at = error.offset()..error.offset() + 1;
            return Err(broken(&source, &format!("not JSON: {error}"), at));
        }
    };
    match cog_json::from_value(&tree) {
        Ok(file) => Ok(Some(Found { source, tree, file })),
        Err(error) => Err(broken(&source, &error.to_string(), span(nearest(&tree, error.path())))),
    }
}

fn broken(source: &Source, message: &str, at: Range<usize>) -> Box<Diagnostic> {
    let message = format!("{}: {message}", FormsFile::NAME);
    let found = Diagnostic::error(Rule::FormsFile, &source.path, message).at(source, at);
    Box::new(found.suggest(
        "Remove the file, and measure again with `cog test MODULE --forms --keep`. `cog schema forms` describes it.",
    ))
}

/// Returns the value at a path, or its nearest parent that exists.
fn nearest<'a>(tree: &'a Value, path: &Path) -> Node<'a> {
    let mut pointer = path.pointer();
    loop {
        if let Some(node) = tree.pointer(&pointer) {
            return node;
        }
        match pointer.rfind('/') {
            Some(end) => pointer.truncate(end),
            None => return tree.node(),
        }
    }
}

/// Returns the range of a complete string, otherwise of the first character of a value.
fn span(node: Node<'_>) -> Range<usize> {
    let start = node.offset();
    start..start + node.as_str().map_or(1, str::len)
}

// Hashes.

/// Returns the SHA-256 of a prompt and a schema.
fn fingerprint(prompt: &Prompt, schema: &serde_json::Value) -> String {
    // Git may write other line ends on another machine.
    let prompt = prompt.text().replace("\r\n", "\n");
    sha256(&format!("{}\n{prompt}{schema}", prompt.len()))
}

/// Returns the SHA-256 of an entry without its checksum.
fn checksum(measured: &MeasuredForm) -> String {
    let MeasuredForm { provider, model, form, cases, right, module, checksum: _ } = measured;
    sha256(&serde_json::json!([provider, model, form.name, cases, right, module]).to_string())
}

pub(crate) fn sha256(text: &str) -> String {
    let mut hash = String::from("sha256:");
    for byte in Sha256::digest(text) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

// Writing.

/// The result of a measurement: the best form for a model.
#[derive(Debug, Clone)]
pub struct BestForm {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model.
    pub model: String,
    /// The form.
    pub form: &'static Form,
    /// The number of golden tests.
    pub cases: u64,
    /// The number of them with the expected answer.
    pub right: u64,
}

/// Why a form was not stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeepFormError {
    /// The module is not in a directory.
    #[error("the module is built in")]
    NoDirectory,
    /// The file that is there is damaged.
    #[error("{}", .0.message)]
    Damaged(Box<Diagnostic>),
    /// The file cannot be written.
    #[error("{}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: FileError,
    },
}

/// Checks that a form could be stored: the module is in a directory, and the file that is there is not damaged.
///
/// # Errors
/// As [`keep`].
pub(crate) fn check(origin: &Origin) -> Result<(), KeepFormError> {
    kept(origin)?;
    let path = origin.path_of(FormsFile::NAME);
    files::check_writable(&path).map_err(|error| KeepFormError::Unwritable { path, error })
}

/// Returns the file that is there, or an empty one.
fn kept(origin: &Origin) -> Result<FormsFile, KeepFormError> {
    if !matches!(origin, Origin::Directory(_)) {
        return Err(KeepFormError::NoDirectory);
    }
    let found = read(origin).map_err(KeepFormError::Damaged)?;
    Ok(found.map(|found| found.file).unwrap_or_default())
}

/// Stores the best form for a model in `forms.json` of its module, in place of the entry for the same model. Returns the path.
///
/// # Errors
/// If the module is built in, the file that is there is damaged, or it cannot be written.
pub(crate) fn keep(
    origin: &Origin,
    prompt: &Prompt,
    schema: &serde_json::Value,
    best: BestForm,
) -> Result<PathBuf, KeepFormError> {
    let mut file = kept(origin)?;
    let BestForm { provider, model, form, cases, right } = best;
    let module = fingerprint(prompt, schema);
    let mut measured = MeasuredForm { provider, model, form, cases, right, module, checksum: String::new() };
    measured.checksum = checksum(&measured);
    file.forms.retain(|other| other.provider != measured.provider || other.model != measured.model);
    file.forms.push(measured);
    file.forms.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
    let path = origin.path_of(FormsFile::NAME);
    let unwritable = |error| KeepFormError::Unwritable { path: path.clone(), error };
    let text =
        serde_json::to_string_pretty(&file).map_err(|error| unwritable(FileError::Io(error.into())))?;
    files::write_atomic(&path, format!("{text}\n")).map_err(unwritable)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::Directory, validate};

    fn best(model: &str, form: &'static Form) -> BestForm {
        BestForm { provider: "openai".to_owned(), model: model.to_owned(), form, cases: 20, right: 18 }
    }

    /// Returns a module with a measured form for the model `m`.
    fn measured() -> Directory {
        let directory = Directory::v22();
        directory.load().unwrap().keep_form(best("m", Form::ANSWER)).unwrap();
        directory
    }

    fn found(directory: &Directory) -> Vec<(Severity, String, u32)> {
        let report = validate(&directory.origin(), crate::Level::Any);
        let about_forms =
            report.diagnostics.into_iter().filter(|found| found.file.ends_with(FormsFile::NAME));
        about_forms
            .map(|found| (found.severity, found.message, found.location.map_or(0, |location| location.line)))
            .collect()
    }

    #[test]
    fn kept_form_is_found_for_its_model() {
        let directory = measured();
        let module = directory.load().unwrap();
        let FormEntry::Measured(entry) = module.forms.find("openai", "m") else { panic!("not measured") };
        assert_eq!((entry.form, entry.cases, entry.right), (Form::ANSWER, 20, 18));
        assert_eq!(module.forms.find("openai", "other"), FormEntry::Missing);
        assert_eq!(module.forms.find("ollama", "m"), FormEntry::Missing);
        assert_eq!(found(&directory), []);
    }

    #[test]
    fn kept_form_replaces_the_entry_of_its_model_only() {
        let directory = measured();
        let module = directory.load().unwrap();
        module.keep_form(best("a", Form::ENVELOPE)).unwrap();
        module.keep_form(best("m", Form::DATA)).unwrap();
        let forms = directory.load().unwrap().forms;
        let form = |model: &str| match forms.find("openai", model) {
            FormEntry::Measured(entry) => entry.form.name,
            other => panic!("{other:?}"),
        };
        assert_eq!((form("a"), form("m")), ("envelope", "data"));
        assert_eq!(directory.read("forms.json").matches("\"provider\"").count(), 2);
    }

    #[test]
    fn entry_of_a_changed_module_is_ignored_with_a_warning() {
        for (file, text) in [
            ("prompt.md", "Sort $ARGUMENTS well.\n".to_owned()),
            ("schema.json", { Directory::v22().read("schema.json").replace("billing", "payment") }),
        ] {
            let directory = measured().with(file, text);
            assert_eq!(directory.load().unwrap().forms.find("openai", "m"), FormEntry::Outdated, "{file}");
            let found = found(&directory);
            let [(severity, message, line)] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!((*severity, *line), (Severity::Warning, 9), "{message}");
            assert!(message.contains("has changed since `answer` was measured for openai/m"), "{message}");
        }
    }

    #[test]
    fn line_ends_and_white_space_of_the_schema_change_nothing() {
        let directory = measured();
        let prompt = directory.read("prompt.md").replace('\n', "\r\n");
        let schema = directory.read("schema.json").replace('\n', "\r\n\t");
        let directory = directory.with("prompt.md", prompt).with("schema.json", schema);
        assert!(matches!(directory.load().unwrap().forms.find("openai", "m"), FormEntry::Measured(_)));
    }

    #[test]
    fn edited_entry_is_an_error_with_its_line() {
        for (from, to) in [("\"answer\"", "\"data\""), ("18", "20"), ("\"m\"", "\"n\"")] {
            let directory = measured();
            let text = directory.read("forms.json").replace(from, to);
            let directory = directory.with("forms.json", text);
            let found = found(&directory);
            let [(Severity::Error, message, 10)] = found.as_slice() else { panic!("{found:?}") };
            assert!(message.contains("was edited"), "{message}");
            let forms = directory.load().unwrap().forms;
            let model = if to == "\"n\"" { "n" } else { "m" };
            assert_eq!(forms.find("openai", model), FormEntry::Edited);
        }
    }

    #[test]
    fn broken_file_is_an_error_and_the_module_loads() {
        let valid = measured().read("forms.json");
        for (text, line, message) in [
            ("{\"forms\":\n[".to_owned(), 2, "not JSON"),
            ("1".to_owned(), 1, "invalid type"),
            ("{\"forms\": [], \"more\": 1}".to_owned(), 1, "unknown field `more`"),
            (valid.replace("\"answer\"", "\"anser\""), 6, "`anser` is not one of envelope, "),
            (valid.replace("\"cases\": 20,", ""), 3, "missing field `cases`"),
            (valid.replace("\"cases\": 20", "\"cases\": -1"), 7, "expected u64"),
        ] {
            let directory = Directory::v22().with("forms.json", &text);
            let module = directory.load().unwrap();
            assert_eq!(module.forms.find("openai", "m"), FormEntry::Broken, "{text}");
            assert!(module.warnings.iter().any(|found| found.rule == Rule::FormsFile), "{text}");
            let found = found(&directory);
            assert_eq!((found[0].0, found[0].2), (Severity::Error, line), "{found:?}");
            assert!(found[0].1.contains(message), "{found:?}");
            assert!(module.keep_form(best("m", Form::DATA)).is_err());
            assert_eq!(directory.read("forms.json"), text, "a damaged file is not replaced");
        }
    }

    #[test]
    fn second_entry_of_a_model_is_an_error() {
        let directory = measured();
        let text = directory.read("forms.json");
        let entry = &text[text.find("    {").unwrap()..text.rfind("\n  ]").unwrap()];
        let directory = directory.with("forms.json", text.replace(entry, &format!("{entry},\n{entry}")));
        let found = found(&directory);
        assert!(found.len() == 1 && found[0].1.contains("openai/m has two entries"), "{found:?}");
    }
}
