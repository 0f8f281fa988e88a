//! Migrates modules from old formats to v2.2 and v2.5 (docs/spec/modules.md, *Migration*).
//!
//! [`plan`] writes nothing; the plan can be shown as a diff and then applied. The comments and the
//! order of keys in existing files stay, because text is inserted and not regenerated.

mod manifest;
mod schema;
mod v0;

use std::path::{Path, PathBuf};

use cog_json::{Array, ToJson, Writer};
use cog_spec::{Format, Manifest};
use thiserror::Error;

use crate::{
    LoadError, Module, Origin,
    files::{self, FileError},
    load,
    source::Source,
};

/// The target format of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// v2.2: envelope and tier.
    V22,
    /// v2.5: a response mode as well.
    #[default]
    V25,
}

impl Target {
    const fn format(self) -> Format {
        match self {
            Self::V22 => Format::V22,
            Self::V25 => Format::V25,
        }
    }
}

/// The changes of a migration, not yet written.
#[derive(Debug, Clone)]
pub struct Migration {
    /// The module's name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its current format.
    pub from: Format,
    /// Its format afterwards.
    pub to: Format,
    /// Every changed file; empty if there is nothing to do.
    pub changes: Vec<FileChange>,
    /// Notes for review.
    pub notes: Vec<String>,
}

/// Plans the migration of a module without writing.
///
/// A module that already has the target format needs no change.
///
/// # Errors
/// If the module does not load, is built in and has an older format, or cannot be edited.
pub fn plan(origin: &Origin, target: Target) -> Result<Migration, MigrateError> {
    let module = load(origin)?;
    let from = module.manifest.format;
    let is_current = from >= target.format() && module.manifest.tier.is_some();
    let directory = match origin {
        Origin::Directory(directory) => directory.clone(),
        _ if is_current => origin.path_of(""),
        _ => return Err(MigrateError::BuiltIn { name: module.manifest.name.clone() }),
    };
    let mut draft = Draft::new(origin);
    let mut to = from;
    if from < Format::V22 {
        to_v22(&module, &mut draft)?;
        to = Format::V22;
    }
    if module.manifest.tier.is_none() {
        manifest::add_tier(&mut draft)?;
    }
    if target == Target::V25 && from < Format::V25 {
        manifest::add_response(&mut draft)?;
        to = Format::V25;
    }
    let (changes, notes) = draft.finish();
    Ok(Migration { name: module.manifest.name.clone(), directory, from, to, changes, notes })
}

fn to_v22(module: &Module, draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    match module.manifest.format {
        Format::V0 => v0::gather(draft)?,
        Format::V1 => v0::split_module_md(draft)?,
        Format::V21 | Format::V22 | Format::V25 => {}
    }
    schema::to_v22(draft, output_key(&module.manifest))?;
    manifest::add_envelope(draft)?;
    v0::move_examples(draft)
}

/// Returns the name of the data section in the schema of an old module.
fn output_key(manifest: &Manifest) -> &'static str {
    if manifest.format == Format::V0 { "data" } else { "output" }
}

impl Migration {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes as a unified diff with paths from the module's directory.
    pub fn diff(&self) -> String {
        let directory = self.directory.to_string_lossy().replace('\\', "/");
        let directory = directory.trim_start_matches("./").trim_matches('/');
        self.changes.iter().map(|change| change.diff(directory)).collect()
    }
}

/// Written by hand: the path is written as text.
impl ToJson for Migration {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.name);
            w.field("path", self.directory.to_string_lossy().as_ref());
            w.field("from", self.from.as_str());
            w.field("to", self.to.as_str());
            w.field("changes", &Array(&self.changes));
            w.field("notes", &self.notes);
        });
    }
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the module's directory.
    pub path: String,
    /// The current text; none for a new file.
    pub before: Option<String>,
    /// The new text; none for a removed file.
    pub after: Option<String>,
}

impl FileChange {
    /// Returns the change as a unified diff with its path below `directory`.
    fn diff(&self, directory: &str) -> String {
        let before = self.before.as_deref();
        let after = self.after.as_deref();
        let diff = similar::TextDiff::from_lines(before.unwrap_or(""), after.unwrap_or(""));
        let old = self.name_in_diff("a", directory, before);
        let new = self.name_in_diff("b", directory, after);
        diff.unified_diff().header(&old, &new).to_string()
    }

    fn name_in_diff(&self, side: &str, directory: &str, text: Option<&str>) -> String {
        match text {
            Some(_) if matches!(directory, "" | ".") => format!("{side}/{}", self.path),
            Some(_) => format!("{side}/{directory}/{}", self.path),
            None => "/dev/null".to_owned(),
        }
    }
}

impl ToJson for FileChange {
    fn write_json(&self, w: &mut Writer<'_>) {
        let kind = match (&self.before, &self.after) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        };
        w.object(|w| {
            w.field("path", &self.path);
            w.field("change", kind);
        });
    }
}

