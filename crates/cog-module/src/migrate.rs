//! Migrates modules from old formats to v2.2 and v2.5 (docs/spec/modules.md, *Migration*).
//!
//! [`plan`] writes nothing; the plan can be shown as a diff and then applied. The comments and the
//! order of keys in existing files stay, because text is inserted and not regenerated.

use std::path::{Path, PathBuf};

use cog_json::{Array, Node, ToJson, Value, Writer};
use cog_spec::{Format, Manifest};
use thiserror::Error;

use crate::{
    Diagnostic, LoadError, Module, Origin, Rule,
    files::{self, FileError},
    front_matter, load,
    schema::prefix_references,
    source::{Edits, Source, after_line, line_end},
    yaml::{self, Content, Entry},
};

/// The target format of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// v2.2: envelope and tier.
    V22,
    /// v2.5: a response mode as well.
    #[default]
    V25,
}

impl Target {
    const fn format(self) -> Format {
        match self {
            Self::V22 => Format::V22,
            Self::V25 => Format::V25,
        }
    }
}

/// The changes of a migration, not yet written.
#[derive(Debug, Clone)]
pub struct Migration {
    /// The module's name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its current format.
    pub from: Format,
    /// Its format afterwards.
    pub to: Format,
    /// Every changed file; empty if there is nothing to do.
    pub changes: Vec<FileChange>,
    /// Notes for review.
    pub notes: Vec<String>,
}

/// Plans the migration of a module without writing.
///
/// A module that already has the target format needs no change.
///
/// # Errors
/// If the module does not load, is built in and has an older format, or cannot be edited.
pub fn plan(origin: &Origin, target: Target) -> Result<Migration, MigrateError> {
    let module = load(origin)?;
    let from = module.manifest.format;
    let is_current = from >= target.format() && module.manifest.tier.is_some();
    let directory = match origin {
        Origin::Directory(directory) => directory.clone(),
        _ if is_current => origin.path_of(""),
        _ => return Err(MigrateError::BuiltIn { name: module.manifest.name.clone() }),
    };
    let mut draft = Draft::new(origin);
    let mut to = from;
    if from < Format::V22 {
        to_v22(&module, &mut draft)?;
        to = Format::V22;
    }
    if module.manifest.tier.is_none() {
        add_tier(&mut draft)?;
    }
    if target == Target::V25 && from < Format::V25 {
        add_response(&mut draft)?;
        to = Format::V25;
    }
    if !draft.changes.is_empty() {
        add_schema_line(&mut draft)?;
    }
    let (changes, notes) = draft.finish();
    Ok(Migration { name: module.manifest.name.clone(), directory, from, to, changes, notes })
}

fn to_v22(module: &Module, draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    match module.manifest.format {
        Format::V0 => gather(draft)?,
        Format::V1 => split_module_md(draft)?,
        Format::V21 | Format::V22 | Format::V25 => {}
    }
    schema_to_v22(draft, output_key(&module.manifest))?;
    add_envelope(draft)?;
    move_examples(draft)
}

/// Returns the name of the data section in the schema of an old module.
fn output_key(manifest: &Manifest) -> &'static str {
    if manifest.format == Format::V0 { "data" } else { "output" }
}

impl Migration {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes as a unified diff with paths from the module's directory.
    pub fn diff(&self) -> String {
        let directory = self.directory.to_string_lossy().replace('\\', "/");
        let directory = directory.trim_start_matches("./").trim_matches('/');
        self.changes.iter().map(|change| change.diff(directory)).collect()
    }
}

/// Written by hand: the path is written as text.
impl ToJson for Migration {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.name);
            w.field("path", self.directory.to_string_lossy().as_ref());
            w.field("from", self.from.as_str());
            w.field("to", self.to.as_str());
            w.field("changes", &Array(&self.changes));
            w.field("notes", &self.notes);
        });
    }
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the module's directory.
    pub path: String,
    /// The current text; none for a new file.
    pub before: Option<String>,
    /// The new text; none for a removed file.
    pub after: Option<String>,
}

