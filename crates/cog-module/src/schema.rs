//! Reads the schema of a module, and maps JSON pointers to locations in its files.

use std::ops::Range;

use cog_json::{Event, EventKind, Kind, Limits, Node, Parser, SyntaxError, Value};
use cog_schema::{Contract, SchemaError};

use crate::{
    Diagnostic, Origin, Rule, Severity,
    diagnostic::shown,
    directory::{rename_advice, unreadable},
    files::{self, FileError},
    layout::Family,
    mentions::key_before,
    source::Source,
};

/// The maximum nesting of a schema.
const MAX_DEPTH: u32 = 128;

/// The maximum number of warnings about rounded numbers.
const MAX_ROUNDED: usize = 100;

/// The schema of a module: one document, and its source files.
pub(crate) struct Schema {
    pub(crate) document: serde_json::Value,
    pub(crate) sources: SchemaSources,
}

/// The source files of a schema, which map JSON pointers to locations.
pub(crate) struct SchemaSources(Vec<SchemaFile>);

/// A source file, and its position in the document.
struct SchemaFile {
    source: Source,
    tree: Value,
    /// Empty for a single document, `/input` and `/output` for the files of v0, a longer pointer for the schema of a
    /// context.
    prefix: String,
    /// The JSON pointers of keys that their object repeats, at most 100.
    repeated: Vec<String>,
}

impl Schema {
    /// Reads the schema of a module, or returns one diagnostic per invalid file.
    pub(crate) fn read(origin: &Origin, family: Family) -> Result<Self, Vec<Diagnostic>> {
        let parts: &[(&str, &str)] = match family {
            Family::V0 => &[("input.schema.json", "/input"), ("output.schema.json", "/output")],
            Family::V1 | Family::V2 => &[("schema.json", "")],
        };
        let mut files = Vec::new();
        let mut problems = Vec::new();
        for (name, prefix) in parts {
            match read_file(origin, name, prefix) {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
        let document = merge(&files);
        if problems.is_empty() { Ok(Self { document, sources: SchemaSources(files) }) } else { Err(problems) }
    }

    /// Adds the file of a schema at a pointer of the document. `named` is where the manifest names the file.
    pub(crate) fn add(
        &mut self,
        origin: &Origin,
        name: &str,
        pointer: String,
        named: (&Source, Range<usize>),
    ) -> Result<(), Diagnostic> {
        let (manifest, span) = named;
        let file = read_file(origin, name, &pointer).map_err(|problem| match problem.rule {
            Rule::SchemaMissing => Diagnostic { file: manifest.path.clone(), ..problem }.at(manifest, span),
            _ => problem,
        })?;
        insert(&mut self.document, &pointer, file.part());
        self.sources.0.push(file);
        Ok(())
    }
}

impl SchemaSources {
    /// Returns the diagnostic of a compile error.
    pub(crate) fn explain(&self, problem: &SchemaError) -> Diagnostic {
        let diagnostic = self.error_at(Rule::SchemaInvalid, problem.message.clone(), &problem.pointer);
        Diagnostic { suggestion: problem.suggestion.clone(), ..diagnostic }
    }

    /// Returns the diagnostic of a contract under which no answer can succeed.
    pub(crate) fn conflict(&self, problem: &SchemaError) -> Diagnostic {
        let diagnostic = self.warning_at(Rule::SchemaConflict, problem.message.clone(), &problem.pointer);
        Diagnostic { severity: Severity::Error, suggestion: problem.suggestion.clone(), ..diagnostic }
    }

    /// Returns a warning at the key of a pointer.
    pub(crate) fn warning_at(&self, rule: Rule, message: String, pointer: &str) -> Diagnostic {
        let Some(file) = self.file_of(pointer) else { return Diagnostic::warning(rule, "", message) };
        let within = pointer.strip_prefix(&file.prefix).unwrap_or_default();
        Diagnostic::warning(rule, &file.source.path, message).at(&file.source, file.span_of_key(within))
    }

    /// Returns the warnings about a schema, each at its keyword.
    pub(crate) fn warnings(&self, contract: &Contract) -> Vec<Diagnostic> {
        let own = self.0.iter().flat_map(|file| file.repeated_keys().chain(file.rounded_numbers()));
        let problems = contract.warnings().iter().map(|problem| {
            let diagnostic = self.warning_at(Rule::SchemaKeyword, problem.message.clone(), &problem.pointer);
            Diagnostic { suggestion: problem.suggestion.clone(), ..diagnostic }
        });
        own.chain(problems).collect()
    }

    fn file_of(&self, pointer: &str) -> Option<&SchemaFile> {
        let containing = self.0.iter().filter(|file| pointer.starts_with(&file.prefix));
        containing.max_by_key(|file| file.prefix.len()).or(self.0.first())
    }

    /// Returns an error at the value of a pointer, or at its nearest existing parent.
    pub(crate) fn error_at(&self, rule: Rule, message: String, pointer: &str) -> Diagnostic {
        let Some(file) = self.file_of(pointer) else {
            return Diagnostic::error(rule, "", message);
        };
        let within = pointer.strip_prefix(&file.prefix).unwrap_or_default();
        Diagnostic::error(rule, &file.source.path, message).at(&file.source, file.span_of(within))
    }
}

impl SchemaFile {
    /// Returns the schema as a part of the document, with references from its root.
    fn part(&self) -> serde_json::Value {
        let mut part = self.tree.to_serde();
        if let serde_json::Value::Object(members) = &mut part {
            members.retain(|key, _| key != "$id" && key != "$schema");
        }
        prefix_references(&mut part, &self.prefix);
        part
    }

    /// Returns a warning for each key that an object repeats.
    fn repeated_keys(&self) -> impl Iterator<Item = Diagnostic> {
        self.repeated.iter().map(|pointer| {
            let message = "this key is repeated in its object; only the last one counts";
            let diagnostic = Diagnostic::warning(Rule::SchemaDuplicate, &self.source.path, message);
            diagnostic.at(&self.source, self.span_of_key(pointer)).suggest("Remove or rename one of them.")
        })
    }

    /// Returns a warning for each number, up to a maximum, that is enforced with another value.
    fn rounded_numbers(&self) -> impl Iterator<Item = Diagnostic> {
        let mut numbers: Vec<Node<'_>> = numbers(self.tree.node()).collect();
        numbers.sort_by_key(|node| node.offset());
        let stored = numbers.into_iter().map(|node| (node, Value::from(node.to_serde())));
        let rounded = stored.filter(|(node, stored)| stored.node() != *node).take(MAX_ROUNDED);
        rounded.map(|(node, stored)| {
            let message = format!("{} is rounded to {stored}", shown(&node.to_string()));
            let diagnostic = Diagnostic::warning(Rule::SchemaNumber, &self.source.path, message);
            let span = node.offset()..node.offset() + 1;
            diagnostic.at(&self.source, span).suggest("Use a string, or a number of at most 15 digits.")
        })
    }

    /// Returns the span of the key of a member; of the value if it is not a member.
    fn span_of_key(&self, pointer: &str) -> Range<usize> {
        let name =
            pointer.rsplit_once('/').map_or("", |(_, name)| name).replace("~1", "/").replace("~0", "~");
        let key = self.tree.pointer(pointer).and_then(|node| key_before(&self.source.text, node, &name));
        key.unwrap_or_else(|| self.span_of(pointer))
    }

    /// Returns the span of the value of a pointer: a complete string, otherwise its first character.
    fn span_of(&self, pointer: &str) -> Range<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(node) = self.tree.pointer(pointer) {
                let start = node.offset();
                let length = node.as_str().map_or(1, str::len);
                return start..start + length;
            }
            pointer = pointer.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
}

/// Returns the numbers in a value.
fn numbers<'a>(root: Node<'a>) -> impl Iterator<Item = Node<'a>> {
    let mut open = vec![root];
    std::iter::from_fn(move || {
        let node = open.pop()?;
        open.extend(node.members().map(|(_, member)| member).chain(node.elements()));
        Some(node)
    })
    .filter(|node| node.kind() == Kind::Number)
}

