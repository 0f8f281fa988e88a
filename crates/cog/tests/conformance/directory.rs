//! The directory in which a case runs.

use std::collections::BTreeMap;
use std::path::Path;

use base64_simd::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::matching::merge;

/// The parts of a module in v2 form. As a change, each part is merged into the base (null removes a key).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleParts {
    /// `module.yaml`.
    #[serde(default)]
    manifest: Map<String, Value>,
    /// `schema.json`.
    #[serde(default)]
    schema: Value,
    /// `prompt.md`.
    prompt: Option<String>,
    /// Golden tests and other files, by their path in the module.
    #[serde(default)]
    files: BTreeMap<String, Value>,
}

impl ModuleParts {
    /// Applies the changes to this module.
    pub(crate) fn changed(&self, changes: &ModuleParts) -> ModuleParts {
        let mut manifest = Value::Object(self.manifest.clone());
        merge(&mut manifest, &Value::Object(changes.manifest.clone()));
        let mut schema = self.schema.clone();
        if !changes.schema.is_null() {
            merge(&mut schema, &changes.schema);
        }
        ModuleParts {
            manifest: manifest.as_object().cloned().unwrap_or_default(),
            schema,
            prompt: changes.prompt.clone().or_else(|| self.prompt.clone()),
            files: changes.files.clone(),
        }
    }

    /// Renames the module.
    pub(crate) fn named(mut self, name: &str) -> ModuleParts {
        self.manifest.insert("name".to_owned(), Value::from(name));
        self
    }

    /// Writes the module; one line of YAML for each key of the manifest.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), String> {
        let manifest: String = self.manifest.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        write(&directory.join("module.yaml"), manifest)?;
        write(&directory.join("schema.json"), text_of(&self.schema))?;
        write(&directory.join("prompt.md"), self.prompt.as_deref().unwrap_or_default())?;
        for (name, content) in &self.files {
            write(&directory.join(name), bytes_of(content)?)?;
        }
        Ok(())
    }
}

/// Text as it is, `{"$base64": "…"}` as the bytes that it stands for, `{"$bytes": [parts]}` as such bytes and zeros one
/// after the other, anything else as JSON.
pub(crate) fn bytes_of(content: &Value) -> Result<Vec<u8>, String> {
    if let Some(digits) = content.get("$base64").and_then(Value::as_str) {
        return decoded(digits);
    }
    match content.get("$bytes").and_then(Value::as_array) {
        Some(parts) => parts.iter().map(part_of).collect::<Result<Vec<_>, _>>().map(|parts| parts.concat()),
        None => Ok(text_of(content).into_bytes()),
    }
}

/// A text is base64, a number that many zeros.
fn part_of(part: &Value) -> Result<Vec<u8>, String> {
    let zeros = part.as_u64().and_then(|zeros| usize::try_from(zeros).ok());
    match (part.as_str(), zeros) {
        (Some(digits), _) => decoded(digits),
        (_, Some(zeros)) => Ok(vec![0; zeros]),
        _ => Err(format!("neither base64 nor a number of zeros: {part}")),
    }
}

fn decoded(digits: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode_to_vec(digits).map_err(|error| error.to_string())
}

/// Text as it is, anything else as JSON.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => format!("{other:#}\n"),
    }
}

/// Writes a file and the directories above it.
#[expect(clippy::disallowed_methods, reason = "a test fills its own directory")]
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, content)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file.
#[expect(clippy::disallowed_methods, reason = "a test reads its own directory")]
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), String> {
    std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a directory, or a file.
pub(crate) fn copy(source: &Path, target: &Path) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", source.display());
    if source.is_file() {
        return std::fs::copy(source, target).map(drop).map_err(fault);
    }
    std::fs::create_dir_all(target).map_err(fault)?;
    for entry in source.read_dir().map_err(fault)? {
        let entry = entry.map_err(fault)?;
        copy(&entry.path(), &target.join(entry.file_name()))?;
    }
    Ok(())
}