impl FileChange {
    /// Returns the change as a unified diff with its path below `directory`.
    fn diff(&self, directory: &str) -> String {
        let before = self.before.as_deref();
        let after = self.after.as_deref();
        let diff = similar::TextDiff::from_lines(before.unwrap_or(""), after.unwrap_or(""));
        let old = self.name_in_diff("a", directory, before);
        let new = self.name_in_diff("b", directory, after);
        diff.unified_diff().header(&old, &new).to_string()
    }

    fn name_in_diff(&self, side: &str, directory: &str, text: Option<&str>) -> String {
        match text {
            Some(_) if matches!(directory, "" | ".") => format!("{side}/{}", self.path),
            Some(_) => format!("{side}/{directory}/{}", self.path),
            None => "/dev/null".to_owned(),
        }
    }
}

impl ToJson for FileChange {
    fn write_json(&self, w: &mut Writer<'_>) {
        let kind = match (&self.before, &self.after) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        };
        w.object(|w| {
            w.field("path", &self.path);
            w.field("change", kind);
        });
    }
}

/// Why a module was not migrated. It is then unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// It does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is built in, so there is no directory to change.
    #[error("`{name}` is built in and cannot be migrated")]
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// The manifest has a form that text cannot be inserted into.
    #[error("{}: the manifest uses flow style (`{{ }}`), which cannot be edited", .path.display())]
    FlowStyle {
        /// The manifest.
        path: PathBuf,
    },
    /// The result would not load: an error in this program.
    #[error("the migrated module is invalid: {0}")]
    Result(LoadError),
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl MigrateError {
    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Load(_) | Self::Result(_) => None,
            Self::BuiltIn { name } => Some(format!("Run `cog new NAME --from {name}` to create a copy.")),
            Self::FlowStyle { .. } => Some("Write each key on its own line, without braces.".to_owned()),
            Self::File { error, .. } => Some(error.suggestion().to_owned()),
        }
    }
}

impl Migration {
    /// Writes the plan. With `backup`, the old directory is stored next to the module, and its path is returned.
    ///
    /// The change is atomic: the new directory is created next to the old one, loaded as a check, and then replaces
    /// it.
    ///
    /// # Errors
    /// If a file cannot be written or the result does not load; the module is then unchanged.
    pub fn apply(&self, backup: bool) -> Result<Option<PathBuf>, MigrateError> {
        if self.is_empty() {
            return Ok(None);
        }
        let directory =
            self.directory.canonicalize().map_err(|error| self.at(&self.directory, error.into()))?;
        let fresh = files::Sibling::new(&directory).map_err(|error| self.at(&directory, error))?;
        let staged = fresh.path().join(directory.file_name().unwrap_or_default());
        files::copy_directory(&directory, &staged).map_err(|error| self.at(&directory, error))?;
        self.write_into(&staged)?;
        load(&Origin::Directory(staged.clone())).map_err(MigrateError::Result)?;
        let backup = backup.then(|| self.backup_name(&directory));
        fresh.swap(&staged, &directory, backup.as_deref()).map_err(|error| self.at(&directory, error))?;
        Ok(backup)
    }

    fn write_into(&self, staged: &Path) -> Result<(), MigrateError> {
        for change in &self.changes {
            let path = staged.join(&change.path);
            let written = match &change.after {
                Some(text) => files::make_directory_of(&path).and_then(|()| files::write_atomic(&path, text)),
                None => files::remove(&path, staged),
            };
            written.map_err(|error| self.at(&path, error))?;
        }
        Ok(())
    }

    /// Returns `NAME.v1.bak`, with a number if that exists. Because of the dot it is not a module name.
    fn backup_name(&self, directory: &Path) -> PathBuf {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let base = format!("{name}.{}.bak", self.from);
        let numbered = (2..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let free = names.find(|name| !directory.with_file_name(name).exists());
        directory.with_file_name(free.unwrap_or(base))
    }

    fn at(&self, path: &Path, error: FileError) -> MigrateError {
        MigrateError::File { path: path.to_owned(), error }
    }
}

/// The future files of a module, over its current files.
struct Draft<'a> {
    origin: &'a Origin,
    changes: Vec<FileChange>,
    notes: Vec<String>,
}

