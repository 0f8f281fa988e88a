//! Creates modules: from a template, or as a copy (`cog new`).

use std::path::{Path, PathBuf};

use cog_spec::Tier;
use thiserror::Error;

use crate::{
    LoadError, Origin,
    diagnostic::shown,
    files::{self, FileError},
    layout,
    load::locate_name,
    name::{is_module_name, similar_module_name},
    source::Edits,
};

/// Why no module was created. Nothing is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScaffoldError {
    /// The name is not a valid module name.
    #[error(
        "`{name}` is not a valid module name: use lower case letters, digits and hyphens, starting with a letter"
    )]
    Name {
        /// The requested name.
        name: String,
    },
    /// The directory already exists.
    #[error("{} already exists", .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The module to copy does not load.
    #[error("cannot load the module to copy")]
    Source(#[from] LoadError),
    /// A file could not be written.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ScaffoldError {
    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Name { name } => {
                let similar = similar_module_name(name);
                Some(format!("Try `{}`.", similar.as_deref().unwrap_or("my-module")))
            }
            Self::Exists { .. } => Some("Choose another name, or move the existing directory.".to_owned()),
            Self::Source(_) => None,
            Self::Write { error, .. } => Some(error.suggestion().to_owned()),
        }
    }
}

/// Creates a v2.5 module from the template, in a directory `name` under `parent`. Returns the directory.
///
/// The module is valid at every level, and its golden test runs offline.
///
/// # Errors
/// If the name is invalid, the directory exists, or a file cannot be written.
pub fn new(parent: &Path, name: &str, tier: Tier) -> Result<PathBuf, ScaffoldError> {
    let files = TEMPLATE.iter().map(|(path, text)| {
        let text = text.replace("NAME", name).replace("TIER", tier.as_str());
        ((*path).to_owned(), text.into_bytes())
    });
    create(parent, name, files.collect())
}

/// Copies a module, on disk or built in, to a directory `name` under `parent`, under its new name.
///
/// # Errors
/// As [`new`], and if the module to copy does not load.
pub fn copy(parent: &Path, name: &str, from: &Origin) -> Result<PathBuf, ScaffoldError> {
    let module = crate::load(from)?;
    let manifest = layout::family_of(module.manifest.format).manifest();
    let mut files = from.all_files().map_err(|error| write_error(&from.path_of(""), error))?;
    for (path, content) in &mut files {
        if path == manifest {
            *content = rename(from, manifest, name).unwrap_or_else(|| std::mem::take(content));
        }
    }
    create(parent, name, files)
}

const TEMPLATE: &[(&str, &str)] = &[
    ("module.yaml", include_str!("scaffold/module.yaml")),
    ("prompt.md", include_str!("scaffold/prompt.md")),
    ("schema.json", include_str!("scaffold/schema.json")),
    ("tests/case1.input.json", include_str!("scaffold/case1.input.json")),
    ("tests/case1.expected.json", include_str!("scaffold/case1.expected.json")),
];

/// Returns the text of a manifest with another name.
fn rename(from: &Origin, manifest: &str, name: &str) -> Option<Vec<u8>> {
    let source = from.read(manifest, files::MAX_PART).ok()?;
    let mut edits = Edits::default();
    edits.replace(locate_name(from)?, name);
    Some(edits.apply(&source.text).into_bytes())
}

/// Writes the files to a temporary directory, which then takes its final name.
fn create(parent: &Path, name: &str, files: Vec<(String, Vec<u8>)>) -> Result<PathBuf, ScaffoldError> {
    if !is_module_name(name) {
        return Err(ScaffoldError::Name { name: shown(name) });
    }
    let directory = parent.join(name);
    if directory.exists() {
        return Err(ScaffoldError::Exists { path: directory });
    }
    files::write_directory(&directory, &files).map_err(|error| write_error(&directory, error))?;
    Ok(directory)
}

fn write_error(path: &Path, error: FileError) -> ScaffoldError {
    ScaffoldError::Write { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests;
