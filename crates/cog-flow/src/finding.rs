//! What a check of a composition found.

use std::{ops::Range, sync::Arc};

use cog_module::{Diagnostic, Locator, Module, Rule, Severity};
use cog_rules::TextError;
use cog_spec::{Code, ErrorBody};

/// A finding of a check: an error prevents every run.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Whether it prevents a run.
    pub severity: Severity,
    /// The check.
    pub rule: Rule,
    /// The code of a run: E4004 to E4008.
    pub code: Code,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub suggestion: Option<String>,
    pub(crate) location: FindingLocation,
    /// Another place that it is about, such as the first of two steps.
    pub(crate) also_at: Option<FindingLocation>,
    /// The module that it is about.
    pub(crate) module: Option<Arc<Module>>,
}

/// The maximum number of errors about one module, and of warnings.
const MAX_FINDINGS: usize = 200;

/// The findings about one module. Errors and warnings are counted apart, so that no warning takes the place of an error.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Adds a finding, unless there are too many of its severity.
    pub(crate) fn push(&mut self, finding: Finding) {
        if !self.is_full(finding.severity) {
            *self.count(finding.severity) += 1;
            self.list.push(finding);
        }
    }

    /// Returns whether no further finding of a severity is added.
    pub(crate) fn is_full(&self, severity: Severity) -> bool {
        let count = match severity {
            Severity::Error => self.errors,
            Severity::Warning => self.warnings,
        };
        count >= MAX_FINDINGS
    }

    /// Returns whether there are enough errors to end the check of a module.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_full(Severity::Error)
    }

    /// Returns whether there is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns the findings, each about this module.
    pub(crate) fn about(self, module: &Arc<Module>) -> impl Iterator<Item = Finding> {
        self.list.into_iter().map(|finding| finding.about(module))
    }

    fn count(&mut self, severity: Severity) -> &mut usize {
        match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        }
    }
}

impl Extend<Finding> for Findings {
    /// Takes no more findings once there are enough errors.
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        for finding in findings {
            if self.is_enough() {
                return;
            }
            self.push(finding);
        }
    }
}

/// The location of a finding in the files of its module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FindingLocation {
    /// A value of the manifest, by its JSON pointer, and a byte range in its text.
    Manifest(String, Option<Range<usize>>),
    /// A byte range of the prompt.
    Prompt(Range<usize>),
}

impl Finding {
    pub(crate) fn error(rule: Rule, location: FindingLocation, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            code: Code::ModuleInvalid,
            message: message.into(),
            suggestion: None,
            location,
            also_at: None,
            module: None,
        }
    }

    pub(crate) fn warning(rule: Rule, location: FindingLocation, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, location, message) }
    }

    #[must_use]
    pub(crate) fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    #[must_use]
    pub(crate) fn suggest(self, suggestion: impl Into<String>) -> Self {
        self.with_suggestion(Some(suggestion.into()))
    }

    #[must_use]
    pub(crate) fn with_suggestion(self, suggestion: Option<String>) -> Self {
        Self { suggestion, ..self }
    }

    /// Adds another place of the module that it is about.
    #[must_use]
    pub(crate) fn also_at(self, location: FindingLocation) -> Self {
        Self { also_at: Some(location), ..self }
    }

    /// Returns the finding about an invalid text of the manifest.
    pub(crate) fn invalid_text(
        rule: Rule,
        pointer: String,
        what: &str,
        text: &str,
        error: TextError,
    ) -> Self {
        let column = text.get(..error.range.start).unwrap_or_default().chars().count() + 1;
        let message = format!("{what}, column {column}: {}", error.message);
        let location = FindingLocation::Manifest(pointer, Some(error.range));
        Self::error(rule, location, message).with_suggestion(error.suggestion)
    }

    /// Sets the module that it is about.
    #[must_use]
    pub(crate) fn about(self, module: &Arc<Module>) -> Self {
        Self { module: Some(Arc::clone(module)), ..self }
    }

    /// Returns the module that it is about: the checked one, or one that it calls.
    pub fn module(&self) -> Option<&Arc<Module>> {
        self.module.as_ref()
    }

    /// Returns it as a diagnostic with file, line and column.
    pub fn diagnostic(&self) -> Diagnostic {
        let found = Diagnostic::error(self.rule, "", &self.message);
        let found = Diagnostic { severity: self.severity, suggestion: self.suggestion.clone(), ..found };
        let Some(module) = &self.module else { return found };
        let locator = Locator::new(module);
        let other = self.also_at.as_ref().map(|other| place(&other.locate(&locator, found.clone())));
        let message = other.map(|other| format!("{} (the other place is {other})", found.message));
        let found = Diagnostic { message: message.unwrap_or_else(|| found.message.clone()), ..found };
        self.location.locate(&locator, found)
    }

    /// Returns the message, with both places of a finding that has two.
    fn located_message(&self) -> String {
        let (Some(module), Some(other)) = (&self.module, &self.also_at) else { return self.message.clone() };
        let locator = Locator::new(module);
        let other = other.locate(&locator, Diagnostic::error(self.rule, "", ""));
        let own = self.location.locate(&locator, Diagnostic::error(self.rule, "", ""));
        format!("{} ({} and {})", self.message, place(&other), place(&own))
    }

    /// Returns it as the error of a run of a module.
    pub fn to_error(&self, root: &Module) -> ErrorBody {
        let name = self.module.as_ref().map_or(&root.manifest.name, |module| &module.manifest.name);
        let error = ErrorBody::new(self.code, format!("{name}: {}", self.located_message()));
        match &self.suggestion {
            Some(suggestion) => error.suggest(suggestion),
            None => error,
        }
    }
}

impl FindingLocation {
    /// Adds the file and the line to a diagnostic.
    fn locate(&self, locator: &Locator<'_>, found: Diagnostic) -> Diagnostic {
        match self {
            FindingLocation::Manifest(pointer, within) => locator.in_manifest(found, pointer, within.clone()),
            FindingLocation::Prompt(range) => locator.in_prompt(found, range.clone()),
        }
    }

    /// Returns the location of a value of `composition`.
    pub(crate) fn composition(pointer: impl AsRef<str>) -> Self {
        FindingLocation::Manifest(format!("/composition{}", pointer.as_ref()), None)
    }
}

/// Returns the file and the line of a diagnostic: `module.yaml:9`.
fn place(found: &Diagnostic) -> String {
    let file = found.file.file_name().unwrap_or_default().to_string_lossy();
    match &found.location {
        Some(location) => format!("{file}:{}", location.line),
        None => file.into_owned(),
    }
}
