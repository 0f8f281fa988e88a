use std::{fmt, sync::Arc};

use cog_schema::Contract;
use cog_spec::{Code, Manifest};

use crate::{Diagnostic, Origin, Prompt};

/// A module, loaded: manifest with defaults resolved, contract compiled, prompt parsed.
///
/// All five formats load into this one type (docs/spec/modules.md).
#[derive(Debug, Clone)]
pub struct Module {
    /// What the module says of itself.
    pub manifest: Arc<Manifest>,
    /// What goes in and comes out.
    pub contract: Arc<Contract>,
    /// What the model is told.
    pub prompt: Prompt,
    /// The whole `schema.json`; of v0 both files under `input` and `output`.
    pub schema: serde_json::Value,
    /// Where it was loaded from.
    pub origin: Origin,
    /// What is odd about it; nothing here keeps it from running.
    pub warnings: Vec<Diagnostic>,
}

/// Why a module does not load (E4008): every finding, warnings included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The findings, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl LoadError {
    /// The code of the envelope.
    pub const fn code(&self) -> Code {
        Code::ModuleInvalid
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errors = self.diagnostics.iter().filter(|found| found.severity == crate::Severity::Error);
        let Some(first) = errors.next() else { return f.write_str("cannot load the module") };
        write!(f, "cannot load the module: {}", first.message)?;
        match errors.count() {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for LoadError {}
