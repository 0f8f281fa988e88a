//! The diagnostics of `cog validate`, for an editor.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use cog_module::{Diagnostic, Finder, Level, Origin, Severity, validate};
use serde_json::json;
use tower_lsp_server::ls_types as lsp;

use crate::text::Text;

/// Returns what `cog validate` finds in a module and its composition, by file.
///
/// A diagnostic about a missing file is at the manifest.
pub(crate) fn diagnose(origin: &Origin, finder: &Finder) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
    let report = validate(origin, Level::Any);
    let mut all = report.diagnostics;
    if let Some(module) = report.module {
        let composition = cog_flow::check(Arc::new(module), finder).findings;
        for found in composition.iter().map(cog_flow::Finding::diagnostic) {
            let is_known = all.iter().any(|other| {
                (other.rule, &other.message, &other.location) == (found.rule, &found.message, &found.location)
            });
            if !is_known {
                all.push(found);
            }
        }
    }
    let directory = origin.path_of("");
    let mut by_file: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
    for found in all {
        let file = if found.file == directory { directory.join("module.yaml") } else { found.file.clone() };
        by_file.entry(file).or_default().push(found);
    }
    by_file
}

/// Returns a diagnostic in the form of the protocol, with its exact correction as data.
pub(crate) fn to_lsp(found: &Diagnostic, text: &Text) -> lsp::Diagnostic {
    let message = match &found.suggestion {
        Some(suggestion) => format!("{}\n{suggestion}", found.message),
        None => found.message.clone(),
    };
    lsp::Diagnostic {
        range: range(found, text),
        severity: Some(match found.severity {
            Severity::Error => lsp::DiagnosticSeverity::ERROR,
            Severity::Warning => lsp::DiagnosticSeverity::WARNING,
        }),
        code: Some(lsp::NumberOrString::String(found.rule.as_str().to_owned())),
        source: Some("cog".to_owned()),
        message,
        data: correction(found).map(|replacement| json!({ "replacement": replacement })),
        ..lsp::Diagnostic::default()
    }
}

/// Returns the range of a diagnostic; without a location the first line.
fn range(found: &Diagnostic, text: &Text) -> lsp::Range {
    let Some(location) = &found.location else { return text.characters(1, 1, usize::MAX) };
    let marked = location.excerpt.get(location.marked.clone()).unwrap_or_default();
    text.characters(location.line, location.column, marked.chars().count())
}

/// Returns the text that replaces the marked one, if the suggestion is exactly one name for one name.
fn correction(found: &Diagnostic) -> Option<String> {
    let location = found.location.as_ref()?;
    let marked = location.excerpt.get(location.marked.clone())?;
    let name = found.suggestion.as_deref()?.strip_prefix("Did you mean `")?.strip_suffix("`?")?;
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_name(marked) && is_name(name)).then(|| name.to_owned())
}

/// Returns the quick fixes of diagnostics, as edits of their file.
pub(crate) fn fixes(uri: &lsp::Uri, diagnostics: &[lsp::Diagnostic]) -> lsp::CodeActionResponse {
    let fixes = diagnostics.iter().filter_map(|diagnostic| {
        let replacement = diagnostic.data.as_ref()?.get("replacement")?.as_str()?;
        let edit = lsp::TextEdit::new(diagnostic.range, replacement.to_owned());
        let edit = lsp::WorkspaceEdit::new([(uri.clone(), vec![edit])].into());
        let action = lsp::CodeAction {
            title: format!("Replace with `{replacement}`"),
            kind: Some(lsp::CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic.clone()]),
            edit: Some(edit),
            is_preferred: Some(true),
            ..lsp::CodeAction::default()
        };
        Some(lsp::CodeActionOrCommand::CodeAction(action))
    });
    fixes.collect()
}
