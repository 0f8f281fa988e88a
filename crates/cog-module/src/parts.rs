//! The files of a module that a person edits on their own: manifest, prompt and schema (docs/server.md, the workbench).

use thiserror::Error;

use crate::{
    Origin,
    files::{self, FileError},
    forms::sha256,
    layout::{self, Family},
};

/// A file of a module that a person edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModulePart {
    /// The manifest.
    Manifest,
    /// The prompt.
    Prompt,
    /// The schema.
    Schema,
}

impl ModulePart {
    /// Every part, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Manifest, Self::Prompt, Self::Schema];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Prompt => "prompt",
            Self::Schema => "schema",
        }
    }

    /// Returns the part with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == name)
    }

    /// Returns its file in the directory of a module; none if the format has no such file of its own.
    fn path(self, family: Family) -> Option<&'static str> {
        match (self, family) {
            (Self::Manifest, family) => Some(family.manifest()),
            (Self::Prompt, Family::V1) | (Self::Schema, Family::V0) => None,
            (Self::Prompt, family) => Some(family.prompt()),
            (Self::Schema, Family::V1 | Family::V2) => Some("schema.json"),
        }
    }
}

/// The text of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartText {
    /// The text, without a byte order mark; empty for an empty file.
    pub text: String,
    /// The SHA-256 of the text, by which a change on disk is noticed.
    pub hash: String,
}

impl PartText {
    fn new(text: String) -> Self {
        Self { hash: sha256(&text), text }
    }
}

/// A part of a module: where it is, and its text or why it cannot be read.
#[derive(Debug)]
pub struct PartFile {
    /// Which part it is.
    pub part: ModulePart,
    /// Its path in the directory of the module.
    pub path: &'static str,
    /// Its text.
    pub text: Result<PartText, FileError>,
}

/// Why a part was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WritePartError {
    /// The module is not in a directory.
    #[error("the module is not in a directory on disk, so it cannot be changed")]
    NoDirectory,
    /// The module has no such file.
    #[error("the module has no file for its {}", .0.as_str())]
    Absent(ModulePart),
    /// The file on disk has another text than the one that was edited.
    #[error("the file was changed on disk since it was read")]
    Changed {
        /// The hash of its current text.
        hash: String,
    },
    /// The file cannot be read or written, or the text cannot be one of a module.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Returns the parts that a module has, whether it loads or not; none without a manifest.
pub fn parts(origin: &Origin) -> Vec<PartFile> {
    let Ok((family, _)) = layout::detect(origin) else { return Vec::new() };
    let files = ModulePart::ALL.into_iter().filter_map(|part| Some((part, part.path(family)?)));
    let files = files.map(|(part, path)| PartFile { part, path, text: read(origin, path) });
    files.filter(|file| !matches!(file.text, Err(FileError::Missing))).collect()
}

/// Returns a module in which these parts have another text, which is not on disk.
///
/// # Errors
/// The module has no file for a part, or is not in a directory.
pub fn with_parts(origin: &Origin, texts: Vec<(ModulePart, String)>) -> Result<Origin, WritePartError> {
    if texts.is_empty() {
        return Ok(origin.clone());
    }
    let Origin::Directory(directory) = origin else { return Err(WritePartError::NoDirectory) };
    let family = layout::detect(origin).map_or(Family::V2, |(family, _)| family);
    let mut edited = crate::EditedDirectory::new(directory);
    for (part, text) in texts {
        edited = edited.with(part.path(family).ok_or(WritePartError::Absent(part))?, text);
    }
    Ok(Origin::Edited(edited.into()))
}

/// Replaces the text of a part, if the file on disk still has the text with this hash. Returns the new hash.
///
/// The file is replaced at once. A link is followed only to a file in the directory of the module.
///
/// # Errors
/// If the module has no such file, the file on disk has another text, or it cannot be read or written. It is then unchanged.
pub fn write_part(
    origin: &Origin,
    part: ModulePart,
    text: &str,
    hash: &str,
) -> Result<String, WritePartError> {
    let Origin::Directory(directory) = origin else { return Err(WritePartError::NoDirectory) };
    let (family, _) = layout::detect(origin).map_err(|_| WritePartError::Absent(part))?;
    let path = part.path(family).ok_or(WritePartError::Absent(part))?;
    match files::text_within(text.as_bytes(), files::MAX_PART) {
        // Somebody may begin anew; what is missing is a diagnostic.
        Ok(_) | Err(FileError::Empty) => {}
        Err(error) => return Err(error.into()),
    }
    let current = match read(origin, path) {
        Err(FileError::Missing) => return Err(WritePartError::Absent(part)),
        current => current?,
    };
    if current.hash != hash {
        return Err(WritePartError::Changed { hash: current.hash });
    }
    files::write_atomic(&directory.join(path), text)?;
    Ok(PartText::new(text.to_owned()).hash)
}

