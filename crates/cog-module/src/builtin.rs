//! The modules that ship with the program, embedded at build time.

/// A module that ships: its name and its files.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltinModule {
    /// Its name, which is the name of its directory.
    pub name: &'static str,
    /// Its files with their relative paths, sorted by path.
    pub files: &'static [(&'static str, &'static [u8])],
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

impl BuiltinModule {
    /// Returns the module with a name.
    pub fn find(name: &str) -> Option<&'static BuiltinModule> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// Returns every module, sorted by name.
    pub fn all() -> &'static [BuiltinModule] {
        SHIPPED
    }

    /// Returns the content of a file.
    pub(crate) fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
    }

    /// Returns the names of the files directly in a directory of the module.
    pub(crate) fn file_names_in(&self, directory: &str) -> Vec<String> {
        names_in(self.files.iter().map(|(path, _)| *path), directory)
    }
}

/// Returns the names of the paths directly in a directory; an empty directory name is the top.
pub(crate) fn names_in<'a>(paths: impl Iterator<Item = &'a str>, directory: &str) -> Vec<String> {
    let names = paths.filter_map(|path| {
        let rest =
            if directory.is_empty() { path } else { path.strip_prefix(directory)?.strip_prefix('/')? };
        (!rest.contains('/')).then(|| rest.to_owned())
    });
    names.collect()
}
