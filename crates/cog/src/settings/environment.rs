//! The variables of the process.

use std::{collections::HashMap, ffi::OsString, path::PathBuf};

use super::Veil;

/// The variables of the process, read once. A blank variable counts as one that is not set.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    variables: HashMap<OsString, OsString>,
    veil: Veil,
}

impl Environment {
    /// What the process was started with.
    #[expect(clippy::disallowed_methods, reason = "this is the edge: the one place where variables are read")]
    pub(crate) fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect(), veil: Veil::default() }
    }

    /// Returns the keys that stderr masks: those of the settings that are read from this environment.
    pub(crate) fn veil(&self) -> &Veil {
        &self.veil
    }

    /// A variable as text; none where it is blank. What is no UTF-8 in it is replaced, so that it is
    /// refused as the value it is rather than taken for absent.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsString::from(name).as_os_str())?.to_string_lossy();
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// A variable as one path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// A variable as a list of paths, separated as in `PATH`.
    pub(crate) fn paths(&self, name: &str) -> Option<Vec<PathBuf>> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        let paths: Vec<_> =
            std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
        (!paths.is_empty()).then_some(paths)
    }
}

#[cfg(test)]
impl Environment {
    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, veil: Veil::default() }
    }
}