fn read_file(origin: &Origin, name: &str, prefix: &str) -> Result<SchemaFile, Diagnostic> {
    let source = origin.read(name, files::MAX_PART).map_err(|error| match error {
        FileError::Missing => {
            let message = format!("{name} is missing");
            let help = rename_advice(origin, name)
                .unwrap_or_else(|| format!("Write the JSON Schema of the module in {name}."));
            Diagnostic::error(Rule::SchemaMissing, origin.path_of(""), message).suggest(help)
        }
        other => unreadable(&origin.path_of(name), &other),
    })?;
    let limits = Limits::default().with_depth(MAX_DEPTH).with_bytes(files::MAX_PART);
    match parse(source.text.as_bytes(), limits) {
        Ok((tree, repeated)) if tree.is_object() => {
            Ok(SchemaFile { source, tree, prefix: prefix.to_owned(), repeated })
        }
        Ok(_) => {
            let message = format!("{name} is not a JSON object");
            let suggestion =
                "Start with `{`; the sections `input`, `data`, `meta` and `error` are its members.";
            Err(Diagnostic::error(Rule::SchemaSyntax, &source.path, message)
                .suggest(suggestion)
                .at(&source, 0..1))
        }
        Err(error) => {
            let message = format!("{name} is not JSON: {error}");
            let span = error.offset()..error.offset() + 1;
            Err(Diagnostic::error(Rule::SchemaSyntax, &source.path, message)
                .suggest("Check the commas, quotes and brackets before this position.")
                .at(&source, span))
        }
    }
}

/// Parses a file. Returns also the JSON pointers of the first 100 repeated keys.
fn parse(bytes: &[u8], limits: Limits) -> Result<(Value, Vec<String>), SyntaxError> {
    const MAX_REPEATED: usize = 100;
    let mut repeated = Vec::new();
    let mut parser = Parser::strict(limits);
    let mut note = |event: Event<'_>| {
        if matches!(event.kind, EventKind::Replaced) && repeated.len() < MAX_REPEATED {
            repeated.push(event.path.pointer());
        }
    };
    parser.push(bytes, &mut note)?;
    parser.finish(&mut note)?;
    Ok((parser.into_value().unwrap_or_else(Value::null), repeated))
}

/// Joins several files into one document, each under its name, with adjusted references.
fn merge(files: &[SchemaFile]) -> serde_json::Value {
    if let [file] = files
        && file.prefix.is_empty()
    {
        return file.tree.to_serde();
    }
    let parts = files.iter().map(|file| (file.prefix.trim_start_matches('/').to_owned(), file.part()));
    serde_json::Value::Object(parts.collect())
}

/// Inserts a part at a pointer of a document, whose names need no escapes.
fn insert(document: &mut serde_json::Value, pointer: &str, part: serde_json::Value) {
    let mut slot = document;
    for name in pointer.split('/').skip(1) {
        let serde_json::Value::Object(members) = slot else { return };
        slot = members.entry(name).or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    }
    *slot = part;
}

/// Prefixes every `$ref` into the document.
pub(crate) fn prefix_references(root: &mut serde_json::Value, prefix: &str) {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(members) => {
                if let Some(serde_json::Value::String(reference)) = members.get_mut("$ref")
                    && let Some(pointer) = reference.strip_prefix('#')
                {
                    *reference = format!("#{prefix}{pointer}");
                }
                open.extend(members.values_mut());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}