impl<'a> Draft<'a> {
    fn new(origin: &'a Origin) -> Self {
        Self { origin, changes: Vec::new(), notes: Vec::new() }
    }

    /// Returns the future content of a file; none if it will not exist.
    fn read(&self, path: &str) -> Result<Option<Source>, MigrateError> {
        let full = self.origin.path_of(path);
        if let Some(change) = self.changes.iter().find(|change| change.path == path) {
            return Ok(change.after.clone().map(|text| Source::new(full, text)));
        }
        match self.origin.read(path, files::MAX_CASE) {
            Ok(source) => Ok(Some(source)),
            Err(FileError::Missing | FileError::Empty) => Ok(None),
            Err(error) => Err(MigrateError::File { path: full, error }),
        }
    }

    /// Returns the future content of a required file.
    fn require(&self, path: &str) -> Result<Source, MigrateError> {
        let source = self.read(path)?;
        source
            .ok_or_else(|| MigrateError::File { path: self.origin.path_of(path), error: FileError::Missing })
    }

    fn put(&mut self, path: &str, text: String) -> Result<(), MigrateError> {
        self.set(path, Some(text))
    }

    fn remove(&mut self, path: &str) -> Result<(), MigrateError> {
        self.set(path, None)
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the changes sorted by path, and the notes.
    fn finish(mut self) -> (Vec<FileChange>, Vec<String>) {
        self.changes.retain(|change| change.before != change.after);
        self.changes.sort_by(|a, b| a.path.cmp(&b.path));
        (self.changes, self.notes)
    }

    fn set(&mut self, path: &str, after: Option<String>) -> Result<(), MigrateError> {
        if let Some(change) = self.changes.iter_mut().find(|change| change.path == path) {
            change.after = after;
            return Ok(());
        }
        let before = self.read(path)?.map(|source| source.text);
        self.changes.push(FileChange { path: path.to_owned(), before, after });
        Ok(())
    }
}

// Inserts keys into `module.yaml` between existing lines.

const TIER: &str = "\
# The tier decides which answers succeed. `cog migrate` chose decision: a person reviews the answer.
# exec: a program acts on it (confidence of at least 0.9, risk none or low); exploration: any idea is welcome.
tier: decision
";

const RESPONSE: &str = "\
# Response mode: sync (one envelope), streaming, or both.
response:
  mode: sync
";

const MANIFEST_FILE: &str = "module.yaml";

/// The line by which an editor finds the schema of a manifest.
const SCHEMA_LINE: &str =
    "# yaml-language-server: $schema=https://json.schemastore.org/cognitive-module.json";

/// Adds the line for editors at the start, unless the manifest names a schema already.
fn add_schema_line(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let source = draft.require(MANIFEST_FILE)?;
    if source.text.contains("yaml-language-server:") {
        return Ok(());
    }
    draft.put(MANIFEST_FILE, format!("{SCHEMA_LINE}{}{}", line_end(&source.text), source.text))
}

/// Adds the tier after `responsibility`.
fn add_tier(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "responsibility", TIER)
}

/// Adds the response mode after the tier.
fn add_response(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "tier", RESPONSE)
}

/// Inserts lines after the line on which the value of `key` ends.
fn add(draft: &mut Draft<'_>, key: &str, lines: &str) -> Result<(), MigrateError> {
    let source = draft.require(MANIFEST_FILE)?;
    let root = parse_manifest(&source)?;
    let is_flow = source.text.get(root.span.start..).is_some_and(|text| text.starts_with('{'));
    if is_flow {
        return Err(MigrateError::FlowStyle { path: source.path.clone() });
    }
    let end = root.get(key).map_or(source.text.len(), |value| value.span.end);
    let at = after_line(&source.text, end);
    let mut edits = Edits::default();
    let newline = line_end(&source.text);
    if at == source.text.len() && !source.text.ends_with('\n') {
        edits.insert(at, newline);
    }
    edits.insert(at, lines.replace('\n', newline));
    draft.put(MANIFEST_FILE, edits.apply(&source.text))
}

