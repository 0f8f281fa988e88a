//! The directory in which a case runs.

use std::path::{Path, PathBuf};

use base64_simd::STANDARD;
use serde_json::Value;

use crate::base::{ModuleParts, text_of};

/// Writes a module.
pub(crate) fn write_module(parts: &ModuleParts, directory: &Path) -> Result<(), String> {
    write(&directory.join("module.yaml"), parts.manifest())?;
    write(&directory.join("schema.json"), text_of(&parts.schema))?;
    write(&directory.join("prompt.md"), parts.prompt.as_deref().unwrap_or_default())?;
    for (name, content) in &parts.files {
        write(&directory.join(name), bytes_of(content)?)?;
    }
    Ok(())
}

/// Returns the content of a file: a string as it is, `{"$base64": "…"}` as the bytes that it stands for, `{"$bytes": [parts]}` as such bytes and zeros one
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

/// A string is base64, a number that many zeros.
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

/// Writes a file and the directories above it.
#[expect(clippy::disallowed_methods, reason = "the runner fills a directory of its own")]
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, content)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file.
#[expect(clippy::disallowed_methods, reason = "the runner reads files of cases, and what its commands wrote")]
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), String> {
    std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a directory, or a file.
pub(crate) fn copy(source: &Path, target: &Path) -> Result<(), String> {
    if source.is_file() {
        let copied = std::fs::copy(source, target);
        return copied.map(drop).map_err(|error| format!("{}: {error}", source.display()));
    }
    std::fs::create_dir_all(target).map_err(|error| format!("{}: {error}", target.display()))?;
    for path in list(source)? {
        if let Some(name) = path.file_name() {
            copy(&path, &target.join(name))?;
        }
    }
    Ok(())
}

/// Returns the paths of what is in a directory.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = directory.read_dir().and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|error| format!("{}: {error}", directory.display()))
}
