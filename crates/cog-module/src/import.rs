//! Drafts a module from an Agent Skill (`cog import`, docs/export.md).
//!
//! Nothing outside the directory of the skill is read. Links are not followed, and nothing is executed.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use cog_spec::{Code, Tier};
use serde_json::Value;
use thiserror::Error;

use crate::{
    Diagnostic, LoadError, Module, ModuleFiles, Prompt, PromptPart, Rule,
    export::{
        skill::{PROMPT_BEGIN, PROMPT_END, WHEN},
        yaml::scalar_text,
    },
    files::{self, FileEntry, FileError},
    front_matter, layout,
    name::{is_module_name, similar_module_name},
    schema::prefix_references,
    source::Source,
    trust::grants,
    yaml::{self, Content, Node},
};

/// The maximum number of files and directories of a skill, as for skills over MCP.
const MAX_ENTRIES: usize = 512;
/// The maximum size of a skill: 16 MiB, as for skills over MCP.
const MAX_SIZE: u64 = 16 << 20;
/// The file that every skill has.
const SKILL: &str = "SKILL.md";
/// The schema of a skill.
const SCHEMA: &str = "references/schema.json";

/// A module that was made from a skill, not yet written.
#[derive(Debug)]
pub struct Draft {
    /// The module, which loads.
    pub module: Module,
    /// What to review, one line each.
    pub notes: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
}

/// Drafts a module from a skill: the path of its directory, or of its `SKILL.md`.
///
/// A skill that was exported by `cog` contains its module, which is taken. Of others, the name, the description and the
/// instructions become a manifest and a prompt; `references/schema.json` becomes the schema.
///
/// # Errors
/// If the skill is invalid, too large, or a link, or the module would not load.
pub fn skill(path: &Path) -> Result<Draft, ImportError> {
    let (directory, file) = located(path)?;
    let skill = SkillDirectory::new(directory, &file)?;
    let head = Head::read(&skill.source)?;
    let mut notes = Vec::new();
    let files = match contained(&skill, &head, &mut notes)? {
        Some(files) => files,
        None => drafted(&skill, &head, &module_name(&head.name, &mut notes)?, &mut notes)?,
    };
    let module = loaded(&files, &skill.directory.join("references"))?;
    let files = files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
    Ok(Draft { module, notes, files })
}

impl Draft {
    /// Writes the module to a directory of its name under `parent`. Returns the directory.
    ///
    /// # Errors
    /// If the directory exists, or a file cannot be written.
    pub fn write(&self, parent: &Path) -> Result<PathBuf, ImportError> {
        let directory = parent.join(&self.module.manifest.name);
        if directory.exists() {
            return Err(ImportError::Exists { path: directory });
        }
        files::write_directory(&directory, &self.files)
            .map_err(|error| ImportError::File { path: directory.clone(), error })?;
        Ok(directory)
    }
}

/// The path and the text of a file of a module.
type File = (String, String);

/// Loads files as a module. Errors of the schema are reported at its file in this directory.
fn loaded(files: &[File], directory: &Path) -> Result<Module, ImportError> {
    let all =
        files.iter().fold(ModuleFiles::default(), |all, (path, text)| all.with(path.clone(), text.clone()));
    let mut loaded = all.load();
    for found in loaded.as_mut().err().into_iter().flat_map(|error| &mut error.diagnostics) {
        if let Some(name) = found.file.file_name().filter(|name| name.to_string_lossy().ends_with(".json")) {
            found.file = directory.join(name);
        }
    }
    Ok(loaded?)
}

/// A skill whose `SKILL.md` was read.
struct SkillDirectory {
    directory: PathBuf,
    /// The name of `SKILL.md`.
    file: String,
    source: Source,
    listed: Vec<FileEntry>,
}

