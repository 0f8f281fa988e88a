//! Checks all files of a module (`cog validate`).

use cog_json::{Array, ToJson, Writer};
use cog_spec::{Format, Meta, Modality};
use serde_json::Value;

use crate::{
    Diagnostic, Module, Origin, Rule, Severity, golden, layout, lint::has_media, load::load_with_sources,
    schema::SchemaSources,
};

/// The level that a module is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// It loads, and its golden tests satisfy its contract.
    #[default]
    Any,
    /// It is a complete v2.2 module.
    V22,
    /// It is a complete v2.5 module.
    V25,
}

/// The result of `validate`.
#[derive(Debug, Clone)]
pub struct Report {
    /// The origin of the module.
    pub origin: Origin,
    /// The module, if it loads.
    pub module: Option<Module>,
    /// The number of golden tests that were checked.
    pub cases: usize,
    /// All diagnostics, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks manifest, prompt and schema, then golden tests and examples, then the level.
///
/// No model is called. Each check has its own [`Rule`], and a failed check does not prevent others, as far as the
/// files can be read.
pub fn validate(origin: &Origin, level: Level) -> Report {
    let (module, sources) = match load_with_sources(origin) {
        Ok(loaded) => loaded,
        Err(error) => {
            return Report { origin: origin.clone(), module: None, cases: 0, diagnostics: error.diagnostics };
        }
    };
    let mut diagnostics = module.warnings.clone();
    // A run goes on without the file. Whoever validates wants to know that it has no effect.
    for found in diagnostics.iter_mut().filter(|found| found.rule == Rule::FormsFile) {
        found.severity = Severity::Error;
    }
    let discovery = golden::discover(&module);
    diagnostics.extend(discovery.problems);
    for case in &discovery.cases {
        let mismatches = golden::check_case(&module, case).into_iter();
        diagnostics.extend(mismatches.map(|(rule, mismatch)| case_finding(case, rule, &mismatch)));
        diagnostics.extend(golden::unknown_paths(&module, case));
    }
    diagnostics.extend(misnamed_tests(&module));
    diagnostics.extend(check(&module, &sources, level));
    Report { origin: origin.clone(), cases: discovery.cases.len(), module: Some(module), diagnostics }
}

impl Report {
    /// Returns whether there are no errors; there may be warnings.
    pub fn is_valid(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns whether the module itself is valid: only its examples and golden tests have errors, if any.
    pub fn is_module_valid(&self) -> bool {
        let mut errors = self.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        errors.all(|found| found.rule.is_about_examples())
    }

    /// Turns the errors of examples and golden tests into warnings.
    pub fn accept_examples(&mut self) {
        for found in self.diagnostics.iter_mut().filter(|found| found.rule.is_about_examples()) {
            found.severity = Severity::Warning;
        }
    }

    /// Returns the number of diagnostics of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|found| found.severity == severity).count()
    }

    /// Returns the format, if the module loads.
    pub fn format(&self) -> Option<Format> {
        self.module.as_ref().map(|module| module.manifest.format)
    }

    /// Returns the manifest that was read, if there is one.
    pub fn manifest_file(&self) -> Option<std::path::PathBuf> {
        if let Some(module) = &self.module {
            return Some(module.manifest_file());
        }
        let (family, _) = layout::detect(&self.origin).ok()?;
        Some(self.origin.path_of(family.manifest()))
    }
}

/// Written by hand: most members are computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("valid", &self.is_valid());
            w.field("module_valid", &self.is_module_valid());
            w.optional("module", &self.module.as_ref().map(|module| module.manifest.name.as_str()));
            w.field("path", self.origin.path_of("").to_string_lossy().as_ref());
            w.optional("manifest", &self.manifest_file().map(|path| path.to_string_lossy().into_owned()));
            w.optional("format", &self.format().map(Format::as_str));
            w.field("cases", &u64::try_from(self.cases).unwrap_or(u64::MAX));
            w.field("diagnostics", &Array(&self.diagnostics));
        });
    }
}

/// Returns the diagnostic of a golden test, in its file.
fn case_finding(case: &golden::GoldenCase, rule: Rule, found: &golden::Mismatch) -> Diagnostic {
    let file = match rule {
        Rule::GoldenInput | Rule::ExampleInput => &case.input_file,
        _ => &case.expected_file,
    };
    Diagnostic::error(rule, file, format!("{}: {}", found.path, found.message))
}

/// Warns about a directory of tests that is not read.
fn misnamed_tests(module: &Module) -> Option<Diagnostic> {
    let names = ["test", "golden", "cases"].into_iter();
    let name = names
        .into_iter()
        .find(|name| module.origin.file_names_in(name).iter().any(|file| file.ends_with(".input.json")))?;
    let message = format!("the golden tests in `{name}` are not read");
    let directory = module.origin.path_of(name);
    Some(Diagnostic::warning(Rule::GoldenDirectory, directory, message).suggest("Rename it to `tests`."))
}