fn parse_manifest(source: &Source) -> Result<yaml::Node, MigrateError> {
    yaml::parse(source).map_err(|problem| MigrateError::Load(LoadError { diagnostics: vec![problem] }))
}

// The prompt.

/// The section that is appended to the prompt.
const ENVELOPE: &str = r#"
## Envelope

Answer with one JSON object and nothing else. Put the result described above in `data`.

If you can answer:

```json
{
  "ok": true,
  "meta": { "confidence": 0.9, "risk": "low", "explain": "The answer in at most 280 characters" },
  "data": { "rationale": "The reasoning behind the answer, at any length" }
}
```

If you cannot answer:

```json
{
  "ok": false,
  "meta": { "confidence": 0.9, "risk": "none", "explain": "Why there is no answer" },
  "error": { "code": "E2004", "message": "What the caller needs to change" }
}
```

- `meta.confidence`: 0 to 1, how sure you are of the answer.
- `meta.risk`: none, low, medium or high, how much harm acting on the answer could do.
"#;

/// Appends the envelope section; the prompt itself is unchanged.
fn add_envelope(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let source = draft.require("prompt.md")?;
    let newline = line_end(&source.text);
    let gap = if source.text.ends_with('\n') { "" } else { newline };
    let section = ENVELOPE.replace('\n', newline);
    draft.put("prompt.md", source.text + gap + &section)
}

// Migrates `schema.json` to v2.2: renames `output` to `data`, and adds `meta` and `error`.

const SCHEMA_FILE: &str = "schema.json";

const META: &str = r#""meta": {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": {
      "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
      "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
      "explain": { "type": "string", "maxLength": 280 }
    }
  }"#;

const ERROR: &str = r#""error": {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
      "code": { "type": "string" },
      "message": { "type": "string" },
      "recoverable": { "type": "boolean" },
      "details": { "type": "object" }
    }
  }"#;

/// Renames the output, adds `meta` and `error`, and requires a rationale in data.
fn schema_to_v22(draft: &mut Draft<'_>, output: &str) -> Result<(), MigrateError> {
    let source = draft.require(SCHEMA_FILE)?;
    let tree = parse_schema(&source)?;
    let newline = line_end(&source.text);
    let mut edits = Edits::default();
    let data_name = if tree.get("data").is_some() { "data" } else { output };
    let data = tree.get(data_name);
    if let Some(data) = data.filter(|_| data_name == "output") {
        rename_key(&source, data, "output", "data", &mut edits);
        rename_output_references(&source, &mut edits);
    }
    if let Some(data) = data {
        add_rationale(data, &mut edits, draft);
    }
    let parts = [("meta", META), ("error", ERROR)];
    let missing: Vec<&str> =
        parts.iter().filter(|(key, _)| tree.get(key).is_none()).map(|(_, text)| *text).collect();
    if let Some(end) = source.text.rfind('}').filter(|_| !missing.is_empty()) {
        let before = source.text.get(..end).unwrap_or_default().trim_end().len();
        let comma = if tree.node().is_empty() { "" } else { "," };
        let text = format!("{comma}\n  {}\n", missing.join(",\n  "));
        edits.replace(before..end, text.replace('\n', newline));
    }
    draft.put(SCHEMA_FILE, edits.apply(&source.text))
}

/// v0: joins two files into one document and adjusts the references of each.
fn join_v0(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let mut document = serde_json::Map::new();
    document.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    for (file, part) in [("input.schema.json", "input"), ("output.schema.json", "data")] {
        let mut schema = parse_schema(&draft.require(file)?)?.to_serde();
        if let Some(members) = schema.as_object_mut() {
            members.retain(|key, _| key != "$schema" && key != "$id");
        }
        prefix_references(&mut schema, &format!("/{part}"));
        document.insert(part.to_owned(), schema);
        draft.remove(file)?;
    }
    let mut text = String::new();
    Value::from(serde_json::Value::Object(document)).node().write_pretty(&mut text);
    text.push('\n');
    draft.put(SCHEMA_FILE, text)
}

