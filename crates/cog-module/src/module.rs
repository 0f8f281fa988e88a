use std::{fmt, path::PathBuf, sync::Arc};

use cog_rules::Checks;
use cog_schema::Contract;
use cog_spec::{Code, Manifest};

use crate::{
    Diagnostic, Origin, Prompt, PromptPart, Severity, Trust,
    forms::{self, BestForm, Forms, KeepFormError},
    layout,
};

/// A loaded module: manifest with defaults resolved, contract compiled, prompt parsed.
///
/// All five formats load into this type (docs/spec/modules.md).
#[derive(Debug, Clone)]
pub struct Module {
    /// The manifest.
    pub manifest: Arc<Manifest>,
    /// The compiled contract.
    pub contract: Arc<Contract>,
    /// The named checks of the manifest, compiled.
    pub checks: Arc<Checks>,
    /// The prompt.
    pub prompt: Prompt,
    /// The complete `schema.json`; for v0, both files under `input` and `output`.
    pub schema: serde_json::Value,
    /// The forms that were measured to be best, from `forms.json`.
    pub forms: Forms,
    /// The SHA-256 of what its answers depend on, for `calibration.json`.
    pub fingerprint: String,
    /// Its origin.
    pub origin: Origin,
    /// Whether it may call tools. [`load`](crate::load) trusts the origin that it is given; what finds an origin by
    /// name asks [`Finder::trust`](crate::Finder::trust).
    pub trust: Trust,
    /// Warnings; it can run nevertheless.
    pub warnings: Vec<Diagnostic>,
}

impl Module {
    /// Returns whether it calls other modules, in its prompt or with `composition` in its manifest.
    pub fn calls_modules(&self) -> bool {
        let mut parts = self.prompt.parts().iter();
        self.manifest.composition.is_some()
            || parts.any(|part| matches!(part, PromptPart::Call(_) | PromptPart::Reference { .. }))
    }

    /// Checks that [`Module::keep_form`] could store a form.
    ///
    /// # Errors
    /// As [`Module::keep_form`].
    pub fn check_forms(&self) -> Result<(), KeepFormError> {
        forms::check(&self.origin)
    }

    /// Stores the best form for a model in `forms.json`, in place of the entry for the same model. Returns the path.
    ///
    /// # Errors
    /// If the module is built in, the file that is there is damaged, or it cannot be written.
    pub fn keep_form(&self, best: BestForm) -> Result<PathBuf, KeepFormError> {
        forms::keep(&self.origin, &self.prompt, &self.schema, best)
    }

    /// Returns the path of its manifest.
    pub(crate) fn manifest_file(&self) -> PathBuf {
        self.origin.path_of(layout::family_of(self.manifest.format).manifest())
    }
}

/// Why a module does not load (E4008): all diagnostics, including warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The diagnostics, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl LoadError {
    /// Returns the code of the envelope.
    pub const fn code(&self) -> Code {
        Code::ModuleInvalid
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errors = self.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let Some(first) = errors.next() else { return f.write_str("cannot load the module") };
        write!(f, "cannot load the module: {}", first.message)?;
        match errors.count() {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for LoadError {}
