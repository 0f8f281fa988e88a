//! Definition, references, rename and hover of fields, over all files of a module.

use std::collections::HashMap;

use cog_module::{FieldPath, Mention, field_paths, mentions};
use tower_lsp_server::{jsonrpc, ls_types as lsp};

use crate::{complete::Place, manifest, text::Text, workspace::Workspace};

/// The field at a position, and all places that name fields of its module.
pub(crate) struct Field {
    /// The place at the position.
    here: Mention,
    all: Vec<Mention>,
}

impl Field {
    /// Returns the field at a position.
    pub(crate) fn at(place: &Place<'_>) -> Option<Self> {
        let offset = place.text.offset(place.position);
        let file = place.origin.path_of(&place.file.relative);
        let all = mentions(place.origin);
        let here = all.iter().find(|mention| {
            mention.file == file && mention.range.start <= offset && offset <= mention.range.end
        });
        Some(Self { here: here?.clone(), all })
    }

    /// Returns the keys in the schema.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Mention> {
        self.mentioned().filter(|mention| mention.is_definition)
    }

    /// Returns the places that name the field, or one of several fields with its name.
    pub(crate) fn references(&self, with_definition: bool) -> impl Iterator<Item = &Mention> {
        self.mentioned().filter(move |mention| with_definition || !mention.is_definition)
    }

    fn mentioned(&self) -> impl Iterator<Item = &Mention> {
        self.all.iter().filter(|mention| mention.fields.iter().any(|field| self.here.fields.contains(field)))
    }

    /// Returns the range of the name, if it can be renamed.
    pub(crate) fn renamed_range(&self, text: &Text) -> Option<lsp::Range> {
        (self.here.fields.len() == 1).then(|| text.range(self.here.range.clone()))
    }

    /// Returns the edits that rename the field everywhere.
    ///
    /// # Errors
    /// The name is not one that a condition can have, or the place may mean several fields.
    pub(crate) fn rename(&self, name: &str, workspace: &Workspace) -> jsonrpc::Result<lsp::WorkspaceEdit> {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if !is_name {
            return Err(jsonrpc::Error::invalid_params("a field is named with letters, digits, `_` and `-`"));
        }
        let [field] = self.here.fields.as_slice() else {
            let message = "several fields have this name: rename one where the schema defines it";
            return Err(jsonrpc::Error::invalid_params(message));
        };
        let (object, _) = field.rsplit_once('/').unwrap_or_default();
        if self.all.iter().any(|mention| mention.fields == [format!("{object}/{name}")]) {
            return Err(jsonrpc::Error::invalid_params(format!("the object already has a field `{name}`")));
        }
        let mut changes: HashMap<lsp::Uri, Vec<lsp::TextEdit>> = HashMap::new();
        // A place that may mean another field keeps its name.
        for mention in self.all.iter().filter(|mention| mention.fields == self.here.fields) {
            let Some(location) = location(mention, workspace) else { continue };
            let edit = lsp::TextEdit::new(location.range, name.to_owned());
            changes.entry(location.uri).or_default().push(edit);
        }
        Ok(lsp::WorkspaceEdit::new(changes))
    }

    /// Returns what the schema says of the field.
    fn describe(&self, paths: &[FieldPath]) -> Option<String> {
        let of_field = paths.iter().filter(|path| self.here.fields.contains(&path.field));
        let lines: Vec<_> =
            of_field.map(|FieldPath { path, about, .. }| format!("`{path}` {about}")).collect();
        (!lines.is_empty()).then(|| lines.join("\n\n"))
    }
}

/// Returns the location of a place in its file.
pub(crate) fn location(mention: &Mention, workspace: &Workspace) -> Option<lsp::Location> {
    let range = workspace.text(&mention.file)?.range(mention.range.clone());
    Some(lsp::Location::new(lsp::Uri::from_file_path(&mention.file)?, range))
}

/// Returns what is known of a position: a field, or a key of the manifest.
pub(crate) fn hover(place: &Place<'_>) -> Option<lsp::Hover> {
    let field = Field::at(place).and_then(|field| field.describe(&field_paths(place.origin)));
    let value = field.or_else(|| {
        let at = place.yaml()?;
        manifest::key(&at.path, &at.key).map(manifest::describe)
    })?;
    let contents = lsp::HoverContents::Markup(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value });
    Some(lsp::Hover { contents, range: None })
}