fn read(origin: &Origin, path: &str) -> Result<PartText, FileError> {
    match origin.read(path, files::MAX_PART) {
        Ok(source) => Ok(PartText::new(source.text)),
        Err(FileError::Empty) => Ok(PartText::new(String::new())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuiltinModule, scaffold};

    fn module() -> (tempfile::TempDir, Origin) {
        let parent = tempfile::tempdir().unwrap();
        let directory =
            scaffold::new(parent.path(), "sorter", scaffold::Kind::Classify, cog_spec::Tier::Decision)
                .unwrap();
        (parent, Origin::Directory(directory))
    }

    fn prompt(origin: &Origin) -> PartText {
        let part = parts(origin).into_iter().find(|file| file.part == ModulePart::Prompt).unwrap();
        part.text.unwrap()
    }

    #[test]
    fn part_is_written_only_over_the_text_that_was_read() {
        let (_parent, origin) = module();
        let names: Vec<_> = parts(&origin).iter().map(|file| file.path).collect();
        assert_eq!(names, ["module.yaml", "prompt.md", "schema.json"]);
        let first = prompt(&origin);
        let second = write_part(&origin, ModulePart::Prompt, "Sort $ARGUMENTS.\n", &first.hash).unwrap();
        assert_eq!(prompt(&origin), PartText { text: "Sort $ARGUMENTS.\n".to_owned(), hash: second.clone() });
        let refused = write_part(&origin, ModulePart::Prompt, "Mine.", &first.hash);
        assert!(matches!(refused, Err(WritePartError::Changed { hash }) if hash == second));
        write_part(&origin, ModulePart::Prompt, "", &second).unwrap();
        assert_eq!(prompt(&origin).text, "");
    }

    #[test]
    fn text_that_no_module_can_have_is_refused() {
        let (_parent, origin) = module();
        let hash = prompt(&origin).hash;
        for text in ["a\0b".to_owned(), "x".repeat(1 << 20) + "y"] {
            assert!(matches!(
                write_part(&origin, ModulePart::Prompt, &text, &hash),
                Err(WritePartError::File(_))
            ));
        }
        assert_eq!(prompt(&origin).hash, hash);
    }

    #[cfg(unix)]
    #[test]
    fn link_out_of_the_directory_is_neither_read_nor_written() {
        let (parent, origin) = module();
        let outside = parent.path().join("secret.txt");
        files::write_atomic(&outside, "secret").unwrap();
        let path = origin.directory().unwrap().join("prompt.md");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        let file = parts(&origin).into_iter().find(|file| file.part == ModulePart::Prompt).unwrap();
        assert!(matches!(file.text, Err(FileError::Outside)));
        let written = write_part(&origin, ModulePart::Prompt, "mine", &sha256("secret"));
        assert!(matches!(written, Err(WritePartError::File(FileError::Outside))));
        assert_eq!(files::read_text(&outside, 100).unwrap(), "secret");
    }

    #[test]
    fn built_in_module_is_read_only() {
        let origin = Origin::BuiltIn(BuiltinModule::find("code-reviewer").unwrap());
        assert_eq!(parts(&origin).len(), 3);
        let hash = prompt(&origin).hash;
        let written = write_part(&origin, ModulePart::Prompt, "mine", &hash);
        assert!(matches!(written, Err(WritePartError::NoDirectory)));
        assert_eq!(with_parts(&origin, Vec::new()).unwrap(), origin);
        let edited = with_parts(&origin, vec![(ModulePart::Prompt, "mine".to_owned())]);
        assert!(matches!(edited, Err(WritePartError::NoDirectory)));
    }

    #[test]
    fn edited_parts_are_read_instead_of_the_files() {
        let (_parent, origin) = module();
        let edited = with_parts(&origin, vec![(ModulePart::Prompt, "Edited.".to_owned())]).unwrap();
        assert_eq!(prompt(&edited).text, "Edited.");
        assert_ne!(prompt(&origin).text, "Edited.");
    }
}
