//! Diagnostics of a module: the rule, the location, and what to do.

use std::{cell::RefCell, collections::BTreeMap, fmt, ops::Range, path::PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cog_json::{ToJson, Writer};

use crate::{Location, source::Source};

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

/// The maximum length of text that is quoted in a message, in characters.
const MAX_QUOTED: usize = 200;

/// Returns text for a message: shortened, and with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let (text, rest) = text.split_at(text.char_indices().nth(MAX_QUOTED).map_or(text.len(), |(end, _)| end));
    let escaped = text.escape_debug().to_string();
    if rest.is_empty() { escaped } else { escaped + "…" }
}

/// Declares the rules: variant, name, requirement.
macro_rules! rules {
    ($($variant:ident $name:literal $requirement:literal;)+) => {
        /// A check of a module's files. Its name is stable: tools may filter by it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule { $(#[doc = $requirement] $variant),+ }

        impl Rule {
            /// Every rule, in the order in which a module is read.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),+];

            /// Returns its name, such as `key-unknown`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// Returns its requirement in a sentence.
            pub const fn requirement(self) -> &'static str {
                match self { $(Rule::$variant => $requirement),+ }
            }
        }
    };
}

rules! {
    ManifestMissing "manifest-missing" "The directory contains module.yaml, MODULE.md or module.md.";
    ManifestSeveral "manifest-several" "The directory contains one manifest; if it contains several, the first is used.";
    PromptMissing "prompt-missing" "The prompt file exists.";
    SchemaMissing "schema-missing" "The schema file exists.";
    ConstraintsMissing "constraints-missing" "A v0 module has constraints.yaml.";
    FileUnreadable "file-unreadable" "Each file can be read and is a regular file.";
    FileTooLarge "file-too-large" "Manifest, prompt and schema are at most 1 MB each.";
    FileNotText "file-not-text" "Each file is UTF-8 text without NUL.";
    FileEmpty "file-empty" "No file is empty.";
    FrontMatter "front-matter" "MODULE.md starts with YAML between two `---` lines.";
    YamlSyntax "yaml-syntax" "The manifest is valid YAML without duplicate keys.";
    YamlLimit "yaml-limit" "The manifest is within the limits for depth, nodes and aliases.";
    ManifestShape "manifest-shape" "The manifest is a mapping of keys to values.";
    KeyMissing "key-missing" "Every required key is present.";
    KeyUnknown "key-unknown" "Every key is defined by the specification.";
    KeyType "key-type" "Every value has the type of its key.";
    KeyValue "key-value" "Every value is allowed for its key.";
    NameForm "name-form" "The name uses lower case letters, digits and hyphens, and starts with a letter.";
    NameDirectory "name-directory" "The directory has the same name as the module.";
    VersionForm "version-form" "The version has three numbers, such as 1.0.0.";
    FormatDeprecated "format-deprecated" "The format is not deprecated.";
    FormatVersion "format-version" "A version of 2.5 belongs to a manifest with `response` or `modalities`.";
    IoPointer "io-pointer" "Each pointer in `io` points to a section of schema.json.";
    TestPair "test-pair" "Each entry of `tests` names an input and an expected file of the module.";
    SchemaSyntax "schema-syntax" "The schema is valid JSON.";
    SchemaInvalid "schema-invalid" "Each section of the schema is valid JSON Schema, Draft-07.";
    SchemaDuplicate "schema-duplicate" "No object of the schema contains a key twice.";
    SchemaKeyword "schema-keyword" "Every keyword, format and required name of the schema has an effect.";
    SchemaNumber "schema-number" "Every number of the schema is a 64-bit integer or has the precision of a 64-bit float.";
    SchemaPart "schema-part" "The schema has an `input` section and a `data` section (formerly `output`).";
    SchemaConflict "schema-conflict" "At least one answer satisfies the schema and the rules of the manifest.";
    ImplicitContext "implicit-context" "No field of the input contains a conversation or another state by its name.";
    PromptEmpty "prompt-empty" "The prompt is not empty.";
    PromptPlaceholder "prompt-placeholder" "Every placeholder in the prompt can be filled.";
    PromptCall "prompt-call" "Every call and every reference in the prompt names a module that it runs, with valid options.";
    ErrorCodeUndeclared "error-code-undeclared" "Every code of the module that the prompt names is in `error_codes`.";
    CompositionModule "composition-module" "Every module that is called exists, loads, and has an allowed version.";
    CompositionCycle "composition-cycle" "No module calls itself, not even through other modules.";
    CompositionDepth "composition-depth" "Calls are nested at most `max_depth` deep.";
    CompositionStep "composition-step" "Every step reads a result that exists, has a target, and can run.";
    CompositionMapping "composition-mapping" "Every path of a mapping is valid, and its values fit the schema of the target.";
    CompositionCondition "composition-condition" "Every condition is valid, fits the schemas, and can be true.";
    Check "check" "Every named check is valid, fits the schemas, and can pass and fail.";
    ModalityField "modality-field" "A module that accepts media has a media field in its input, and the other way round.";
    RiskRuleField "risk-rule-field" "The data contains the list that `meta.risk_rule` reads, and the meta schema allows its levels.";
    FormsFile "forms-file" "forms.json is valid, and as `cog test --forms --keep` wrote it.";
    FormsOutdated "forms-outdated" "The prompt and the schema are those that forms.json was measured with.";
    LevelFormat "level-format" "The module has the requested format.";
    LevelTier "level-tier" "A v2.2 module has a tier.";
    LevelSchemaPart "level-schema-part" "A v2.2 schema has input, data, meta and error.";
    LevelMeta "level-meta" "A v2.2 meta schema requires confidence, risk and an explain of at most 280 characters.";
    LevelError "level-error" "A v2.2 error schema requires code and message.";
    LevelRationale "level-rationale" "A v2.2 data schema requires rationale.";
    LevelMedia "level-media" "A v2.5 module that accepts media has a media field in its input.";
    ExampleInput "example-input" "The example input is valid for the input schema.";
    ExampleOutput "example-output" "The example output is valid for the output schema.";
    GoldenDirectory "golden-directory" "Golden tests are in `tests`.";
    GoldenPair "golden-pair" "Each golden input has an expected file.";
    GoldenSyntax "golden-syntax" "Golden files are valid JSON.";
    GoldenInput "golden-input" "Each golden input is valid for the input schema.";
    GoldenPath "golden-path" "Each path of an expected file names a field of the schema.";
    GoldenExpected "golden-expected" "Each expected file is valid for the schema and the tier.";
    VersionStep "version-step" "The version is raised as far as the changes since the given revision need.";
}

impl Rule {
    /// Returns whether a violation is in an example or a golden test, so that the module itself can run.
    pub const fn is_about_examples(self) -> bool {
        matches!(
            self,
            Self::ExampleInput
                | Self::ExampleOutput
                | Self::GoldenDirectory
                | Self::GoldenPair
                | Self::GoldenSyntax
                | Self::GoldenInput
                | Self::GoldenPath
                | Self::GoldenExpected
        )
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