/// Renames the key of a member.
fn rename_key(source: &Source, value: Node<'_>, from: &str, to: &str, edits: &mut Edits) {
    let quoted = format!("\"{from}\"");
    let before = source.text.get(..value.offset()).unwrap_or_default();
    if let Some(start) = before.rfind(&quoted) {
        edits.replace(start..start + quoted.len(), format!("\"{to}\""));
    }
}

/// Adjusts references into the renamed output.
fn rename_output_references(source: &Source, edits: &mut Edits) {
    for old in ["\"#/output/", "\"#/output\""] {
        for (start, _) in source.text.match_indices(old) {
            edits.replace(start..start + old.len(), old.replace("output", "data"));
        }
    }
}

/// Adds and requires the rationale that every v2.2 answer has.
fn add_rationale(data: Node<'_>, edits: &mut Edits, draft: &mut Draft<'_>) {
    let properties = data.get("properties");
    let rationale = properties.and_then(|properties| properties.get("rationale"));
    match (properties, rationale) {
        (Some(properties), None) => {
            insert_first(properties, "\"rationale\": { \"type\": \"string\" }", edits);
            draft.note("added the field `rationale` to data; v2.2 requires it");
        }
        (_, Some(rationale)) if rationale.get_str("type") != Some("string") => {
            draft.note("data.rationale can be an object and was not changed; v2.2 readers expect a string");
        }
        (None, None) => {
            return draft.note("the data schema has no properties; add `rationale` manually");
        }
        _ => {}
    }
    match data.get("required") {
        Some(required) if !required.elements().any(|key| key.as_str() == Some("rationale")) => {
            insert_first(required, "\"rationale\"", edits);
        }
        Some(_) => {}
        None => insert_first(data, "\"required\": [\"rationale\"]", edits),
    }
}

/// Inserts a member or an item before the others.
fn insert_first(container: Node<'_>, text: &str, edits: &mut Edits) {
    let separator = if container.is_empty() { "" } else { ", " };
    edits.insert(container.offset() + 1, format!("{text}{separator}"));
}

fn parse_schema(source: &Source) -> Result<Value, MigrateError> {
    Value::parse(&source.text).map_err(|error| {
        let problem = Diagnostic::error(Rule::SchemaSyntax, &source.path, error.to_string());
        MigrateError::Load(LoadError { diagnostics: vec![problem] })
    })
}

// Splits the files of old formats: front matter, constraints, two schemas, examples.

/// v1: `MODULE.md` becomes `module.yaml` and `prompt.md`.
fn split_module_md(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let (yaml, body) = halves(&draft.require("MODULE.md")?)?;
    draft.put(MANIFEST_FILE, yaml)?;
    draft.put("prompt.md", body)?;
    draft.remove("MODULE.md")
}

/// v0: five files become three.
fn gather(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let (mut yaml, body) = halves(&draft.require("module.md")?)?;
    if let Some(constraints) = draft.read("constraints.yaml")? {
        let section = constraints_section(&constraints, &yaml)?;
        yaml.push_str(&section.text);
        for key in section.omitted {
            draft.note(format!("`{key}` of constraints.yaml was not copied to module.yaml"));
        }
        draft.remove("constraints.yaml")?;
    }
    draft.put(MANIFEST_FILE, yaml)?;
    draft.remove("module.md")?;
    if !body.trim().is_empty() && draft.read("README.md")?.is_none() {
        draft.put("README.md", body)?;
        draft.note("the text below the front matter of module.md was moved to README.md");
    }
    let prompt = draft.require("prompt.txt")?.text;
    draft.put("prompt.md", prompt)?;
    draft.remove("prompt.txt")?;
    join_v0(draft)
}

