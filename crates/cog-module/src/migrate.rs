//! From an old format to v2.2 and v2.5 (docs/spec/modules.md, *Migration*).
//!
//! [`plan`] reads and writes nothing; what it plans can be shown as a diff and then applied. Existing
//! files keep their comments and the order of their keys: text is put in, never written anew.

mod apply;
mod draft;
mod manifest;
mod prompt;
mod schema;
mod v0;

use std::path::PathBuf;

use cog_json::{ToJson, Writer};
use cog_spec::{Format, Manifest};
use thiserror::Error;

use self::draft::Draft;
use crate::{LoadError, Module, Origin, files::FileError, load};

/// Where a migration leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// Envelope and tier.
    V22,
    /// The same, and a response mode.
    #[default]
    V25,
}

/// What a migration changes. Nothing has been written yet.
#[derive(Debug, Clone)]
pub struct Migration {
    /// The module's name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its format now.
    pub from: Format,
    /// Its format afterwards.
    pub to: Format,
    /// Every file that changes; none where there is nothing to do.
    pub changes: Vec<FileChange>,
    /// What a person should look at afterwards.
    pub notes: Vec<String>,
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the module's directory.
    pub path: String,
    /// The text now; none where there is no such file.
    pub before: Option<String>,
    /// The text afterwards; none where the file is removed.
    pub after: Option<String>,
}

/// Why a module was not migrated. It is then as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// It does not load as it is.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is built in, so that there is no directory to change.
    #[error("`{name}` is built in and cannot be migrated")]
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// The manifest is written in a way that text cannot be put into.
    #[error("module.yaml uses flow style (`{{ }}`), which cannot be edited")]
    FlowStyle,
    /// What would be written would not load: an error of this program.
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
    /// What to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Load(_) | Self::Result(_) => None,
            Self::BuiltIn { name } => Some(format!("run `cog new NAME --from {name}` to create a copy")),
            Self::FlowStyle => Some("write each key on its own line, without braces".to_owned()),
            Self::File { error, .. } => Some(error.suggestion().to_owned()),
        }
    }
}

/// Plans the migration of a module; reads alone.
///
/// A module that has the target's format already needs no change: migrating twice is migrating once.
///
/// # Errors
/// When the module does not load, is built in, or cannot be changed by putting text in.
pub fn plan(origin: &Origin, target: Target) -> Result<Migration, MigrateError> {
    let module = load(origin)?;
    let Origin::Directory(directory) = origin else {
        return Err(MigrateError::BuiltIn { name: module.manifest.name.clone() });
    };
    let mut draft = Draft::of(origin);
    let from = module.manifest.format;
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
    Ok(Migration {
        name: module.manifest.name.clone(),
        directory: directory.clone(),
        from,
        to,
        changes,
        notes,
    })
}

fn to_v22(module: &Module, draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    match module.manifest.format {
        Format::V0 => v0::gather(draft)?,
        Format::V1 => v0::split_module_md(draft)?,
        Format::V21 | Format::V22 | Format::V25 => {}
    }
    schema::to_v22(draft, output_key(&module.manifest))?;
    prompt::add_envelope(draft)?;
    v0::move_examples(draft)
}

/// The name that the schema of an old module gives its data.
fn output_key(manifest: &Manifest) -> &'static str {
    if manifest.format == Format::V0 { "data" } else { "output" }
}

impl Migration {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What changes, as a unified diff whose paths begin with the module's directory.
    pub fn diff(&self) -> String {
        let directory = self.directory.to_string_lossy().replace('\\', "/");
        let directory = directory.trim_start_matches("./").trim_matches('/');
        self.changes.iter().map(|change| change.diff(directory)).collect()
    }
}

impl FileChange {
    fn diff(&self, directory: &str) -> String {
        let (before, after) = (self.before.as_deref().unwrap_or(""), self.after.as_deref().unwrap_or(""));
        let name = |side: &str, text: &Option<String>| match text {
            Some(_) if matches!(directory, "" | ".") => format!("{side}/{}", self.path),
            Some(_) => format!("{side}/{directory}/{}", self.path),
            None => "/dev/null".to_owned(),
        };
        let diff = similar::TextDiff::from_lines(before, after);
        diff.unified_diff().header(&name("a", &self.before), &name("b", &self.after)).to_string()
    }
}

impl ToJson for Migration {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.name);
            w.field("path", self.directory.to_string_lossy().as_ref());
            w.field("from", self.from.as_str());
            w.field("to", self.to.as_str());
            w.field("changes", &self.changes);
            w.field("notes", &self.notes);
        });
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

#[cfg(test)]
mod tests;