impl SkillDirectory {
    fn new(directory: PathBuf, file: &str) -> Result<Self, ImportError> {
        let listed = files::list(&directory, MAX_ENTRIES)
            .map_err(|error| ImportError::File { path: directory.clone(), error })?;
        let listed =
            listed.filter(|listed| listed.iter().filter_map(|entry| entry.size).sum::<u64>() <= MAX_SIZE);
        let listed = listed.ok_or_else(|| ImportError::TooLarge { path: directory.clone() })?;
        if listed.iter().any(|entry| entry.path == file && entry.size.is_none()) {
            return Err(ImportError::Link { path: directory.join(file) });
        }
        let path = directory.join(file);
        let text = files::read_text_within(&directory, file, files::MAX_PART);
        let text = text.map_err(|error| ImportError::File { path: path.clone(), error })?;
        Ok(Self { source: Source::new(path, text), directory, file: file.to_owned(), listed })
    }

    /// Reads a text file of the skill; none if there is no such file, or if it is a link.
    fn read(&self, path: &str) -> Result<Option<String>, ImportError> {
        if !self.listed.iter().any(|entry| entry.path == path && entry.size.is_some()) {
            return Ok(None);
        }
        match files::read_text_within(&self.directory, path, files::MAX_PART) {
            Ok(text) => Ok(Some(text)),
            Err(FileError::Empty) => Ok(None),
            Err(error) => Err(ImportError::File { path: self.directory.join(path), error }),
        }
    }
}

/// Returns the directory of a skill, and the name of its `SKILL.md`.
fn located(path: &Path) -> Result<(PathBuf, String), ImportError> {
    if path.is_dir() {
        return Ok((path.to_owned(), SKILL.to_owned()));
    }
    let name =
        path.file_name().and_then(|name| name.to_str()).filter(|name| name.eq_ignore_ascii_case(SKILL));
    let Some(name) = name else { return Err(ImportError::NoSkill { path: path.to_owned() }) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((parent.to_owned(), name.to_owned()))
}

/// Returns the name of the module: the name of the skill, or a similar one that is allowed.
fn module_name(name: &str, notes: &mut Vec<String>) -> Result<String, ImportError> {
    if is_module_name(name) {
        return Ok(name.to_owned());
    }
    let similar = similar_module_name(name).ok_or_else(|| ImportError::Name { name: name.to_owned() })?;
    notes.push(format!("the module is named `{similar}`: the name of the skill is not allowed for a module"));
    Ok(similar)
}

/// Why no module was made from a skill. Nothing was written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The path does not lead to a skill.
    #[error("{} is not a skill: neither a directory nor a file named SKILL.md", .path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
    /// `SKILL.md` is a link or a device.
    #[error("{} is not a regular file: links of a skill are not followed", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The directory is over a limit.
    #[error("{} has more than 512 files or 16 MiB", .path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
    /// No module name is similar to the name of the skill.
    #[error("`{name}` is not a name for a module: it has no letter from a to z")]
    Name {
        /// The name of the skill.
        name: String,
    },
    /// `SKILL.md`, the schema or the module in the skill is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The directory of the module exists.
    #[error("{} already exists", .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ImportError {
    /// Returns the code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::NoSkill { .. } | Self::File { .. } => Code::InvalidReference,
            Self::Link { .. } | Self::Exists { .. } => Code::PermissionDenied,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::Name { .. } => Code::UnsupportedValue,
            Self::Load(_) => Code::ModuleInvalid,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<&str> {
        Some(match self {
            Self::NoSkill { .. } => "Give the path of a SKILL.md, or of the directory that contains it.",
            Self::Link { .. } => "Copy the file into the directory of the skill.",
            Self::TooLarge { .. } => {
                "Give the directory of one skill, without files that belong to no skill."
            }
            Self::Name { .. } => "Change `name` in SKILL.md to lower case letters, digits and hyphens.",
            Self::Load(_) => return None,
            Self::Exists { .. } => "Choose another directory with --output, or move the existing one.",
            Self::File { error, .. } => error.suggestion(),
        })
    }
}

// The front matter of `SKILL.md`.

