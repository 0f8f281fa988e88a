//! The environment variables of the process.

use std::{collections::HashMap, ffi::OsString, path::PathBuf};

use super::Redactor;

/// The environment variables of the process, read once. A blank variable counts as unset.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: HashMap<OsString, OsString>,
    redactor: Redactor,
}

impl Environment {
    /// Reads the variables of the process.
    #[expect(clippy::disallowed_methods, reason = "this is the only place where variables are read")]
    pub fn from_process() -> Self {
        Self { variables: std::env::vars_os().collect(), redactor: Redactor::default() }
    }

    /// Returns the keys that stderr masks: those of the settings that are read from this environment.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns a variable as text, unless it is blank. Invalid UTF-8 is replaced, so that the value is rejected and not
    /// taken as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsString::from(name).as_os_str())?.to_string_lossy();
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns a variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// Returns a variable as a list of paths, separated as in `PATH`.
    pub fn paths(&self, name: &str) -> Option<Vec<PathBuf>> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        let paths: Vec<_> =
            std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
        (!paths.is_empty()).then_some(paths)
    }
}

#[cfg(test)]
impl Environment {
    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, redactor: Redactor::default() }
    }
}
