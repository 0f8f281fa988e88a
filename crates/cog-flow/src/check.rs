//! Finds and checks all modules of a composition, before anything runs.

mod graph;

use std::{collections::HashMap, sync::Arc};

use cog_module::{Module, Rule, Severity};
use cog_schema::nearest;
use cog_spec::Code;
use semver::Version;

use crate::{
    Finding, Flow, Lookup, LookupError, Part, Plan, PlanId,
    finding::{FindingLocation, Findings},
    plan::{self, PartDraft},
    typing,
};

/// The result of a check.
#[derive(Debug)]
pub struct CheckResult {
    /// Everything that was found: errors first, in the order of the modules.
    pub findings: Vec<Finding>,
    flow: Flow,
}

/// Checks a module and all modules that it calls: that they exist and have allowed versions, that no module calls itself, that
/// calls are not nested too deeply, that mappings and conditions fit the schemas, and that every step can run.
///
/// The time is linear in the number of modules and steps. No model is called.
pub fn check(module: Arc<Module>, modules: &dyn Lookup) -> CheckResult {
    let mut loader = Loader::new(module, modules);
    loader.load_all();
    let (plans, mut findings) = loader.finish();
    findings.extend(graph::check(&plans));
    let flow = Flow::new(plans.into_iter().map(|loaded| loaded.plan).collect());
    findings.extend(typing::check(&flow));
    findings.sort_by_key(|finding| finding.severity);
    CheckResult { findings, flow }
}

impl CheckResult {
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

// Loads all modules that a module calls, each once.

/// The maximum number of modules of a composition.
const MAX_MODULES: usize = 10_000;

/// A plan, and where it names its parts.
struct LoadedPlan {
    plan: Plan,
    /// The location of each part.
    locations: Vec<FindingLocation>,
}

/// Loads modules.
struct Loader<'a> {
    modules: &'a dyn Lookup,
    plans: Vec<LoadedPlan>,
    drafts: Vec<Vec<PartDraft>>,
    /// What was found under each name.
    found: HashMap<String, Result<PlanId, LookupError>>,
    findings: Vec<Finding>,
    /// The findings about the parts of the module whose parts are loaded.
    about_parts: Findings,
    /// The names of all modules, when a name was not found.
    names: Option<Vec<String>>,
}

impl<'a> Loader<'a> {
    fn new(root: Arc<Module>, modules: &'a dyn Lookup) -> Self {
        let mut loader = Self {
            modules,
            plans: Vec::new(),
            drafts: Vec::new(),
            found: HashMap::new(),
            findings: Vec::new(),
            about_parts: Findings::default(),
            names: None,
        };
        loader.add(root);
        loader
    }

    /// Loads the parts of each module, including those that were loaded in the meantime.
    fn load_all(&mut self) {
        let mut index = 0;
        while index < self.plans.len() {
            // Taken out, because loading the parts adds further drafts to the list.
            let drafts = self.drafts.get_mut(index).map(std::mem::take).unwrap_or_default();
            let before_parts = self.findings.len();
            let parts = drafts.iter().map(|draft| self.part(draft)).collect();
            let findings = std::mem::take(&mut self.about_parts);
            if let Some(loaded) = self.plans.get_mut(index) {
                // In the order of the modules: the parts added their own findings in the meantime.
                self.findings.splice(before_parts..before_parts, findings.about(&loaded.plan.module));
                loaded.plan.parts = parts;
                loaded.locations = drafts.into_iter().map(|draft| draft.location).collect();
            }
            index += 1;
        }
    }

    fn finish(self) -> (Vec<LoadedPlan>, Vec<Finding>) {
        (self.plans, self.findings)
    }

    fn add(&mut self, module: Arc<Module>) -> PlanId {
        let compiled = plan::compile(&module);
        let id = PlanId(u32::try_from(self.plans.len()).unwrap_or(u32::MAX));
        self.plans.push(LoadedPlan { plan: compiled.plan, locations: Vec::new() });
        self.drafts.push(compiled.parts);
        self.findings.extend(compiled.findings.about(&module));
        id
    }

