//! The open files, and the modules that they belong to.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_module::{EditedDirectory, Origin, files};
use tower_lsp_server::ls_types as lsp;

use crate::text::Text;

/// The names of manifests (docs/modules.md).
const MANIFESTS: [&str; 3] = ["module.yaml", "MODULE.md", "module.md"];

/// A file of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFile {
    /// The directory of the module.
    pub(crate) directory: PathBuf,
    /// The path of the file in it, with `/` between its parts.
    pub(crate) relative: String,
}

/// The open files by path.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    open: HashMap<PathBuf, Text>,
}

impl Workspace {
    pub(crate) fn open(&mut self, path: PathBuf, text: String) {
        self.open.insert(path, Text::new(text));
    }

    /// Applies an edit; an edit of a file that is not open is ignored.
    pub(crate) fn edit(&mut self, path: &Path, range: Option<lsp::Range>, text: &str) {
        if let Some(open) = self.open.get_mut(path) {
            open.apply(range, text);
        }
    }

    pub(crate) fn close(&mut self, path: &Path) {
        self.open.remove(path);
    }

    /// Returns the text of a file, as the editor has it or from disk.
    pub(crate) fn text(&self, path: &Path) -> Option<Text> {
        match self.open.get(path) {
            Some(text) => Some(text.clone()),
            None => files::read_text(path, files::MAX_CASE).ok().map(Text::new),
        }
    }

    /// Returns the module that a file belongs to: its manifest is beside the file, or one directory above it.
    pub(crate) fn module_of(&self, path: &Path) -> Option<ModuleFile> {
        let directory = path.ancestors().skip(1).take(2).find(|directory| {
            MANIFESTS.iter().any(|name| {
                let manifest = directory.join(name);
                self.open.contains_key(&manifest) || manifest.is_file()
            })
        })?;
        Some(ModuleFile { directory: directory.to_owned(), relative: relative(directory, path)? })
    }

    /// Returns a module with the text of its open files.
    pub(crate) fn origin(&self, directory: &Path) -> Origin {
        let texts = self.open.iter().filter_map(|(path, text)| Some((relative(directory, path)?, text)));
        let edited = texts
            .fold(EditedDirectory::new(directory), |edited, (path, text)| edited.with(path, text.as_str()));
        Origin::Edited(Arc::new(edited))
    }
}

/// Returns the path of a file in a directory, with `/` between its parts.
fn relative(directory: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(directory).ok()?.iter().map(|part| part.to_str());
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_manifest_makes_its_directory_a_module() {
        let mut workspace = Workspace::default();
        let case = Path::new("/nowhere/sorter/tests/a.input.json");
        assert_eq!(workspace.module_of(case), None);
        workspace.open("/nowhere/sorter/module.yaml".into(), "name: sorter\n".to_owned());
        let file = workspace.module_of(case).unwrap();
        assert_eq!(file.relative, "tests/a.input.json");
        assert_eq!(file.directory, Path::new("/nowhere/sorter"));
        assert_eq!(workspace.module_of(Path::new("/nowhere/other/prompt.md")), None);
        workspace.close(Path::new("/nowhere/sorter/module.yaml"));
        assert_eq!(workspace.module_of(case), None);
    }
}
