//! Finds the modules that a composition calls.

use std::sync::Arc;

use cog_module::{Finder, Module, load};
use cog_run::composition::Modules;
use cog_spec::{Code, ErrorBody, ErrorCode};
use thiserror::Error;

/// Finds modules by name. Paths are refused: a module calls others by name only.
pub trait Lookup {
    /// Loads a module by name.
    ///
    /// # Errors
    /// [`LookupError`] if no module has the name, or it does not load.
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError>;

    /// Returns the names of all modules, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// Why a module cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    /// No module has this name (E4006).
    #[error("no module has this name")]
    NotFound,
    /// It exists, but does not load (E4008); the message says why.
    #[error("{0}")]
    Invalid(String),
}

impl Lookup for Finder {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        let origin = self.find_name(name).map_err(|_| LookupError::NotFound)?;
        let module = load(&origin).map_err(|error| LookupError::Invalid(error.to_string()))?;
        Ok(Arc::new(Module { trust: self.trust(&origin), ..module }))
    }

    fn names(&self) -> Vec<String> {
        self.origins().into_iter().map(|(name, _)| name).collect()
    }
}

/// The modules of a runtime, from its cache.
impl Lookup for Modules {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        self.load_name(name).map_err(|error: ErrorBody| match error.code {
            ErrorCode::Standard(Code::ModuleNotFound | Code::PermissionDenied) => LookupError::NotFound,
            _ => LookupError::Invalid(error.message),
        })
    }

    fn names(&self) -> Vec<String> {
        self.finder().origins().into_iter().map(|(name, _)| name).collect()
    }
}
