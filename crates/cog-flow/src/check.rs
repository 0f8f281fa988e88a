//! Finds and checks all modules of a composition, before anything runs.

mod load;
mod paths;

use std::sync::Arc;

use cog_module::{Module, Severity};

use self::load::Loader;
use crate::{Finding, Flow, Lookup, typing};

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// Everything that was found: errors first, in the order of the modules.
    pub findings: Vec<Finding>,
    flow: Flow,
}

/// Checks a module and all modules that it calls: that they exist and have allowed versions, that no module calls itself, that
/// calls are not nested too deeply, that mappings and conditions fit the schemas, and that every step can run.
///
/// The time is linear in the number of modules and steps. No model is called.
pub fn check(module: Arc<Module>, modules: &dyn Lookup) -> Checked {
    let mut loader = Loader::new(module, modules);
    loader.load_all();
    let (plans, mut findings) = loader.finish();
    findings.extend(paths::check(&plans));
    let flow = Flow::new(plans.into_iter().map(|loaded| loaded.plan).collect());
    findings.extend(typing::check(&flow));
    findings.sort_by_key(|finding| finding.severity);
    Checked { findings, flow }
}

impl Checked {
    /// Returns the composition, if it has no errors; otherwise the errors.
    ///
    /// # Errors
    /// The findings that prevent a run, at least one.
    pub fn into_flow(self) -> Result<Flow, Vec<Finding>> {
        let errors: Vec<Finding> =
            self.findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
        if errors.is_empty() { Ok(self.flow) } else { Err(errors) }
    }

    /// Returns the composition as far as it could be read, for a drawing.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }
}

#[cfg(test)]
mod tests;
