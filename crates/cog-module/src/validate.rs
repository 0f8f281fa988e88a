//! Checks all files of a module (`cog validate`).

mod level;

use cog_json::{Array, ToJson, Writer};
use cog_spec::Format;

use crate::{Diagnostic, Module, Origin, Rule, Severity, golden, layout, load::load_with_sources};

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
    let discovery = golden::discover(&module);
    diagnostics.extend(discovery.problems);
    for case in &discovery.cases {
        diagnostics
            .extend(golden::check_case(&module, case).into_iter().map(|found| case_finding(case, found)));
        diagnostics.extend(golden::unknown_paths(&module, case));
    }
    diagnostics.extend(misnamed_tests(&module));
    diagnostics.extend(level::check(&module, &sources, level));
    Report { origin: origin.clone(), cases: discovery.cases.len(), module: Some(module), diagnostics }
}

impl Report {
    /// Returns whether there are no errors; there may be warnings.
    pub fn is_valid(&self) -> bool {
        self.count(Severity::Error) == 0
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
fn case_finding(case: &golden::GoldenCase, (rule, found): (Rule, golden::Mismatch)) -> Diagnostic {
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

#[cfg(test)]
mod tests;
