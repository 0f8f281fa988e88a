//! Finds and checks all modules of a composition, before anything runs.

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
    findings.extend(check_calls(&plans));
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

// Checks the graph of calls: no path leads back, and none is too long. The search takes linear time, without recursion.

/// The maximum number of modules of a path that a message lists.
const MAX_SHOWN: usize = 40;

/// Returns the cycles, and the paths that are longer than a `max_depth`.
fn check_calls(plans: &[LoadedPlan]) -> Vec<Finding> {
    let mut successors: Vec<Vec<usize>> = Vec::new();
    for loaded in plans {
        let called = loaded.plan.parts.iter().filter_map(|part| part.plan);
        successors.push(called.map(|id| id.index()).collect());
    }
    let graph = Graph::new(&successors);
    let search = graph.search();
    let mut findings: Vec<Finding> =
        search.cycles.iter().filter_map(|cycle| cycle_finding(plans, cycle)).collect();
    for (index, loaded) in plans.iter().enumerate() {
        let max = usize::try_from(loaded.plan.max_depth).unwrap_or(usize::MAX);
        if search.heights.get(index).is_some_and(|height| *height > max) {
            let path = graph.deepest_path(index, &search.heights);
            findings.extend(depth_finding(plans, &path, max));
            // The callers of this module are at least as deep; one finding is enough.
            break;
        }
    }
    findings
}

fn cycle_finding(plans: &[LoadedPlan], cycle: &[usize]) -> Option<Finding> {
    let last = plans.get(*cycle.last()?)?;
    let first = *cycle.first()?;
    let location = location_of(last, first)?;
    let path: Vec<usize> = cycle.iter().chain([&first]).copied().collect();
    let message = format!("modules call each other in a cycle: {}", names(plans, &path));
    let finding = Finding::error(Rule::CompositionCycle, location, message).code(Code::CircularDependency);
    let help = "Remove one of these calls, or move the common part into a module that calls no other.";
    Some(finding.suggest(help).about(&last.plan.module))
}

fn depth_finding(plans: &[LoadedPlan], path: &[usize], max: usize) -> Option<Finding> {
    let from = plans.get(*path.first()?)?;
    let next = *path.get(1)?;
    let location = location_of(from, next)?;
    let names = names(plans, path);
    let message =
        format!("{} modules call each other in a row, but `max_depth` is {max}: {names}", path.len());
    let finding = Finding::error(Rule::CompositionDepth, location, message).code(Code::MaxDepthExceeded);
    let help = "Flatten the composition, or raise `composition.max_depth` (at most 32).";
    Some(finding.suggest(help).about(&from.plan.module))
}

/// Returns where a module names another one.
fn location_of(caller: &LoadedPlan, called: usize) -> Option<crate::finding::FindingLocation> {
    let mut parts = caller.plan.parts.iter();
    let part = parts.position(|part| part.plan.is_some_and(|id| id.index() == called))?;
    caller.locations.get(part).cloned()
}

fn names(plans: &[LoadedPlan], path: &[usize]) -> String {
    let shown = path.iter().take(MAX_SHOWN).filter_map(|index| plans.get(*index));
    let shown: Vec<&str> = shown.map(|loaded| loaded.plan.module.manifest.name.as_str()).collect();
    let more = path.len().saturating_sub(MAX_SHOWN);
    let rest = if more > 0 { format!(" → … ({more} more)") } else { String::new() };
    shown.join(" → ") + &rest
}

/// A graph: the successors of each node, by index.
struct Graph<'a> {
    successors: &'a [Vec<usize>],
}

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Search {
    /// The cycles: one for each edge that leads back. The nodes of a cycle, the first one once.
    cycles: Vec<Vec<usize>>,
    /// The maximum number of nodes on a path from each node, without the edges that lead back.
    heights: Vec<usize>,
}

/// The state of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path from the start, at this position.
    Open(usize),
    Done,
}

/// The maximum number of cycles that are reported.
const MAX_CYCLES: usize = 20;

impl<'a> Graph<'a> {
    const fn new(successors: &'a [Vec<usize>]) -> Self {
        Self { successors }
    }

    /// Searches from the first node. Nodes that it does not reach have the height 0.
    fn search(&self) -> Search {
        let mut search = Search { cycles: Vec::new(), heights: vec![0; self.successors.len()] };
        let mut states = vec![State::New; self.successors.len()];
        // The path from the start: each node, and the index of its next successor. It takes the place of a recursion, which a long
        // chain of modules would let overflow the stack.
        let mut path: Vec<(usize, usize)> = Vec::new();
        self.enter(0, &mut path, &mut states);
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            let index = *next;
            *next += 1;
            match self.successor(node, index) {
                Some(successor) => match states.get(successor) {
                    Some(State::New) => self.enter(successor, &mut path, &mut states),
                    Some(State::Open(start)) => search.add_cycle(path.get(*start..).unwrap_or_default()),
                    Some(State::Done) | None => {}
                },
                None => {
                    path.pop();
                    set(&mut states, node, State::Done);
                    let below = self.height_below(node, &states, &search.heights);
                    set(&mut search.heights, node, below + 1);
                }
            }
        }
        search
    }

    /// Returns the longest path from a node, by the heights of a search.
    fn deepest_path(&self, from: usize, heights: &[usize]) -> Vec<usize> {
        std::iter::successors(Some(from), |node| {
            // Each node of a deepest path is one lower than the node before it; the last has the height 1.
            let height = heights.get(*node)?.checked_sub(1)?;
            let mut below = self.successors.get(*node)?.iter().copied();
            below.find(|below| heights.get(*below) == Some(&height))
        })
        .collect()
    }

    fn enter(&self, node: usize, path: &mut Vec<(usize, usize)>, states: &mut [State]) {
        if node < self.successors.len() {
            set(states, node, State::Open(path.len()));
            path.push((node, 0));
        }
    }

    fn successor(&self, node: usize, index: usize) -> Option<usize> {
        self.successors.get(node)?.get(index).copied()
    }

    /// Returns the greatest height of the successors that are done; the others lead back.
    fn height_below(&self, node: usize, states: &[State], heights: &[usize]) -> usize {
        let successors = self.successors.get(node).into_iter().flatten();
        let done = successors.filter(|successor| states.get(**successor) == Some(&State::Done));
        done.filter_map(|successor| heights.get(*successor)).max().copied().unwrap_or_default()
    }
}

impl Search {
    fn add_cycle(&mut self, path: &[(usize, usize)]) {
        if self.cycles.len() < MAX_CYCLES {
            self.cycles.push(path.iter().map(|(node, _)| *node).collect());
        }
    }
}

fn set<T>(list: &mut [T], index: usize, value: T) {
    if let Some(slot) = list.get_mut(index) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests;
