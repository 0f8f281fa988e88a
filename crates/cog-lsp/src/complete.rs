//! Completion: keys and values of the manifest, placeholders, modules, and paths of fields.

use cog_module::{FieldPath, Finder, Origin, field_paths};
use tower_lsp_server::ls_types as lsp;

use crate::{
    manifest,
    text::Text,
    workspace::ModuleFile,
    yaml::{self, YamlPosition},
};

/// The placeholders of a prompt, and what each becomes (docs/modules.md).
const PLACEHOLDERS: [(&str, &str); 4] = [
    ("$ARGUMENTS", "The text of `--args`, otherwise the input's `query`."),
    ("$ARGUMENTS[0]", "A word of that text, counted from 0."),
    ("$INPUT", "The input as JSON."),
    ("$MEDIA_INPUTS", "The position of the media."),
];

/// The keys of a manifest whose value is the name of a module.
const MODULE_KEYS: [&str; 6] = ["name", "fallback", "from", "to", "next", "module"];

/// A position in a file of a module.
pub(crate) struct Place<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) file: &'a ModuleFile,
    pub(crate) text: &'a Text,
    pub(crate) position: lsp::Position,
}

impl Place<'_> {
    /// Returns what can stand at the position.
    pub(crate) fn complete(&self, finder: &Finder) -> Vec<lsp::CompletionItem> {
        if let Some(paths) = self.paths() {
            return paths;
        }
        if self.is_manifest() {
            return self.in_manifest(finder);
        }
        if self.is_prompt() {
            return self.in_prompt(finder);
        }
        Vec::new()
    }

    /// Returns the position in the manifest; none in another file.
    pub(crate) fn yaml(&self) -> Option<YamlPosition> {
        let byte = self.before().len();
        self.is_manifest().then(|| yaml::position(self.text.as_str(), self.position.line as usize, byte))
    }

    fn is_manifest(&self) -> bool {
        self.file.relative == "module.yaml" || self.file.relative == "MODULE.md" && self.is_in_front_matter()
    }

    fn is_prompt(&self) -> bool {
        self.file.relative == "prompt.md" || self.file.relative == "MODULE.md"
    }

    /// Returns whether the position is between the two `---` lines of `MODULE.md`.
    fn is_in_front_matter(&self) -> bool {
        let fences = self.text.as_str().lines().take(self.position.line as usize);
        fences.filter(|line| line.trim_end() == "---").count() == 1
    }

    /// Returns the text of the line before the position.
    fn before(&self) -> &str {
        let line = self.text.line(self.position.line);
        let start = self.text.offset(lsp::Position::new(self.position.line, 0));
        line.get(..self.text.offset(self.position) - start).unwrap_or(line)
    }

    /// Returns the range of the last bytes before the position.
    fn range_of_last(&self, bytes: usize) -> lsp::Range {
        let end = self.text.offset(self.position);
        self.text.range(end - bytes..end)
    }

    /// Completes the path of a field: `$.data.` in conditions, `data.` in expected files.
    fn paths(&self) -> Option<Vec<lsp::CompletionItem>> {
        let before = self.before();
        let is_path = |c: char| c.is_alphanumeric() || "_-.[]*$".contains(c);
        let start = before
            .rfind(|c: char| !is_path(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let written = before.get(start..)?;
        let sign = if self.is_manifest() && written.starts_with("$.") {
            "$."
        } else if self.file.relative.ends_with(".expected.json") && before.get(..start)?.ends_with('"') {
            ""
        } else {
            return None;
        };
        let range = self.range_of_last(written.len());
        let paths = field_paths(self.origin)
            .into_iter()
            .filter(|field| !sign.is_empty() || field.path.starts_with("data."));
        let items = paths.map(|FieldPath { path, about, .. }| {
            // An expected file names one element.
            let path = if sign.is_empty() { path.replace("[*]", "[0]") } else { format!("{sign}{path}") };
            item(path, lsp::CompletionItemKind::FIELD, about, range)
        });
        Some(items.collect())
    }

    fn in_manifest(&self, finder: &Finder) -> Vec<lsp::CompletionItem> {
        let Some(at) = self.yaml() else { return Vec::new() };
        let Some(value) = &at.value else { return self.manifest_keys(&at) };
        let word = value.rsplit([' ', '[', ',']).next().unwrap_or_default();
        let range = self.range_of_last(word.len());
        if at.path.first().is_some_and(|key| key == "composition") && MODULE_KEYS.contains(&at.key.as_str()) {
            return modules(finder, range);
        }
        let Some(schema) = manifest::key(&at.path, &at.key) else { return Vec::new() };
        let values = manifest::values(schema).into_iter();
        values.map(|value| item(value, lsp::CompletionItemKind::ENUM_MEMBER, String::new(), range)).collect()
    }

    fn manifest_keys(&self, at: &YamlPosition) -> Vec<lsp::CompletionItem> {
        let before = self.before();
        let range = self.range_of_last(before.len() - at.key_range.start.min(before.len()));
        let has_colon = self
            .text
            .line(self.position.line)
            .get(at.key_range.end..)
            .is_some_and(|rest| rest.starts_with(':'));
        let keys = manifest::keys(&at.path).map(|(key, schema)| {
            let text = if has_colon { key.to_owned() } else { format!("{key}: ") };
            let about = manifest::describe(schema);
            lsp::CompletionItem {
                label: key.to_owned(),
                ..item(text, lsp::CompletionItemKind::PROPERTY, about, range)
            }
        });
        let keys: Vec<_> = keys.collect();
        // A list of keywords continues its key.
        if keys.is_empty() && at.path.last().is_some_and(|last| last == "-") {
            let list = at.path.get(..at.path.len() - 1).unwrap_or_default();
            let schema = list.split_last().and_then(|(key, path)| manifest::key(path, key));
            let values = schema.map(manifest::values).unwrap_or_default().into_iter();
            return values
                .map(|value| item(value, lsp::CompletionItemKind::ENUM_MEMBER, String::new(), range))
                .collect();
        }
        keys
    }

    fn in_prompt(&self, finder: &Finder) -> Vec<lsp::CompletionItem> {
        let before = self.before();
        if let Some(name) = after(before, "@call:") {
            return modules(finder, self.range_of_last(name.len()));
        }
        if let Some(name) = after(before, "$") {
            let range = self.range_of_last(name.len() + 1);
            let all = PLACEHOLDERS.into_iter();
            return all
                .map(|(name, about)| {
                    item(name.to_owned(), lsp::CompletionItemKind::VARIABLE, about.to_owned(), range)
                })
                .collect();
        }
        if let Some(name) = after(before, "`") {
            let range = self.range_of_last(name.len());
            let paths = field_paths(self.origin).into_iter();
            let names = paths.map(|field| {
                let name =
                    field.path.rsplit('.').next().unwrap_or_default().trim_end_matches("[*]").to_owned();
                item(name, lsp::CompletionItemKind::FIELD, field.about, range)
            });
            let mut names: Vec<_> = names.collect();
            names.sort_by(|a, b| a.label.cmp(&b.label));
            names.dedup_by(|a, b| a.label == b.label);
            return names;
        }
        Vec::new()
    }
}

/// Returns the name that is typed after a sign, the last of its line.
fn after<'a>(before: &'a str, sign: &str) -> Option<&'a str> {
    let (_, name) = before.rsplit_once(sign)?;
    name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_').then_some(name)
}

fn modules(finder: &Finder, range: lsp::Range) -> Vec<lsp::CompletionItem> {
    let all = finder.list_offered().into_iter();
    all.map(|module| {
        let about = module.manifest.map(|manifest| manifest.responsibility).unwrap_or_default();
        item(module.name, lsp::CompletionItemKind::MODULE, about, range)
    })
    .collect()
}

fn item(
    text: String,
    kind: lsp::CompletionItemKind,
    about: String,
    range: lsp::Range,
) -> lsp::CompletionItem {
    let is_documented = !about.is_empty();
    let about = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: about };
    let documentation = is_documented.then_some(lsp::Documentation::MarkupContent(about));
    lsp::CompletionItem {
        label: text.clone(),
        kind: Some(kind),
        documentation,
        filter_text: Some(text.clone()),
        text_edit: Some(lsp::CompletionTextEdit::Edit(lsp::TextEdit::new(range, text))),
        ..lsp::CompletionItem::default()
    }
}
