use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_schema::nearest;

use crate::{
    Diagnostic, ModuleFiles, Rule,
    embedded::BuiltinModule,
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
        }
    }

    /// Returns whether the module has this directory.
    pub(crate) fn has_directory(&self, relative: &str) -> bool {
        match self {
            Origin::Directory(path) => path.join(relative).is_dir(),
            Origin::BuiltIn(_) | Origin::Memory(_) => false,
        }
    }

    /// Returns the path of a file of the module, for messages and for writing.
    pub fn path_of(&self, relative: &str) -> PathBuf {
        match self {
            Origin::Directory(path) if relative.is_empty() => path.clone(),
            Origin::Directory(path) => path.join(relative),
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
        }
    }

    /// Returns what exists at the path of a missing file, such as a directory.
    pub(crate) fn what_is_at(&self, relative: &str) -> Option<&'static str> {
        match self {
            Origin::Directory(path) => files::what_is_at(&path.join(relative)),
            Origin::BuiltIn(_) | Origin::Memory(_) => None,
        }
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
        };
        Ok(Source::new(self.path_of(relative), text))
    }
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
