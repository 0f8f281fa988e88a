//! Diagnostics of a module: the rule, the location, and what to do.

use std::{cell::RefCell, fmt, ops::Range, path::PathBuf};

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
    pub place: Option<Box<Location>>,
    /// What to do about it.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic that keeps the module from loading.
    pub fn error(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { severity: Severity::Error, rule, message, file, place: None, suggestion: None }
    }

    /// Creates a diagnostic that does not keep the module from loading.
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
        self.place = Some(Box::new(source.location(span)));
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
        let Some(place) = &self.place else { return group.element(Origin::path(file)) };
        let (line, column) = (place.line as usize, place.column as usize);
        let annotation = AnnotationKind::Primary.span(place.marked.clone());
        let snippet = Snippet::source(place.excerpt.as_str()).line_start(line).annotation(annotation);
        if place.starts_at_line_start() {
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

impl ToJson for Diagnostic {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("severity", self.severity.as_str());
            w.field("rule", self.rule.as_str());
            w.field("message", &self.message);
            w.field("file", self.file.to_string_lossy().as_ref());
            if let Some(place) = &self.place {
                w.field("line", &place.line);
                w.field("column", &place.column);
                w.field("text", place.excerpt.get(place.marked.clone()).unwrap_or_default());
            }
            w.optional("suggestion", &self.suggestion);
        });
    }
}

/// Collects the diagnostics of one file while it is read.
pub(crate) struct Findings<'a> {
    source: &'a Source,
    list: RefCell<Vec<Diagnostic>>,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, list: RefCell::default() }
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

    /// Returns the diagnostics in the order of the text.
    pub(crate) fn into_vec(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|found| found.place.as_ref().map(|place| (place.line, place.column)));
        list
    }

    fn add(&self, diagnostic: Diagnostic, span: Range<usize>, suggestion: Option<String>) {
        self.list.borrow_mut().push(Diagnostic { suggestion, ..diagnostic }.at(self.source, span));
    }
}

/// Returns the candidate most similar to `found`, if it is similar enough.
pub(crate) fn nearest<'a>(found: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let likeness = |word: &str| strsim::jaro_winkler(&found, &word.to_lowercase());
    let best = words.into_iter().map(|word| (likeness(word), word)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.75).then_some(best.1)
}
