//! Diagnostics of a module: the rule, the location, and what to do.

use std::{cell::RefCell, collections::BTreeMap, fmt, ops::Range, path::PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cog_json::{ToJson, Writer};

use crate::{Location, Rule, source::Source};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The module does not load (E4008), or does not reach the requested level.
    Error,
    /// The module loads.
    Warning,
}

impl Severity {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A diagnostic of a module's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the module loads anyway.
    pub severity: Severity,
    /// The check that failed.
    pub rule: Rule,
    /// What was found, and what is allowed.
    pub message: String,
    /// The file; the directory if a file is missing.
    pub file: PathBuf,
    /// The location in the file, if known.
    pub location: Option<Box<Location>>,
    /// What to do about it.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// Creates an error: the module does not load.
    pub fn error(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            message: message.into(),
            file: file.into(),
            location: None,
            suggestion: None,
        }
    }

    /// Creates a warning: the module loads.
    pub fn warning(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, file, message) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds the location in its file.
    #[must_use]
    pub(crate) fn at(mut self, source: &Source, span: Range<usize>) -> Self {
        self.location = Some(Box::new(source.location(span)));
        self
    }

    /// Renders it for a person: message, file, line, an excerpt with the location marked, suggestion.
    ///
    /// With `colour`, the text contains ANSI escapes.
    pub fn render(&self, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str()).id(self.rule.as_str());
        let group = self.locate(Group::with_title(title));
        let group = group.elements(self.suggestion.as_deref().map(|text| Level::HELP.message(text)));
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    fn locate<'a>(&'a self, group: Group<'a>) -> Group<'a> {
        let file = self.file.to_string_lossy();
        let Some(location) = &self.location else { return group.element(Origin::path(file)) };
        let line = location.line as usize;
        let column = location.column as usize;
        let annotation = AnnotationKind::Primary.span(location.marked.clone());
        let snippet = Snippet::source(location.excerpt.as_str()).line_start(line).annotation(annotation);
        if location.starts_at_line_start() {
            group.element(snippet.path(file))
        } else {
            group.element(Origin::path(file).line(line).char_column(column)).element(snippet)
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Written by hand: the location is flattened, and the path is written as text.
impl ToJson for Diagnostic {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("severity", self.severity.as_str());
            w.field("rule", self.rule.as_str());
            w.field("message", &self.message);
            w.field("file", self.file.to_string_lossy().as_ref());
            if let Some(location) = &self.location {
                w.field("line", &location.line);
                w.field("column", &location.column);
                w.field("text", location.excerpt.get(location.marked.clone()).unwrap_or_default());
            }
            w.optional("suggestion", &self.suggestion);
        });
    }
}

/// The maximum number of diagnostics that are reported for one file.
pub(crate) const MAX_FINDINGS: usize = 200;

/// Collects the diagnostics of one file while it is read.
pub(crate) struct Findings<'a> {
    source: &'a Source,
    list: RefCell<Vec<Diagnostic>>,
    /// The diagnostics over the maximum, by severity.
    omitted: RefCell<BTreeMap<Severity, usize>>,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, list: RefCell::default(), omitted: RefCell::default() }
    }

    pub(crate) fn source(&self) -> &'a Source {
        self.source
    }

    pub(crate) fn error(&self, rule: Rule, span: Range<usize>, message: String, help: Option<String>) {
        self.add(Diagnostic::error(rule, &self.source.path, message), span, help);
    }

    pub(crate) fn warning(&self, rule: Rule, span: Range<usize>, message: String, help: Option<String>) {
        self.add(Diagnostic::warning(rule, &self.source.path, message), span, help);
    }

    /// Counts a diagnostic that is over the maximum. Returns whether it is.
    pub(crate) fn is_omitted(&self, severity: Severity) -> bool {
        let is_full = self.list.borrow().len() >= MAX_FINDINGS;
        if is_full {
            *self.omitted.borrow_mut().entry(severity).or_default() += 1;
        }
        is_full
    }

    /// Returns the diagnostics in the order of the text.
    pub(crate) fn into_vec(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|found| found.location.as_ref().map(|location| (location.line, location.column)));
        let omitted = self.omitted.into_inner();
        if let Some(severity) = omitted.keys().next() {
            let count: usize = omitted.values().sum();
            let message = format!("{count} more problems in this file are not shown");
            let rest = Diagnostic::error(Rule::ManifestShape, &self.source.path, message);
            list.push(Diagnostic { severity: *severity, ..rest });
        }
        list
    }

    fn add(&self, diagnostic: Diagnostic, span: Range<usize>, suggestion: Option<String>) {
        if !self.is_omitted(diagnostic.severity) {
            self.list.borrow_mut().push(Diagnostic { suggestion, ..diagnostic }.at(self.source, span));
        }
    }
}

/// The maximum length of text that is quoted in a message or compared with candidates, in characters.
const MAX_QUOTED: usize = 200;

/// Returns text for a message: shortened, and with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let (text, rest) = text.split_at(text.char_indices().nth(MAX_QUOTED).map_or(text.len(), |(end, _)| end));
    let escaped = text.escape_debug().to_string();
    if rest.is_empty() { escaped } else { escaped + "…" }
}

/// Returns the candidate most similar to `found`, if it is similar enough; none for a very long one.
pub(crate) fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if found.len() > MAX_QUOTED {
        return None;
    }
    let found = found.to_lowercase();
    let names = names.into_iter().map(|name| (strsim::jaro_winkler(&found, &name.to_lowercase()), name));
    let best = names.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.75).then_some(best.1)
}
