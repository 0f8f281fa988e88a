//! What is wrong with a module: which rule, where, and what to do about it.

use std::{cell::RefCell, fmt, ops::Range, path::PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cog_json::{ToJson, Writer};

use crate::{Place, Rule, source::Source};

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The module does not load (E4008), or does not have the level that was asked for.
    Error,
    /// The module loads; something is odd or out of date.
    Warning,
}

impl Severity {
    /// The severity in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One finding about a module's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the module loads in spite of it.
    pub severity: Severity,
    /// The check that failed.
    pub rule: Rule,
    /// What was found, and what is allowed.
    pub message: String,
    /// The file it is about; the directory where a file is missing.
    pub file: PathBuf,
    /// Where in the file, as far as that is known.
    pub place: Option<Box<Place>>,
    /// What to do about it.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// A finding that keeps the module from loading.
    pub fn error(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { severity: Severity::Error, rule, message, file, place: None, suggestion: None }
    }

    /// A finding that does not.
    pub fn warning(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, file, message) }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The same with a place in its file.
    #[must_use]
    pub(crate) fn at(mut self, source: &Source, span: Range<usize>) -> Self {
        self.place = Some(Box::new(source.place(span)));
        self
    }

    /// The finding for a person: message, file, line, the text with the place marked, suggestion.
    ///
    /// With `colour` it holds ANSI escapes.
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
        if place.is_whole_line() {
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

/// What was found in one file while it is read; the file is named once.
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

    /// What was found, in the order of the text.
    pub(crate) fn into_vec(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|found| found.place.as_ref().map(|place| (place.line, place.column)));
        list
    }

    fn add(&self, diagnostic: Diagnostic, span: Range<usize>, suggestion: Option<String>) {
        self.list.borrow_mut().push(Diagnostic { suggestion, ..diagnostic }.at(self.source, span));
    }
}

/// The word nearest to `found`, where one is near enough to be meant.
pub(crate) fn nearest<'a>(found: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let likeness = |word: &str| strsim::jaro_winkler(&found, &word.to_lowercase());
    let best = words.into_iter().map(|word| (likeness(word), word)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.75).then_some(best.1)
}