/// Returns the requirements of a level that a module does not meet.
fn check(module: &Module, sources: &SchemaSources, level: Level) -> Vec<Diagnostic> {
    if level == Level::Any {
        return Vec::new();
    }
    let check = Check { module, sources };
    let mut found = Vec::new();
    found.extend(check.format(level));
    found.extend(check.tier());
    found.extend(["input", "data", "meta", "error"].into_iter().filter_map(|part| check.part(part)));
    found.extend(check.requires(Rule::LevelMeta, "meta", &["confidence", "risk", "explain"]));
    found.extend(check.explain());
    found.extend(check.requires(Rule::LevelError, "error", &["code", "message"]));
    // `rationale: optional` is part of both formats (ruling R91).
    if module.manifest.needs_rationale {
        found.extend(check.requires(Rule::LevelRationale, "data", &["rationale"]));
    }
    if level == Level::V25 {
        found.extend(check.media());
    }
    found
}

struct Check<'a> {
    module: &'a Module,
    sources: &'a SchemaSources,
}

impl Check<'_> {
    fn format(&self, level: Level) -> Option<Diagnostic> {
        let format = self.module.manifest.format;
        let (fits, requested, missing) = match level {
            Level::V25 => (format == Format::V25, "v2.5", "neither `response` nor `modalities`"),
            _ => (format >= Format::V22, "v2.2", "neither a tier nor a meta schema"),
        };
        if fits {
            return None;
        }
        let message = match format {
            Format::V0 | Format::V1 => format!("the module's format is {format}, not {requested}"),
            _ => format!("the module's format is {format}, not {requested}: it has {missing}"),
        };
        let help =
            format!("Run `cog migrate {}` to upgrade it to {requested}.", self.module.origin.display_name());
        Some(self.about_manifest(Rule::LevelFormat, message).suggest(help))
    }

    fn tier(&self) -> Option<Diagnostic> {
        let is_missing = self.module.manifest.tier.is_none();
        is_missing.then(|| self.about_manifest(Rule::LevelTier, "the module has no tier".to_owned()))
    }

    fn part(&self, part: &str) -> Option<Diagnostic> {
        if self.find(part).is_some() {
            return None;
        }
        let alias = part == "data" && self.module.schema.get("output").is_some();
        let message = format!("the schema has no `{part}` section");
        let diagnostic = self.about_schema(Rule::LevelSchemaPart, message, "");
        Some(if alias { diagnostic.suggest("Rename `output` to `data`.") } else { diagnostic })
    }

    fn requires(&self, rule: Rule, part: &str, keys: &[&str]) -> Option<Diagnostic> {
        let (schema, pointer) = self.find(part)?;
        let required = schema.get("required").and_then(Value::as_array);
        let missing = keys.iter().copied();
        let missing: Vec<&str> =
            missing.filter(|key| required.is_none_or(|list| list.iter().all(|item| item != key))).collect();
        if missing.is_empty() {
            return None;
        }
        let message = format!("the {part} schema does not require {}", missing.join(", "));
        let help = format!("Add {} to its `required`.", missing.join(", "));
        Some(self.about_schema(rule, message, &pointer).suggest(help))
    }

    fn explain(&self) -> Option<Diagnostic> {
        let (schema, pointer) = self.find("meta")?;
        let max = schema.pointer("/properties/explain/maxLength").and_then(Value::as_u64);
        if max.is_some_and(|max| max <= Meta::MAX_EXPLAIN as u64) {
            return None;
        }
        let message = "the meta schema does not limit `explain` to 280 characters".to_owned();
        let diagnostic =
            self.about_schema(Rule::LevelMeta, message, &format!("{pointer}/properties/explain"));
        Some(diagnostic.suggest("Add `\"maxLength\": 280`."))
    }

    fn media(&self) -> Option<Diagnostic> {
        let takes_media = self.module.manifest.modalities.input.iter().any(|kind| *kind != Modality::Text);
        if !takes_media || self.find("input").is_some_and(|(input, _)| has_media(input)) {
            return None;
        }
        let message = "the module accepts media, but its input schema has no media field".to_owned();
        let (_, pointer) = self.find("input").unzip();
        let diagnostic = self.about_schema(Rule::LevelMedia, message, &pointer.unwrap_or_default());
        Some(diagnostic.suggest("Use `\"$ref\": \"#/$defs/MediaInput\"` for a media field."))
    }

    /// Returns a section of the schema and its pointer, with references resolved. One to a definition of the runtime,
    /// which the file does not have, stays.
    fn find(&self, part: &str) -> Option<(&Value, String)> {
        let io = &self.module.manifest.io;
        let named = match part {
            "input" => &io.input,
            "data" => &io.data,
            "meta" => &io.meta,
            _ => &io.error,
        };
        let mut pointer = named.clone().unwrap_or_else(|| format!("/{part}"));
        let mut outer = None;
        for _ in 0..8 {
            let Some(schema) = self.module.schema.pointer(&pointer) else { return outer };
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some((schema, pointer));
            };
            outer = Some((schema, pointer));
            pointer = reference.strip_prefix('#')?.to_owned();
        }
        None
    }

    fn about_manifest(&self, rule: Rule, message: String) -> Diagnostic {
        Diagnostic::error(rule, self.module.manifest_file(), message)
    }

    fn about_schema(&self, rule: Rule, message: String, pointer: &str) -> Diagnostic {
        self.sources.error_at(rule, message, pointer)
    }
}

#[cfg(test)]
mod tests;
