//! Creates modules: from a template, or as a copy (`cog new`).

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use cog_spec::{ParseEnumError, Tier};
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

/// What a new module does: which template it starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Chooses one of the labels in its schema for a text.
    Classify,
    /// Reads values out of a text.
    Extract,
    /// Writes a text from a brief.
    Generate,
    /// Answers the question in a text.
    Answer,
}

impl Kind {
    /// Every kind, in the order in which they are offered.
    pub const ALL: &'static [Kind] = &[Kind::Classify, Kind::Extract, Kind::Generate, Kind::Answer];
    /// The names of all kinds, in the same order.
    pub const NAMES: &'static [&'static str] = &["classify", "extract", "generate", "answer"];

    /// Returns the name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Classify => "classify",
            Kind::Extract => "extract",
            Kind::Generate => "generate",
            Kind::Answer => "answer",
        }
    }

    /// Returns what a module of this kind does, as a phrase.
    pub const fn describe(self) -> &'static str {
        match self {
            Kind::Classify => "choose one of some labels for a text",
            Kind::Extract => "read values out of a text",
            Kind::Generate => "write a text from a brief",
            Kind::Answer => "answer the question in a text",
        }
    }

    /// Returns the files of its template, with their paths.
    const fn template(self) -> Template {
        macro_rules! template {
            ($kind:literal) => {
                [
                    ("module.yaml", include_str!(concat!("scaffold/", $kind, "/module.yaml"))),
                    ("prompt.md", include_str!(concat!("scaffold/", $kind, "/prompt.md"))),
                    ("schema.json", include_str!(concat!("scaffold/", $kind, "/schema.json"))),
                    (
                        "tests/case1.input.json",
                        include_str!(concat!("scaffold/", $kind, "/tests/case1.input.json")),
                    ),
                    (
                        "tests/case1.expected.json",
                        include_str!(concat!("scaffold/", $kind, "/tests/case1.expected.json")),
                    ),
                    (
                        "tests/case2.input.json",
                        include_str!(concat!("scaffold/", $kind, "/tests/case2.input.json")),
                    ),
                    (
                        "tests/case2.expected.json",
                        include_str!(concat!("scaffold/", $kind, "/tests/case2.expected.json")),
                    ),
                ]
            };
        }
        match self {
            Kind::Classify => template!("classify"),
            Kind::Extract => template!("extract"),
            Kind::Generate => template!("generate"),
            Kind::Answer => template!("answer"),
        }
    }
}

type Template = [(&'static str, &'static str); 7];

impl FromStr for Kind {
    type Err = ParseEnumError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let kind = Kind::ALL.iter().copied().find(|kind| kind.as_str() == text);
        kind.ok_or_else(|| ParseEnumError { found: text.to_owned(), allowed: Kind::NAMES })
    }
}

/// Creates a v2.5 module from the template of its kind, in a directory `name` under `parent`. Returns the directory.
///
/// The module is valid at every level, and its golden tests run offline.
///
/// # Errors
/// If the name is invalid, the directory exists, or a file cannot be written.
pub fn new(parent: &Path, name: &str, kind: Kind, tier: Tier) -> Result<PathBuf, ScaffoldError> {
    let files = kind.template().map(|(path, text)| {
        let text = text.replace("NAME", name).replace("TIER", tier.as_str());
        (path.to_owned(), text.into_bytes())
    });
    create(parent, name, files.to_vec())
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

/// Returns the text of a manifest with another name.
fn rename(from: &Origin, manifest: &str, name: &str) -> Option<Vec<u8>> {
    let source = from.read(manifest, files::MAX_PART).ok()?;
    let mut edits = Edits::default();
    edits.replace(locate_name(from)?, name);
    Some(edits.apply(&source.text).into_bytes())
}

/// Keeps the line endings of the files in a checkout, and the bytes of recordings.
const GIT_ATTRIBUTES: &str = ".gitattributes";

/// Writes the files to a temporary directory, which then takes its final name.
fn create(parent: &Path, name: &str, mut files: Vec<(String, Vec<u8>)>) -> Result<PathBuf, ScaffoldError> {
    if !is_module_name(name) {
        return Err(ScaffoldError::Name { name: shown(name) });
    }
    let directory = parent.join(name);
    if directory.exists() {
        return Err(ScaffoldError::Exists { path: directory });
    }
    if !files.iter().any(|(path, _)| path == GIT_ATTRIBUTES) {
        files.push((GIT_ATTRIBUTES.to_owned(), include_bytes!("scaffold/gitattributes").to_vec()));
    }
    files::write_directory(&directory, &files).map_err(|error| write_error(&directory, error))?;
    Ok(directory)
}

fn write_error(path: &Path, error: FileError) -> ScaffoldError {
    ScaffoldError::Write { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests;
