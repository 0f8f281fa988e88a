use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_schema::nearest;

use crate::{
    Diagnostic, ModuleFiles, Rule,
    embedded::{BuiltinModule, names_in},
    files::{self, FileError},
    source::Source,
};

/// The origin of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A directory on disk.
    Directory(PathBuf),
    /// A module that ships with the program.
    BuiltIn(&'static BuiltinModule),
    /// A module in memory.
    Memory(Arc<ModuleFiles>),
    /// A directory on disk, with the text of files that an editor has not saved.
    Edited(Arc<EditedDirectory>),
}

/// A directory whose files are read from memory where an editor has them open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedDirectory {
    directory: PathBuf,
    /// The texts by their path relative to the directory, with `/` between its parts.
    texts: BTreeMap<String, String>,
}

impl EditedDirectory {
    /// Returns a directory without open files.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), texts: BTreeMap::new() }
    }

    /// Adds the text of a file, or replaces it. The path is relative to the directory, with `/` between its parts.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.insert(path.into(), text.into());
        self
    }

    /// Returns the names of the files on disk and of the open files in a directory of the module, sorted.
    fn file_names_in(&self, directory: &str) -> Vec<String> {
        let open = names_in(self.texts.keys().map(String::as_str), directory);
        let all: BTreeSet<_> =
            files::file_names(&self.directory.join(directory)).into_iter().chain(open).collect();
        all.into_iter().collect()
    }
}

/// The directory that messages show for a module in memory.
const EMBEDDED: &str = "embedded";

impl Origin {
    /// Returns the names of the top-level files, sorted.
    pub(crate) fn file_names(&self) -> Vec<String> {
        self.file_names_in("")
    }

    /// Returns the names of the files in a directory of the module, sorted; empty if there is no such directory.
    pub(crate) fn file_names_in(&self, directory: &str) -> Vec<String> {
        match self {
            Origin::Directory(path) => files::file_names(&path.join(directory)),
            Origin::BuiltIn(shipped) => shipped.file_names_in(directory),
            Origin::Memory(module) => module.file_names_in(directory),
            Origin::Edited(edited) => edited.file_names_in(directory),
        }
    }

    /// Returns the directory on disk, if the module is in one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Origin::Directory(path) => Some(path),
            Origin::Edited(edited) => Some(&edited.directory),
            Origin::BuiltIn(_) | Origin::Memory(_) => None,
        }
    }

    /// Returns whether the module has this directory.
    pub(crate) fn has_directory(&self, relative: &str) -> bool {
        self.directory().is_some_and(|path| path.join(relative).is_dir())
    }

    /// Returns the path of a file of the module, for messages and for writing.
    pub fn path_of(&self, relative: &str) -> PathBuf {
        match self {
            Origin::Directory(path) => path_in(path, relative),
            Origin::Edited(edited) => path_in(&edited.directory, relative),
            Origin::BuiltIn(shipped) => Path::new("built in").join(shipped.name).join(relative),
            Origin::Memory(_) => Path::new(EMBEDDED).join(relative),
        }
    }

    /// Returns what to type for this module: its directory, or the name of a built-in module.
    pub(crate) fn display_name(&self) -> String {
        match self {
            Origin::Directory(path) => path.display().to_string(),
            Origin::BuiltIn(shipped) => shipped.name.to_owned(),
            Origin::Memory(_) => EMBEDDED.to_owned(),
            Origin::Edited(edited) => edited.directory.display().to_string(),
        }
    }

    /// Returns every file of the module with its relative path, for a copy.
    pub(crate) fn all_files(&self) -> Result<Vec<(String, Vec<u8>)>, FileError> {
        match self {
            Origin::Directory(path) => files::read_directory(path),
            Origin::BuiltIn(shipped) => {
                Ok(shipped.files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect())
            }
            Origin::Memory(module) => {
                Ok(module.files().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect())
            }
            Origin::Edited(edited) => files::read_directory(&edited.directory),
        }
    }

    /// Returns what exists at the path of a missing file, such as a directory.
    pub(crate) fn what_is_at(&self, relative: &str) -> Option<&'static str> {
        files::what_is_at(&self.directory()?.join(relative))
    }

    /// Reads a file of the module as text, within a limit in bytes.
    pub(crate) fn read(&self, relative: &str, limit: u64) -> Result<Source, FileError> {
        let text = match self {
            Origin::Directory(path) => files::read_text_within(path, relative, limit)?,
            Origin::BuiltIn(shipped) => {
                files::text_of(shipped.file(relative).ok_or(FileError::Missing)?.to_vec())?
            }
            Origin::Memory(module) => {
                let text = module.file(relative).ok_or(FileError::Missing)?;
                files::text_within(text.as_bytes(), limit)?
            }
            Origin::Edited(edited) => match edited.texts.get(relative) {
                Some(text) => files::text_within(text.as_bytes(), limit)?,
                None => files::read_text_within(&edited.directory, relative, limit)?,
            },
        };
        Ok(Source::new(self.path_of(relative), text))
    }
}

/// Returns the path of a file in a directory; of the directory itself for an empty path, without a slash at its end.
fn path_in(directory: &Path, relative: &str) -> PathBuf {
    if relative.is_empty() { directory.to_owned() } else { directory.join(relative) }
}

/// Returns the advice to rename a file whose name is similar to the name of a missing one.
pub(crate) fn rename_advice(origin: &Origin, missing: &str) -> Option<String> {
    let names = origin.file_names();
    let near = nearest(missing, names.iter().map(String::as_str).filter(|name| !name.starts_with('.')))?;
    Some(format!("`{near}` is not read; rename it to `{missing}`."))
}

/// Returns the diagnostic of a file that could not be read.
pub(crate) fn unreadable(path: &Path, error: &FileError) -> Diagnostic {
    let rule = match error {
        FileError::TooLarge { .. } => Rule::FileTooLarge,
        FileError::Empty => Rule::FileEmpty,
        FileError::Utf16 | FileError::NotUtf8 { .. } | FileError::Nul { .. } => Rule::FileNotText,
        FileError::Missing
        | FileError::NoDirectory { .. }
        | FileError::NotAFile
        | FileError::Outside
        | FileError::Io(_) => Rule::FileUnreadable,
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Diagnostic::error(rule, path, format!("{name}: {error}")).suggest(error.suggestion())
}
