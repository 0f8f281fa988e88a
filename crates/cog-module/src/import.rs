//! Drafts a module from an Agent Skill (`cog import`, docs/export.md).
//!
//! Nothing outside the directory of the skill is read. Links are not followed, and nothing is executed.

mod module;

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use cog_spec::Code;
use thiserror::Error;

use crate::{
    Diagnostic, LoadError, Module, ModuleFiles, Rule,
    files::{self, FileEntry, FileError},
    front_matter,
    name::{is_module_name, similar_module_name},
    source::Source,
    yaml::{self, Content, Node},
};

/// The maximum number of files and directories of a skill, as for skills over MCP.
const MAX_ENTRIES: usize = 512;
/// The maximum size of a skill: 16 MiB, as for skills over MCP.
const MAX_SIZE: u64 = 16 << 20;
/// The file that every skill has.
const SKILL: &str = "SKILL.md";
/// The schema of a skill.
const SCHEMA: &str = "references/schema.json";

/// A module that was made from a skill, not yet written.
#[derive(Debug)]
pub struct Draft {
    /// The module, which loads.
    pub module: Module,
    /// What to review, one line each.
    pub notes: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
}

/// Drafts a module from a skill: the path of its directory, or of its `SKILL.md`.
///
/// A skill that was exported by `cog` contains its module, which is taken. Of others, the name, the description and the
/// instructions become a manifest and a prompt; `references/schema.json` becomes the schema.
///
/// # Errors
/// If the skill is invalid, too large, or a link, or the module would not load.
pub fn skill(path: &Path) -> Result<Draft, ImportError> {
    let (directory, file) = located(path)?;
    let skill = SkillDirectory::new(directory, &file)?;
    let head = Head::read(&skill.source)?;
    let mut notes = Vec::new();
    let files = match module::contained(&skill, &head, &mut notes)? {
        Some(files) => files,
        None => module::drafted(&skill, &head, &module_name(&head.name, &mut notes)?, &mut notes)?,
    };
    let module = loaded(&files, &skill.directory.join("references"))?;
    let files = files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
    Ok(Draft { module, notes, files })
}

impl Draft {
    /// Writes the module to a directory of its name under `parent`. Returns the directory.
    ///
    /// # Errors
    /// If the directory exists, or a file cannot be written.
    pub fn write(&self, parent: &Path) -> Result<PathBuf, ImportError> {
        let directory = parent.join(&self.module.manifest.name);
        if directory.exists() {
            return Err(ImportError::Exists { path: directory });
        }
        files::write_directory(&directory, &self.files)
            .map_err(|error| ImportError::File { path: directory.clone(), error })?;
        Ok(directory)
    }
}

/// The path and the text of a file of a module.
type File = (String, String);

/// Loads files as a module. Errors of the schema are reported at its file in this directory.
fn loaded(files: &[File], directory: &Path) -> Result<Module, ImportError> {
    let all =
        files.iter().fold(ModuleFiles::default(), |all, (path, text)| all.with(path.clone(), text.clone()));
    let mut loaded = all.load();
    for found in loaded.as_mut().err().into_iter().flat_map(|error| &mut error.diagnostics) {
        if let Some(name) = found.file.file_name().filter(|name| name.to_string_lossy().ends_with(".json")) {
            found.file = directory.join(name);
        }
    }
    Ok(loaded?)
}

/// A skill whose `SKILL.md` was read.
struct SkillDirectory {
    directory: PathBuf,
    /// The name of `SKILL.md`.
    file: String,
    source: Source,
    listed: Vec<FileEntry>,
}

impl SkillDirectory {
    fn new(directory: PathBuf, file: &str) -> Result<Self, ImportError> {
        let listed = files::list(&directory, MAX_ENTRIES)
            .map_err(|error| ImportError::File { path: directory.clone(), error })?;
        let listed =
            listed.filter(|listed| listed.iter().filter_map(|entry| entry.size).sum::<u64>() <= MAX_SIZE);
        let listed = listed.ok_or_else(|| ImportError::TooLarge { path: directory.clone() })?;
        if listed.iter().any(|entry| entry.path == file && entry.size.is_none()) {
            return Err(ImportError::Link { path: directory.join(file) });
        }
        let path = directory.join(file);
        let text = files::read_text_within(&directory, file, files::MAX_PART);
        let text = text.map_err(|error| ImportError::File { path: path.clone(), error })?;
        Ok(Self { source: Source::new(path, text), directory, file: file.to_owned(), listed })
    }

    /// Reads a text file of the skill; none if there is no such file, or if it is a link.
    fn read(&self, path: &str) -> Result<Option<String>, ImportError> {
        if !self.listed.iter().any(|entry| entry.path == path && entry.size.is_some()) {
            return Ok(None);
        }
        match files::read_text_within(&self.directory, path, files::MAX_PART) {
            Ok(text) => Ok(Some(text)),
            Err(FileError::Empty) => Ok(None),
            Err(error) => Err(ImportError::File { path: self.directory.join(path), error }),
        }
    }
}

