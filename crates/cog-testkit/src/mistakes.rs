//! Mistakes of first authors: edits of the module in `conformance/mistakes`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// An edited module.
#[derive(Debug)]
pub struct EditedModule {
    /// What its author did.
    pub name: String,
    edits: Vec<Value>,
}

/// The edited modules.
#[derive(Debug)]
pub struct Mistakes {
    /// Modules with a mistake.
    pub wrong: Vec<EditedModule>,
    /// Modules without one.
    pub right: Vec<EditedModule>,
}

impl Mistakes {
    /// Reads them.
    ///
    /// # Panics
    /// If the file is not there, or does not have its form.
    pub fn read() -> Self {
        let text = fs::read_to_string(root().join("mistakes.json"));
        let file: Value = text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let modules = |list: &str| {
            let list = file[list].as_array().cloned().unwrap_or_default();
            list.into_iter().map(EditedModule::new).collect::<Vec<_>>()
        };
        let read = Self { wrong: modules("mistakes"), right: modules("right") };
        assert!(!read.wrong.is_empty() && !read.right.is_empty(), "conformance/mistakes/mistakes.json");
        read
    }
}

impl EditedModule {
    fn new(case: Value) -> Self {
        let name = case["name"].as_str().unwrap_or_default().to_owned();
        Self { name, edits: case["edits"].as_array().cloned().unwrap_or_default() }
    }

    /// Writes the module into a new directory with its name, and returns that directory.
    ///
    /// # Panics
    /// If a file cannot be written, or an edit finds nothing.
    pub fn write(&self, parent: &Path) -> PathBuf {
        let directory = parent.join("ticket-triage");
        let copied = copy(&root().join("ticket-triage"), &directory);
        assert!(copied.is_ok(), "{copied:?}");
        for edit in &self.edits {
            let applied = apply(edit, &directory);
            assert!(applied.is_ok(), "{}: {edit}: {applied:?}", self.name);
        }
        directory
    }
}

fn apply(edit: &Value, directory: &Path) -> Result<(), String> {
    let text = |key: &str| edit[key].as_str();
    let file = directory.join(text("file").unwrap_or_default());
    let done = if let (Some(find), Some(replace)) = (text("find"), text("replace")) {
        let before = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        if !before.contains(find) {
            return Err("nothing to replace".to_owned());
        }
        fs::write(file, before.replace(find, replace))
    } else if let Some(content) = text("content") {
        fs::write(file, content)
    } else if let Some(rename) = text("rename") {
        let to = directory.join(rename);
        fs::create_dir_all(to.parent().unwrap_or(directory)).and_then(|()| fs::rename(file, to))
    } else {
        fs::remove_file(file)
    };
    done.map_err(|error| error.to_string())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/mistakes")
}