/// What the front matter says, and the text below it.
struct Head {
    name: String,
    description: String,
    license: Option<String>,
    allowed_tools: bool,
    /// The texts of `metadata`.
    metadata: Vec<(String, String)>,
    body: String,
}

impl Head {
    /// Reads `SKILL.md`.
    fn read(source: &Source) -> Result<Self, ImportError> {
        let front = front_matter::split(source).map_err(invalid)?;
        let root = yaml::parse(&front_matter::yaml_alone(source, &front)).map_err(invalid)?;
        if !matches!(root.content, Content::Map(_)) {
            let message = "the front matter is not a mapping of keys to values";
            let problem =
                Diagnostic::error(Rule::ManifestShape, &source.path, message).at(source, front.yaml);
            return Err(invalid(problem));
        }
        Ok(Self {
            name: text(&root, "name").ok_or_else(|| missing("name", source, front.yaml.clone()))?,
            description: text(&root, "description")
                .ok_or_else(|| missing("description", source, front.yaml.clone()))?,
            license: text(&root, "license"),
            allowed_tools: root.get("allowed-tools").is_some(),
            metadata: root.get("metadata").map(texts).unwrap_or_default(),
            body: source.text.get(front.body).unwrap_or_default().trim().to_owned(),
        })
    }

    /// Returns text of `metadata`.
    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }
}