/// `examples/` becomes the first golden test.
fn move_examples(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let moves = [
        ("examples/input.json", "tests/case1.input.json"),
        ("examples/output.json", "tests/case1.expected.json"),
    ];
    let is_free =
        draft.read("tests/case1.input.json")?.is_none() && draft.read("tests/case1.expected.json")?.is_none();
    for (from, to) in moves {
        if let Some(example) = draft.read(from)?.filter(|_| is_free) {
            draft.put(to, example.text)?;
            draft.remove(from)?;
        }
    }
    Ok(())
}

/// Returns the YAML and the text after it, without leading empty lines.
fn halves(source: &Source) -> Result<(String, String), MigrateError> {
    let front = front_matter::split(source)
        .map_err(|problem| MigrateError::Load(LoadError { diagnostics: vec![problem] }))?;
    let yaml = source.text.get(front.yaml).unwrap_or_default();
    let body = source.text.get(front.body).unwrap_or_default().trim_start_matches(['\r', '\n']);
    Ok((yaml.to_owned(), body.to_owned()))
}

/// `constraints.yaml` as a section of the manifest.
#[derive(Default)]
struct Section {
    text: String,
    /// The paths of the keys that are not in it.
    omitted: Vec<String>,
}

/// Returns `constraints.yaml` as a section: as is if it has that key, otherwise indented by one level. The text is
/// empty if the manifest already has the section.
fn constraints_section(file: &Source, manifest: &str) -> Result<Section, MigrateError> {
    let manifest = Source::new(&file.path, manifest);
    let root = parse_manifest(file)?;
    let Content::Map(entries) = &root.content else { return Ok(Section::default()) };
    if parse_manifest(&manifest)?.get("constraints").is_some() {
        let omitted = leaves(&root).map(|(path, _, _)| path).collect();
        return Ok(Section { text: String::new(), omitted });
    }
    if root.get("constraints").is_some() && entries.len() == 1 {
        return Ok(Section { text: file.text.clone(), omitted: Vec::new() });
    }
    if !entries.iter().all(|entry| is_known(&entry.key)) {
        return Ok(named_constraints(&root, file));
    }
    let mut text = "constraints:\n".to_owned();
    for line in file.text.split_inclusive('\n') {
        text.push_str(if line.trim().is_empty() { "" } else { "  " });
        text.push_str(line);
    }
    Ok(Section { text, omitted: Vec::new() })
}

const KNOWN: [&str; 6] = [
    "no_network",
    "no_side_effects",
    "no_inventing_data",
    "require_confidence",
    "require_rationale",
    "behavior_equivalence_false_max_confidence",
];

fn is_known(key: &str) -> bool {
    KNOWN.contains(&key)
}

/// Returns the known constraints of a file that also contains other keys. A key at the top counts more than one below.
fn named_constraints(root: &yaml::Node, file: &Source) -> Section {
    let mut section = Section::default();
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (path, key, value) in leaves(root) {
        match file.text.get(value.written.clone()).filter(|_| is_known(key)) {
            Some(text) => {
                named.retain(|(known, _)| *known != key);
                named.push((key, text));
            }
            None => section.omitted.push(path),
        }
    }
    if !named.is_empty() {
        let lines: String = named.iter().map(|(key, text)| format!("  {key}: {text}\n")).collect();
        section.text = format!("constraints:\n{lines}");
    }
    section
}

/// Returns the keys one level down, then those at the top, each with its path and value.
fn leaves(root: &yaml::Node) -> impl Iterator<Item = (String, &str, &yaml::Node)> {
    let all = entries(root);
    let below = all.iter().flat_map(move |outer| {
        entries(&outer.value)
            .iter()
            .map(move |entry| (format!("{}.{}", outer.key, entry.key), entry.key.as_str(), &entry.value))
    });
    let top = all.iter().filter(|entry| !matches!(entry.value.content, Content::Map(_)));
    below.chain(top.map(|entry| (entry.key.clone(), entry.key.as_str(), &entry.value)))
}

fn entries(node: &yaml::Node) -> &[Entry] {
    match &node.content {
        Content::Map(entries) => entries,
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