/// Returns the directory of a skill, and the name of its `SKILL.md`.
fn located(path: &Path) -> Result<(PathBuf, String), ImportError> {
    if path.is_dir() {
        return Ok((path.to_owned(), SKILL.to_owned()));
    }
    let name =
        path.file_name().and_then(|name| name.to_str()).filter(|name| name.eq_ignore_ascii_case(SKILL));
    let Some(name) = name else { return Err(ImportError::NoSkill { path: path.to_owned() }) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((parent.to_owned(), name.to_owned()))
}

/// Returns the name of the module: the name of the skill, or a similar one that is allowed.
fn module_name(name: &str, notes: &mut Vec<String>) -> Result<String, ImportError> {
    if is_module_name(name) {
        return Ok(name.to_owned());
    }
    let similar = similar_module_name(name).ok_or_else(|| ImportError::Name { name: name.to_owned() })?;
    notes.push(format!("the module is named `{similar}`: the name of the skill is not allowed for a module"));
    Ok(similar)
}

/// Why no module was made from a skill. Nothing was written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The path does not lead to a skill.
    #[error("{} is not a skill: neither a directory nor a file named SKILL.md", .path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
    /// `SKILL.md` is a link or a device.
    #[error("{} is not a regular file: links of a skill are not followed", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The directory is over a limit.
    #[error("{} has more than 512 files or 16 MiB", .path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
    /// No module name is similar to the name of the skill.
    #[error("`{name}` is not a name for a module: it has no letter from a to z")]
    Name {
        /// The name of the skill.
        name: String,
    },
    /// `SKILL.md`, the schema or the module in the skill is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The directory of the module exists.
    #[error("{} already exists", .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ImportError {
    /// Returns the code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::NoSkill { .. } | Self::File { .. } => Code::InvalidReference,
            Self::Link { .. } | Self::Exists { .. } => Code::PermissionDenied,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::Name { .. } => Code::UnsupportedValue,
            Self::Load(_) => Code::ModuleInvalid,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<&str> {
        Some(match self {
            Self::NoSkill { .. } => "Give the path of a SKILL.md, or of the directory that contains it.",
            Self::Link { .. } => "Copy the file into the directory of the skill.",
            Self::TooLarge { .. } => {
                "Give the directory of one skill, without files that belong to no skill."
            }
            Self::Name { .. } => "Change `name` in SKILL.md to lower case letters, digits and hyphens.",
            Self::Load(_) => return None,
            Self::Exists { .. } => "Choose another directory with --output, or move the existing one.",
            Self::File { error, .. } => error.suggestion(),
        })
    }
}

// The front matter of `SKILL.md`.

/// What the front matter says, and the text below it.
struct Head {
    name: String,
    description: String,
    license: Option<String>,
    allowed_tools: bool,
    /// The texts of `metadata`.
    metadata: Vec<(String, String)>,
    body: String,
}

impl Head {
    /// Reads `SKILL.md`.
    fn read(source: &Source) -> Result<Self, ImportError> {
        let front = front_matter::split(source).map_err(invalid)?;
        let root = yaml::parse(&front_matter::yaml_alone(source, &front)).map_err(invalid)?;
        if !matches!(root.content, Content::Map(_)) {
            let message = "the front matter is not a mapping of keys to values";
            let problem =
                Diagnostic::error(Rule::ManifestShape, &source.path, message).at(source, front.yaml);
            return Err(invalid(problem));
        }
        Ok(Self {
            name: text(&root, "name").ok_or_else(|| missing("name", source, front.yaml.clone()))?,
            description: text(&root, "description")
                .ok_or_else(|| missing("description", source, front.yaml.clone()))?,
            license: text(&root, "license"),
            allowed_tools: root.get("allowed-tools").is_some(),
            metadata: root.get("metadata").map(texts).unwrap_or_default(),
            body: source.text.get(front.body).unwrap_or_default().trim().to_owned(),
        })
    }

    /// Returns text of `metadata`.
    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }
}

fn text(root: &Node, key: &str) -> Option<String> {
    match &root.get(key)?.content {
        Content::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

fn texts(node: &Node) -> Vec<(String, String)> {
    let Content::Map(entries) = &node.content else { return Vec::new() };
    let texts = entries.iter().filter_map(|entry| match &entry.value.content {
        Content::Text(text) => Some((entry.key.clone(), text.clone())),
        _ => None,
    });
    texts.collect()
}

fn invalid(problem: Diagnostic) -> ImportError {
    ImportError::Load(LoadError { diagnostics: vec![problem] })
}

/// Returns the error for a key that is missing in the front matter, at `yaml`.
fn missing(key: &str, source: &Source, yaml: Range<usize>) -> ImportError {
    let message = format!("required key `{key}` is missing or empty");
    let problem = Diagnostic::error(Rule::KeyMissing, &source.path, message).at(source, yaml);
    invalid(problem.suggest("A skill has a `name` and a `description`."))
}

#[cfg(test)]
mod tests;