fn text(root: &Node, key: &str) -> Option<String> {
    match &root.get(key)?.content {
        Content::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

fn texts(node: &Node) -> Vec<(String, String)> {
    let Content::Map(entries) = &node.content else { return Vec::new() };
    let texts = entries.iter().filter_map(|entry| match &entry.value.content {
        Content::Text(text) => Some((entry.key.clone(), text.clone())),
        _ => None,
    });
    texts.collect()
}

fn invalid(problem: Diagnostic) -> ImportError {
    ImportError::Load(LoadError { diagnostics: vec![problem] })
}

/// Returns the error for a key that is missing in the front matter, at `yaml`.
fn missing(key: &str, source: &Source, yaml: Range<usize>) -> ImportError {
    let message = format!("required key `{key}` is missing or empty");
    let problem = Diagnostic::error(Rule::KeyMissing, &source.path, message).at(source, yaml);
    invalid(problem.suggest("A skill has a `name` and a `description`."))
}

// The files of a module, from the files of a skill.

/// The maximum number of files that a note names.
const MAX_NAMES: usize = 10;

/// Returns the module that `cog export` put into the skill, if there is one.
fn contained(
    skill: &SkillDirectory,
    head: &Head,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<File>>, ImportError> {
    let place = format!("assets/{}/", head.name);
    let names = skill.listed.iter().filter_map(|entry| entry.path.strip_prefix(&place));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if !names.iter().any(|name| layout::is_manifest(name)) {
        return Ok(None);
    }
    let mut files = Vec::new();
    for name in names {
        match skill.read(&format!("{place}{name}"))? {
            Some(text) => files.push((name, text)),
            None => notes.push(format!("{place}{name} was left out: it is empty or a link")),
        }
    }
    let module = loaded(&files, &skill.directory.join(&place))?;
    if module.manifest.name != head.name {
        notes.push(format!("{place} was left out: the module in it has another name"));
        return Ok(None);
    }
    let differs = exported_prompt(&head.body).is_some_and(|prompt| prompt != module.prompt.text().trim_end());
    if differs {
        notes.push(format!(
            "the instructions in SKILL.md differ from the prompt in {place}, which was imported"
        ));
    }
    let schema = skill.read(SCHEMA)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    if schema.is_some_and(|schema| schema != module.schema) {
        notes.push(format!("{SCHEMA} differs from the schema in {place}, which was imported"));
    }
    let granted = Vec::from_iter(grants(&module.manifest));
    if !granted.is_empty() {
        // The module is taken as it is, and whoever wrote the skill wrote its manifest.
        notes.push(format!("its manifest allows tool calls ({}): review module.yaml", granted.join(", ")));
    }
    notes.push("a skill has no golden tests: add some under tests/".to_owned());
    Ok(Some(files))
}

/// Returns a module that is drafted from the description and the instructions.
fn drafted(
    skill: &SkillDirectory,
    head: &Head,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<File>, ImportError> {
    let schema = match skill.read(SCHEMA)? {
        Some(text) => schema(text, notes),
        None => {
            notes.push(
                "describe the answer under `data` in schema.json: a skill does not say what it contains"
                    .to_owned(),
            );
            TEMPLATE.to_owned()
        }
    };
    let files = vec![
        ("module.yaml".to_owned(), manifest(head, name)),
        ("prompt.md".to_owned(), prompt(head, notes)),
        ("schema.json".to_owned(), schema),
    ];
    if let Some(license) = &head.license {
        notes.push(format!("the license of the skill is `{license}`: keep it with the module"));
    }
    if head.allowed_tools {
        notes.push("`allowed-tools` was left out: a module names its tools under `tools`".to_owned());
    }
    notes.extend(left_out(skill));
    Ok(files)
}

const TEMPLATE: &str = include_str!("import/schema.json");

fn manifest(head: &Head, name: &str) -> String {
    let description = head.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let responsibility = match description.split_once(&format!(". {WHEN}")) {
        Some((responsibility, _)) if !responsibility.is_empty() => responsibility,
        _ => &description,
    };
    let version = head.metadata("version").filter(|text| semver::Version::parse(text).is_ok());
    let tier = head.metadata("tier").and_then(|text| text.parse::<Tier>().ok()).unwrap_or(Tier::Decision);
    format!(
        "# Drafted by `cog import` from the skill {skill}. Review it before use.\n\
         name: {name}\n\
         version: {version}\n\
         responsibility: {responsibility}\n\n\
         # exec: a program acts on the answer (confidence of at least 0.9, risk none or low);\n\
         # decision: a person reviews it; exploration: any idea is welcome.\n\
         tier: {tier}\n\n\
         # What the module must not do. This list is sent to the model.\n\
         excludes:\n  \
           - inventing facts that are not in the input\n\n\
         response:\n  \
           mode: both # sync, streaming, or both (the caller chooses)\n",
        skill = head.name.escape_debug(),
        version = version.unwrap_or("0.1.0"),
        responsibility = scalar_text(responsibility),
        tier = tier.as_str(),
    )
}

/// Returns the instructions; the description if there are none.
fn prompt(head: &Head, notes: &mut Vec<String>) -> String {
    let body = exported_prompt(&head.body).unwrap_or(&head.body).trim();
    if body.is_empty() {
        notes.push("the skill has no instructions: prompt.md has its description".to_owned());
        return format!("{}\n", head.description);
    }
    let (text, targets) = without_outer_links(body);
    if !targets.is_empty() {
        let shown = shown(targets.iter().map(String::as_str));
        notes.push(format!("links out of the skill's directory were left out: {shown}"));
    }
    let parsed = Prompt::parse(text.as_str());
    let placeholders = parsed.parts().iter().filter(|part| !matches!(part, PromptPart::Text(_)));
    let placeholders: Vec<String> = placeholders.map(PromptPart::raw).collect();
    if !placeholders.is_empty() {
        let shown = shown(placeholders.iter().map(String::as_str));
        notes.push(format!("prompt.md has placeholders, which a run replaces: {shown}"));
    }
    format!("{text}\n")
}

/// Returns the file as the schema of the module: as it is, or as its `data` if it describes one value.
fn schema(text: String, notes: &mut Vec<String>) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(&text) else { return text };
    let has_section = ["data", "output"].iter().any(|name| members.get(*name).is_some_and(Value::is_object));
    if has_section && !members.contains_key("properties") {
        return text;
    }
    notes.push(format!("{SCHEMA} describes one value, which is `data` in schema.json; check `input` too"));
    let mut data = Value::Object(members);
    if let Value::Object(members) = &mut data {
        members.retain(|key, _| key != "$id" && key != "$schema");
    }
    prefix_references(&mut data, "/data");
    let mut schema = serde_json::from_str::<Value>(TEMPLATE).unwrap_or_default();
    if let Value::Object(members) = &mut schema {
        members.insert("data".to_owned(), data);
    }
    format!("{schema:#}\n")
}

/// Returns notes about the files that are not part of the module.
fn left_out(skill: &SkillDirectory) -> impl Iterator<Item = String> {
    let (links, files): (Vec<_>, Vec<_>) = skill.listed.iter().partition(|entry| entry.size.is_none());
    let files = files.iter().filter(|entry| entry.path != skill.file && entry.path != SCHEMA);
    let files: Vec<&str> = files.map(|entry| entry.path.as_str()).collect();
    let links = (!links.is_empty()).then(|| {
        let names = shown(links.iter().map(|entry| entry.path.as_str()));
        format!("links were left out: {names}")
    });
    let files = (!files.is_empty()).then(|| {
        let names = shown(files.into_iter());
        format!("a module has no other files: copy what the model needs into prompt.md from {names}")
    });
    links.into_iter().chain(files)
}

/// Returns texts for a note: the first of them, escaped.
fn shown<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = texts.len();
    let first: Vec<String> = texts
        .take(MAX_NAMES)
        .map(|text| text.chars().take(80).collect::<String>().escape_debug().to_string())
        .collect();
    let more = if count > MAX_NAMES { format!(" and {} more", count - MAX_NAMES) } else { String::new() };
    format!("{}{more}", first.join(", "))
}

// The instructions of a skill as a prompt.

/// Returns the prompt that `cog export` wrote between two comments; none in a skill from elsewhere.
fn exported_prompt(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once(PROMPT_BEGIN)?;
    // The last end, because the prompt may contain this comment itself.
    let (prompt, _) = rest.rsplit_once(PROMPT_END)?;
    Some(prompt.trim_matches(['\r', '\n']))
}

/// Returns the text in which links out of the skill's directory are replaced by their label, and the targets of these
/// links.
fn without_outer_links(text: &str) -> (String, Vec<String>) {
    let mut out = String::with_capacity(text.len());
    let mut targets = Vec::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = rest.split_at(middle);
        let Some((target, next)) = after.get(2..).and_then(|after| after.split_once(')')) else { break };
        let path = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
        match before.rfind('[').filter(|_| leads_out(path)) {
            Some(open) => {
                let (head, label) = before.split_at(open);
                out.push_str(head.strip_suffix('!').unwrap_or(head));
                out.push_str(label.get(1..).unwrap_or_default());
                targets.push(path.to_owned());
            }
            None => {
                out.push_str(before);
                out.push_str(after.get(..target.len() + 3).unwrap_or_default());
            }
        }
        rest = next;
    }
    out.push_str(rest);
    let kept =
        out.split_inclusive('\n').filter(|line| match definition(line).filter(|path| leads_out(path)) {
            Some(path) => {
                targets.push(path.to_owned());
                false
            }
            None => true,
        });
    (kept.collect(), targets)
}

/// Returns the target of a line that defines a link: `[label]: target`.
fn definition(line: &str) -> Option<&str> {
    let (_, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    target.split_whitespace().next()
}

/// Returns whether a target is a file outside the directory of the skill.
fn leads_out(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    if lower.starts_with("file:") || target.starts_with(['/', '~', '\\']) {
        return true;
    }
    let has_drive =
        target.as_bytes().get(1) == Some(&b':') && target.starts_with(|c: char| c.is_ascii_alphabetic());
    if has_drive {
        return true;
    }
    if lower.contains("://") || lower.starts_with("mailto:") || target.starts_with('#') {
        return false;
    }
    // A reader decodes a target before it opens the file, and Windows takes both slashes.
    let decoded = lower.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    let mut depth = 0_i32;
    decoded.split('/').any(|part| {
        depth += match part {
            ".." => -1,
            "" | "." => 0,
            _ => 1,
        };
        depth < 0
    })
}

#[cfg(test)]
mod tests;
