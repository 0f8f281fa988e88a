//! Module directories for tests.

#![expect(clippy::disallowed_methods, reason = "tests lay out directories")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{LoadError, Module, Origin, load};

/// A temporary module directory named `sorter`.
pub(crate) struct Directory {
    _temporary: TempDir,
    path: PathBuf,
}

pub(crate) const MANIFEST: &str = "\
name: sorter
version: 1.0.0
responsibility: Sort a message into a queue
tier: decision
excludes:
  - answering the message
";

pub(crate) const SCHEMA: &str = r##"{
  "meta": {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  },
  "input": {
    "type": "object",
    "required": ["text"],
    "properties": { "text": { "type": "string" } },
    "additionalProperties": false
  },
  "data": {
    "type": "object",
    "required": ["queue", "rationale"],
    "properties": {
      "queue": { "$ref": "#/$defs/Queue" },
      "rationale": { "type": "string" }
    }
  },
  "error": { "type": "object", "required": ["code", "message"] },
  "$defs": { "Queue": { "enum": ["billing", "other"] } }
}
"##;

impl Directory {
    /// Returns an empty directory.
    pub(crate) fn empty() -> Self {
        let temporary = TempDir::new().unwrap();
        let path = temporary.path().join("sorter");
        fs::create_dir(&path).unwrap();
        Self { _temporary: temporary, path }
    }

    /// Returns a complete v2.2 module.
    pub(crate) fn v22() -> Self {
        Self::empty()
            .with("module.yaml", MANIFEST)
            .with("prompt.md", "Sort $ARGUMENTS.\n")
            .with("schema.json", SCHEMA)
    }

    /// Returns a copy of one of the modules in `conformance/modules`.
    pub(crate) fn example(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/modules").join(name);
        let temporary = TempDir::new().unwrap();
        let path = temporary.path().join(name);
        crate::files::copy_directory(&source, &path).unwrap();
        Self { _temporary: temporary, path }
    }

    /// Adds a file.
    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Removes a file.
    pub(crate) fn without(self, name: &str) -> Self {
        fs::remove_file(self.path.join(name)).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::Directory(self.path.clone())
    }

    pub(crate) fn load(&self) -> Result<Module, LoadError> {
        load(&self.origin())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    /// Returns every file with its text, sorted by path.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut open = vec![self.path.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&self.path).unwrap().to_str().unwrap().to_owned();
                    files.push((name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()));
                }
            }
        }
        files.sort();
        files
    }

    /// Removes the path of the temporary directory from text.
    pub(crate) fn strip(&self, text: &str) -> String {
        text.replace(self.path.parent().unwrap().to_str().unwrap(), "")
    }
}

/// Returns the rules of all diagnostics, errors and warnings.
pub(crate) fn rules_of(directory: &Directory) -> Vec<&'static str> {
    let found = match directory.load() {
        Ok(module) => module.warnings,
        Err(error) => error.diagnostics,
    };
    found.iter().map(|found| found.rule.as_str()).collect()
}
