//! The plan of one module: its steps, routes and calls, compiled.

mod calls;
mod names;
mod parts;
mod steps;
mod usage;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use cog_module::{Module, Rule};
use cog_rules::ValuePath;
use cog_spec::{Code, Composition, Pattern, Tier};

pub(crate) use self::parts::PartDraft;
use self::{
    calls::{KnownCalls, written},
    names::{Names, only_named},
    parts::Parts,
};
use crate::{
    Answer, Callee, Condition, PlanId, Selection, Step,
    finding::{Finding, FindingLocation, Findings},
};

/// Returns the names of the modules that the composition and the prompt of a module run, with their fallbacks. They need not
/// exist.
pub fn called_modules(module: &Arc<Module>) -> Vec<String> {
    let parts = compile(module).parts.into_iter().filter(|part| part.is_used);
    parts.map(|part| part.module).collect()
}

/// The plan of a module: what it calls, in which order, with which values.
#[derive(Debug)]
pub struct Plan {
    /// The module, as it was loaded for the check.
    pub module: Arc<Module>,
    /// The order of the steps.
    pub pattern: Pattern,
    /// The maximum number of modules on a path of calls, this one included.
    pub max_depth: u32,
    /// The maximum duration of the complete composition.
    pub timeout: Duration,
    /// The results that it can have, each of a module that it calls; a [`Callee::Part`] is an index of this list.
    pub parts: Vec<Part>,
    /// The calls of the prompt, in its order.
    pub calls: Vec<PromptCall>,
    /// The results that the prompt inserts, in its order: the results of the calls, also where a call is named again.
    pub mentions: Vec<Mention>,
    /// The steps to modules, in the order of the manifest. A step that [`Step::is_routed`] waits for its route.
    pub steps: Vec<Step>,
    /// The rounds of the steps; none if they run once.
    pub iteration: Option<Iteration>,
    /// The rules that decide after the steps.
    pub routes: Vec<Route>,
    /// The steps to `output`; their values are merged, later ones win.
    pub outputs: Vec<Step>,
    /// Where the answer comes from.
    pub answer: Answer,
    /// What runs for each element of a list: its result is a list.
    pub(crate) mapped: HashSet<Callee>,
    /// The index of each part by its name.
    pub(crate) part_names: HashMap<String, usize>,
    /// Whether it has all that the manifest has: no step, rule or condition was invalid.
    pub(crate) is_complete: bool,
}

impl Plan {
    /// Returns whether the module calls others. One that does not is run by the runtime alone.
    pub fn is_composed(&self) -> bool {
        !self.parts.is_empty() || !self.steps.is_empty() || !self.outputs.is_empty()
    }

    /// Returns the callee with a name: a part, or the own prompt.
    pub fn callee_named(&self, name: &str) -> Option<Callee> {
        let part = self.part_names.get(name).copied().map(Callee::Part);
        part.or_else(|| (self.module.manifest.name == name).then_some(Callee::Own))
    }

    /// Returns the step whose values a routed module receives.
    pub fn routed_step(&self, next: Callee) -> Option<&Step> {
        self.steps.iter().find(|step| step.is_routed && step.targets().contains(&next))
    }
}

/// A module that a plan calls, for one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of its result: the name of its module, unless `as` gives it another one.
    pub name: String,
    /// The name of the module that runs.
    pub module: String,
    /// Its plan; none if the module is missing and the part is optional or has a fallback.
    pub plan: Option<PlanId>,
    /// Whether the composition continues without its result.
    pub optional: bool,
    /// The index of the part that runs if this one fails or is missing.
    pub fallback: Option<usize>,
    /// Its maximum duration.
    pub timeout: Option<Duration>,
}

impl Part {
    /// Returns whether `as` gives its result a name of its own.
    pub fn is_named(&self) -> bool {
        self.name != self.module
    }
}

/// A call of a module in the prompt: `@call:NAME(ARGUMENTS)[OPTIONS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCall {
    /// The index of the called part.
    pub part: usize,
    /// The index of the [`cog_module::PromptPart`] that the result replaces.
    pub position: usize,
    /// The bytes of the prompt that are the call.
    pub range: Range<usize>,
    /// The text between the parentheses, parsed: its placeholders are filled first. If the text is a JSON object, it is the
    /// input; other text is the arguments. Without text, it is the input of this module.
    pub arguments: Option<cog_module::Prompt>,
    /// Whether later calls need not wait for this one.
    pub is_async: bool,
    /// Whether the composition continues without its result.
    pub optional: bool,
    /// Its maximum duration.
    pub timeout: Option<Duration>,
    /// The tier whose thresholds its answer must meet; none for its own.
    pub tier: Option<Tier>,
}

/// A call of the prompt, or a later one that means the same result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention {
    /// The index of the [`cog_module::PromptPart`] that the result replaces.
    pub position: usize,
    /// The index of the part whose result it is.
    pub part: usize,
}

/// The rounds of the pattern `iterative`.
#[derive(Debug)]
pub struct Iteration {
    /// The source of the condition; none for the result so far.
    pub from: Option<Selection>,
    /// The condition after which no further round starts; none for all rounds.
    pub until: Option<Condition>,
    /// The maximum number of rounds, at least 1.
    pub max_rounds: u32,
    /// The path of the number that says how good a round is; none if the last round counts.
    pub(crate) best: Option<(ValuePath, String)>,
}