/// Why a module was not migrated. It is then unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// It does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is built in, so there is no directory to change.
    #[error("`{name}` is built in and cannot be migrated")]
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// The manifest has a form that text cannot be inserted into.
    #[error("{}: the manifest uses flow style (`{{ }}`), which cannot be edited", .path.display())]
    FlowStyle {
        /// The manifest.
        path: PathBuf,
    },
    /// The result would not load: an error in this program.
    #[error("the migrated module is invalid: {0}")]
    Result(LoadError),
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl MigrateError {
    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Load(_) | Self::Result(_) => None,
            Self::BuiltIn { name } => Some(format!("Run `cog new NAME --from {name}` to create a copy.")),
            Self::FlowStyle { .. } => Some("Write each key on its own line, without braces.".to_owned()),
            Self::File { error, .. } => Some(error.suggestion().to_owned()),
        }
    }
}

impl Migration {
    /// Writes the plan. With `backup`, the old directory is stored next to the module, and its path is returned.
    ///
    /// The change is atomic: the new directory is created next to the old one, loaded as a check, and then replaces
    /// it.
    ///
    /// # Errors
    /// If a file cannot be written or the result does not load; the module is then unchanged.
    pub fn apply(&self, backup: bool) -> Result<Option<PathBuf>, MigrateError> {
        if self.is_empty() {
            return Ok(None);
        }
        let directory =
            self.directory.canonicalize().map_err(|error| self.at(&self.directory, error.into()))?;
        let fresh = files::Sibling::new(&directory).map_err(|error| self.at(&directory, error))?;
        let staged = fresh.path().join(directory.file_name().unwrap_or_default());
        files::copy_directory(&directory, &staged).map_err(|error| self.at(&directory, error))?;
        self.write_into(&staged)?;
        load(&Origin::Directory(staged.clone())).map_err(MigrateError::Result)?;
        let backup = backup.then(|| self.backup_name(&directory));
        fresh.swap(&staged, &directory, backup.as_deref()).map_err(|error| self.at(&directory, error))?;
        Ok(backup)
    }

    fn write_into(&self, staged: &Path) -> Result<(), MigrateError> {
        for change in &self.changes {
            let path = staged.join(&change.path);
            let written = match &change.after {
                Some(text) => files::make_directory_of(&path).and_then(|()| files::write_atomic(&path, text)),
                None => files::remove(&path, staged),
            };
            written.map_err(|error| self.at(&path, error))?;
        }
        Ok(())
    }

    /// Returns `NAME.v1.bak`, with a number if that exists. Because of the dot it is not a module name.
    fn backup_name(&self, directory: &Path) -> PathBuf {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let base = format!("{name}.{}.bak", self.from);
        let numbered = (2..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let free = names.find(|name| !directory.with_file_name(name).exists());
        directory.with_file_name(free.unwrap_or(base))
    }

    fn at(&self, path: &Path, error: FileError) -> MigrateError {
        MigrateError::File { path: path.to_owned(), error }
    }
}

/// The future files of a module, over its current files.
struct Draft<'a> {
    origin: &'a Origin,
    changes: Vec<FileChange>,
    notes: Vec<String>,
}

impl<'a> Draft<'a> {
    fn new(origin: &'a Origin) -> Self {
        Self { origin, changes: Vec::new(), notes: Vec::new() }
    }

    /// Returns the future content of a file; none if it will not exist.
    fn read(&self, path: &str) -> Result<Option<Source>, MigrateError> {
        let full = self.origin.path_of(path);
        if let Some(change) = self.changes.iter().find(|change| change.path == path) {
            return Ok(change.after.clone().map(|text| Source::new(full, text)));
        }
        match self.origin.read(path, files::MAX_CASE) {
            Ok(source) => Ok(Some(source)),
            Err(FileError::Missing | FileError::Empty) => Ok(None),
            Err(error) => Err(MigrateError::File { path: full, error }),
        }
    }

    /// Returns the future content of a required file.
    fn require(&self, path: &str) -> Result<Source, MigrateError> {
        let source = self.read(path)?;
        source
            .ok_or_else(|| MigrateError::File { path: self.origin.path_of(path), error: FileError::Missing })
    }

    fn put(&mut self, path: &str, text: String) -> Result<(), MigrateError> {
        self.set(path, Some(text))
    }

    fn remove(&mut self, path: &str) -> Result<(), MigrateError> {
        self.set(path, None)
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the changes sorted by path, and the notes.
    fn finish(mut self) -> (Vec<FileChange>, Vec<String>) {
        self.changes.retain(|change| change.before != change.after);
        self.changes.sort_by(|a, b| a.path.cmp(&b.path));
        (self.changes, self.notes)
    }

    fn set(&mut self, path: &str, after: Option<String>) -> Result<(), MigrateError> {
        if let Some(change) = self.changes.iter_mut().find(|change| change.path == path) {
            change.after = after;
            return Ok(());
        }
        let before = self.read(path)?.map(|source| source.text);
        self.changes.push(FileChange { path: path.to_owned(), before, after });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