    /// Returns a part with its plan, or without one if it is missing.
    fn part(&mut self, draft: &PartDraft) -> Part {
        let plan = match self.find(&draft.module) {
            Ok(id) => {
                self.check_invocable(draft, id);
                self.check_version(draft, id).then_some(id)
            }
            Err(error) => {
                self.report_missing(draft, &error);
                None
            }
        };
        Part {
            name: draft.name.clone(),
            module: draft.module.clone(),
            plan,
            optional: draft.rule.optional,
            fallback: draft.rule.fallback,
            timeout: draft.rule.timeout,
        }
    }

    /// Returns the plan of a module that another one calls.
    fn find(&mut self, name: &str) -> Result<PlanId, LookupError> {
        if let Some(found) = self.found.get(name) {
            return found.clone();
        }
        let found = self.modules.find(name).and_then(|module| self.identify(module));
        self.found.insert(name.to_owned(), found.clone());
        found
    }

    /// Returns the plan of a loaded module: the root's plan if it is the same module, otherwise a new one.
    fn identify(&mut self, module: Arc<Module>) -> Result<PlanId, LookupError> {
        // The root may be loaded by its path, and a part names it: it is one module, and its call a cycle.
        if self.plans.first().is_some_and(|root| root.plan.module.origin == module.origin) {
            return Ok(PlanId(0));
        }
        if self.plans.len() >= MAX_MODULES {
            let message = format!("the composition has more than {MAX_MODULES} modules");
            return Err(LookupError::Invalid(message));
        }
        Ok(self.add(module))
    }

    fn check_version(&mut self, draft: &PartDraft, id: PlanId) -> bool {
        let Some((written, range)) = &draft.rule.version else { return true };
        let Some(found) = self.plans.get(id.index()) else { return true };
        let version = found.plan.module.manifest.version.clone();
        let matches = Version::parse(&version).is_ok_and(|version| range.matches(&version));
        if !matches {
            let message =
                format!("`{}` has version {version}, but the composition requires `{written}`", draft.module);
            let help = format!("Install a matching version, or change `version` to `{version}`.");
            self.report_unusable(draft, message, help, Code::ModuleNotFound);
        }
        matches
    }

    /// Reports a module that other modules may not call: they call it as an agent.
    fn check_invocable(&mut self, draft: &PartDraft, id: PlanId) {
        let manifest = self.plans.get(id.index()).map(|found| &found.plan.module.manifest);
        if manifest.is_some_and(|manifest| !manifest.invocation.agent_invocable) {
            let name = &draft.module;
            let message =
                format!("`{name}` cannot be a part: its manifest has `invocation.agent_invocable: false`");
            let help = format!("Call another module, or allow agents to call `{name}` in its manifest.");
            self.report_unusable(draft, message, help, Code::PermissionDenied);
        }
    }

    fn report_missing(&mut self, draft: &PartDraft, error: &LookupError) {
        if self.about_parts.is_full(severity(draft)) {
            return; // the search for a similar name takes time
        }
        let name = &draft.module;
        let (message, help, code) = match error {
            LookupError::NotFound => {
                (format!("module `{name}` not found"), self.similar(name), Code::ModuleNotFound)
            }
            LookupError::Invalid(reason) => {
                let help = format!("Run `cog validate {name}` to see all errors.");
                (format!("module `{name}` cannot be used: {reason}"), help, Code::ModuleInvalid)
            }
        };
        self.report_unusable(draft, message, help, code);
    }

    /// Reports a part without a module: a warning if the composition can do without it.
    fn report_unusable(&mut self, draft: &PartDraft, message: String, help: String, code: Code) {
        let finding =
            Finding::error(Rule::CompositionModule, draft.location.clone(), message).suggest(help).code(code);
        self.about_parts.push(Finding { severity: severity(draft), ..finding });
    }

    fn similar(&mut self, name: &str) -> String {
        let names = self.names.get_or_insert_with(|| self.modules.names());
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "Run `cog list` to see all modules.".to_owned(),
        }
    }
}

/// Returns the severity of a part without a module.
const fn severity(draft: &PartDraft) -> Severity {
    if draft.rule.fallback.is_some() || draft.rule.optional { Severity::Warning } else { Severity::Error }
}

#[cfg(test)]
mod tests;