/// A rule of `routing`.
#[derive(Debug)]
pub struct Route {
    /// Its index in `composition.routing`.
    pub index: usize,
    /// The source of the condition; none for the result so far.
    pub from: Option<Selection>,
    /// The condition; none is always true.
    pub condition: Option<Condition>,
    /// What runs next; none makes the result so far the answer.
    pub next: Option<Callee>,
}

// Compiles the manifest and the prompt of one module into a plan.

/// A plan without the plans of its parts.
#[derive(Debug)]
pub(crate) struct PlanDraft {
    pub(crate) plan: Plan,
    /// The parts, in the order of [`Plan::parts`].
    pub(crate) parts: Vec<PartDraft>,
    pub(crate) findings: Findings,
}

/// The state while a module is compiled.
struct Compiler<'m> {
    module: &'m Arc<Module>,
    parts: Parts,
    names: Names,
    calls: Vec<PromptCall>,
    mentions: Vec<Mention>,
    called: KnownCalls,
    steps: Vec<Step>,
    outputs: Vec<Step>,
    routes: Vec<Route>,
    iteration: Option<Iteration>,
    mapped: HashSet<Callee>,
    /// The modules that an invalid step or rule runs. They are not reported as modules that nothing runs.
    dropped: Vec<Callee>,
    findings: Findings,
}

/// Compiles a module. A module that calls no others has an empty plan.
pub(crate) fn compile(module: &Arc<Module>) -> PlanDraft {
    let mut compiler = Compiler {
        module,
        parts: Parts::default(),
        names: Names::default(),
        calls: Vec::new(),
        mentions: Vec::new(),
        called: KnownCalls::default(),
        steps: Vec::new(),
        outputs: Vec::new(),
        routes: Vec::new(),
        iteration: None,
        mapped: HashSet::new(),
        dropped: Vec::new(),
        findings: Findings::default(),
    };
    let default = Composition::default();
    let composition = module.manifest.composition.as_ref().unwrap_or(&default);
    let calls = written(&module.prompt);
    compiler.requires(&composition.requires, &only_named(composition, &calls));
    compiler.names(composition, &calls);
    compiler.calls(&calls);
    compiler.dataflow(composition);
    compiler.routing(&composition.routing);
    compiler.iteration(composition);
    compiler.repeated_runs(composition);
    compiler.mixed_results(composition);
    compiler.mark_targets();
    compiler.references();
    compiler.usage(composition);
    compiler.finish(composition)
}

impl Compiler<'_> {
    fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Returns whether there are enough errors.
    fn is_enough(&self) -> bool {
        self.findings.is_enough()
    }

    /// Returns whether a name can be the name of another module; reports it otherwise.
    fn is_callable(&mut self, name: &str, location: &FindingLocation) -> bool {
        if name == self.module.manifest.name {
            let message = format!("the module calls itself: {name} → {name}");
            let finding = Finding::error(Rule::CompositionCycle, location.clone(), message);
            let help =
                format!("To run its own prompt, add a step with `to: {name}` to `composition.dataflow`.");
            self.report(finding.code(Code::CircularDependency).suggest(help));
            return false;
        }
        if cog_module::is_module_name(name) {
            return true;
        }
        let shown: String = name.chars().take(80).collect();
        let message = match name.trim() {
            "" => "the name of a module is empty".to_owned(),
            _ => format!("`{}` is not a valid module name", shown.escape_debug()),
        };
        let finding = Finding::error(Rule::CompositionModule, location.clone(), message);
        let help = "Use the name of a module, not a path; `cog list` shows all names.";
        self.report(finding.suggest(help));
        false
    }

    /// Returns whether the module's own prompt has text.
    fn has_prompt(&self) -> bool {
        !self.module.prompt.text().trim().is_empty()
    }

    fn finish(self, composition: &Composition) -> PlanDraft {
        let answer = self.answer();
        let plan = Plan {
            module: Arc::clone(self.module),
            pattern: composition.pattern,
            max_depth: composition.max_depth,
            timeout: Duration::from_millis(composition.timeout_ms),
            // Filled when the modules of the drafts are found, which needs a lookup.
            parts: Vec::new(),
            calls: self.calls,
            mentions: self.mentions,
            steps: self.steps,
            iteration: self.iteration,
            routes: self.routes,
            outputs: self.outputs,
            answer,
            mapped: self.mapped,
            part_names: self.parts.by_name,
            is_complete: !self.findings.has_errors(),
        };
        PlanDraft { plan, parts: self.parts.list, findings: self.findings }
    }

    /// Returns where the answer comes from.
    fn answer(&self) -> Answer {
        if !self.outputs.is_empty() {
            Answer::Output
        } else if self.has_prompt() && !self.runs_own_prompt() && self.routes.is_empty() {
            Answer::OwnPrompt
        } else {
            Answer::Result
        }
    }

    /// Returns whether the steps run in rounds.
    fn is_iterative(composition: &Composition) -> bool {
        composition.pattern == Pattern::Iterative
    }
}
