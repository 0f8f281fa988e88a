//! Drafts a module from an Agent Skill (`cog import`, docs/export.md).
//!
//! Nothing outside the directory of the skill is read. Links are not followed, and nothing is executed.

mod body;
mod error;
mod head;
mod module;

use std::path::{Path, PathBuf};

pub use self::error::ImportError;
use self::head::Head;
use crate::{
    Module, ModuleFiles,
    files::{self, FileError, Listed},
    name::{is_module_name, similar_module_name},
    source::Source,
};

/// The maximum number of files and directories of a skill: that of skills over MCP.
const MAX_ENTRIES: usize = 512;
/// The maximum size of a skill: 16 MiB, that of skills over MCP.
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
    let skill = Opened::new(directory, &file)?;
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
struct Opened {
    directory: PathBuf,
    /// The name of `SKILL.md`.
    file: String,
    source: Source,
    listed: Vec<Listed>,
}

impl Opened {
    fn new(directory: PathBuf, file: &str) -> Result<Self, ImportError> {
        let at = |path: PathBuf| move |error| ImportError::File { path, error };
        let listed = files::list(&directory, MAX_ENTRIES).map_err(at(directory.clone()))?;
        let size = |listed: &[Listed]| listed.iter().filter_map(|entry| entry.size).sum::<u64>();
        let listed = listed.filter(|listed| size(listed) <= MAX_SIZE);
        let listed = listed.ok_or_else(|| ImportError::TooLarge { path: directory.clone() })?;
        if listed.iter().any(|entry| entry.path == file && entry.size.is_none()) {
            return Err(ImportError::Link { path: directory.join(file) });
        }
        let path = directory.join(file);
        let text = files::read_text_within(&directory, file, files::MAX_PART).map_err(at(path.clone()))?;
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

/// Returns the name of the module: that of the skill, or a similar one that is allowed.
fn module_name(name: &str, notes: &mut Vec<String>) -> Result<String, ImportError> {
    if is_module_name(name) {
        return Ok(name.to_owned());
    }
    let similar = similar_module_name(name).ok_or_else(|| ImportError::Name { name: name.to_owned() })?;
    notes.push(format!("the module is named `{similar}`: the name of the skill is not allowed for a module"));
    Ok(similar)
}

#[cfg(test)]
mod tests;
