//! The file layout of a module (ruling R5, docs/spec/modules.md).

use std::path::Path;

use cog_spec::Format;

use crate::{
    Diagnostic, Origin, Rule,
    directory::unreadable,
    files::{self, FileError},
    source::Source,
};

/// The three layouts; the manifest distinguishes the formats of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `module.md`, two schema files, `constraints.yaml`, `prompt.txt`.
    V0,
    /// `MODULE.md`, `schema.json`.
    V1,
    /// `module.yaml`, `prompt.md`, `schema.json`.
    V2,
}

impl Family {
    /// Every layout, in the order of precedence (ruling R5).
    const ALL: [Family; 3] = [Family::V2, Family::V1, Family::V0];

    /// Returns the name of the manifest.
    pub(crate) const fn manifest(self) -> &'static str {
        match self {
            Family::V0 => "module.md",
            Family::V1 => "MODULE.md",
            Family::V2 => "module.yaml",
        }
    }

    /// Returns the file with the prompt.
    pub(crate) const fn prompt(self) -> &'static str {
        match self {
            Family::V0 => "prompt.txt",
            Family::V1 => "MODULE.md",
            Family::V2 => "prompt.md",
        }
    }
}

/// Returns the layout of a module, and a warning about other manifests.
pub(crate) fn detect(origin: &Origin) -> Result<(Family, Option<Diagnostic>), Diagnostic> {
    let names = origin.file_names();
    let mut found =
        Family::ALL.into_iter().filter(|family| names.iter().any(|name| name == family.manifest()));
    let Some(family) = found.next() else { return Err(no_manifest(origin, &names)) };
    let others: Vec<&str> = found.map(Family::manifest).collect();
    Ok((family, (!others.is_empty()).then(|| several_manifests(origin, family, &others))))
}

/// Returns the layout of a format.
pub(crate) const fn family_of(format: Format) -> Family {
    match format {
        Format::V0 => Family::V0,
        Format::V1 => Family::V1,
        Format::V21 | Format::V22 | Format::V25 => Family::V2,
    }
}

/// Returns whether a file is a manifest, by its name.
pub(crate) fn is_manifest(name: &str) -> bool {
    Family::ALL.iter().any(|family| name == family.manifest())
}

/// Returns whether a directory contains a manifest.
pub(crate) fn has_manifest(directory: &Path) -> bool {
    Family::ALL.iter().any(|family| directory.join(family.manifest()).is_file())
}

fn no_manifest(origin: &Origin, names: &[String]) -> Diagnostic {
    if let Some(directory) = origin.directory()
        && let Err(error) = files::check_directory(directory)
    {
        return unreadable(directory, &error);
    }
    if let Some((name, what)) = Family::ALL.iter().find_map(|family| {
        let name = family.manifest();
        origin.what_is_at(name).map(|what| (name, what))
    }) {
        let message = format!("{name} is {what}, not a file");
        return Diagnostic::error(Rule::ManifestMissing, origin.path_of(name), message)
            .suggest("Replace it with a file; `cog new NAME` creates a complete module.");
    }
    let directory = origin.path_of("");
    let message = "no manifest found: expected module.yaml, MODULE.md or module.md";
    let diagnostic = Diagnostic::error(Rule::ManifestMissing, directory, message);
    let similar = names.iter().find(|name| {
        Family::ALL.iter().any(|family| name.eq_ignore_ascii_case(family.manifest())) || *name == "module.yml"
    });
    match similar {
        Some(name) => diagnostic.suggest(format!("`{name}` is not read; rename it to `module.yaml`.")),
        None => diagnostic.suggest("Run `cog new NAME` to create a complete module."),
    }
}

fn several_manifests(origin: &Origin, used: Family, others: &[&str]) -> Diagnostic {
    let message = format!("`{}` is used; {} is ignored", used.manifest(), others.join(" and "));
    Diagnostic::warning(Rule::ManifestSeveral, origin.path_of(used.manifest()), message)
        .suggest("Keep one manifest in the directory.")
}

/// Reads the file with the prompt, as [`Module::prompt`](crate::Module::prompt) has its text.
pub(crate) fn prompt_source(origin: &Origin, family: Family) -> Result<Source, FileError> {
    let source = origin.read(family.prompt(), files::MAX_PART)?;
    Ok(Source { text: with_line_feeds(&source.text), ..source })
}

/// Returns text with one kind of line ending. A checkout on Windows must send the bytes that were recorded elsewhere.
pub(crate) fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}
