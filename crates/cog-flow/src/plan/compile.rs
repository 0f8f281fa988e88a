//! Compiles the manifest and the prompt of one module into a plan.

use std::{sync::Arc, time::Duration};

use cog_module::{Module, Rule};
use cog_spec::{Code, Composition, Pattern};

use super::{
    Mention,
    calls::{Called, written},
    names::{Names, only_named},
    parts::{PartDraft, Parts},
};
use crate::{
    Answer, Callee, Iteration, Plan, PromptCall, Route, Step,
    finding::{Finding, FindingLocation, Findings},
};

/// A plan without the plans of its parts.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) plan: Plan,
    /// The parts, in the order of [`Plan::parts`].
    pub(crate) parts: Vec<PartDraft>,
    pub(crate) findings: Findings,
}

/// The state while a module is compiled.
pub(super) struct Compiler<'m> {
    pub(super) module: &'m Arc<Module>,
    pub(super) parts: Parts,
    pub(super) names: Names,
    pub(super) calls: Vec<PromptCall>,
    pub(super) mentions: Vec<Mention>,
    pub(super) called: Called,
    pub(super) steps: Vec<Step>,
    pub(super) outputs: Vec<Step>,
    pub(super) routes: Vec<Route>,
    pub(super) iteration: Option<Iteration>,
    /// The modules that an invalid step or rule runs. They are not reported as modules that nothing runs.
    pub(super) dropped: Vec<Callee>,
    findings: Findings,
}

/// Compiles a module. A module that calls no others has an empty plan.
pub(crate) fn compile(module: &Arc<Module>) -> Compiled {
    let mut compiler = Compiler {
        module,
        parts: Parts::default(),
        names: Names::default(),
        calls: Vec::new(),
        mentions: Vec::new(),
        called: Called::default(),
        steps: Vec::new(),
        outputs: Vec::new(),
        routes: Vec::new(),
        iteration: None,
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
    compiler.mark_targets();
    compiler.references();
    compiler.usage(composition);
    compiler.finish(composition)
}

impl Compiler<'_> {
    pub(super) fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Returns whether there are enough errors.
    pub(super) fn is_enough(&self) -> bool {
        self.findings.is_enough()
    }

    /// Returns whether a name can be that of another module; reports it otherwise.
    pub(super) fn is_callable(&mut self, name: &str, location: &FindingLocation) -> bool {
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
        self.report(finding.suggest(help.to_owned()));
        false
    }

    /// Returns whether the module's own prompt has a text.
    pub(super) fn has_prompt(&self) -> bool {
        !self.module.prompt.text().trim().is_empty()
    }

    fn finish(self, composition: &Composition) -> Compiled {
        let answer = self.answer();
        let plan = Plan {
            module: Arc::clone(self.module),
            pattern: composition.pattern,
            max_depth: composition.max_depth,
            timeout: Duration::from_millis(composition.timeout_ms),
            parts: Vec::new(),
            calls: self.calls,
            mentions: self.mentions,
            steps: self.steps,
            iteration: self.iteration,
            routes: self.routes,
            outputs: self.outputs,
            answer,
            part_names: self.parts.by_name,
            is_complete: !self.findings.has_errors(),
        };
        Compiled { plan, parts: self.parts.list, findings: self.findings }
    }

    /// Returns where the answer comes from.
    pub(super) fn answer(&self) -> Answer {
        if !self.outputs.is_empty() {
            Answer::Output
        } else if self.has_prompt() && !self.runs_own_prompt() && self.routes.is_empty() {
            Answer::OwnPrompt
        } else {
            Answer::Result
        }
    }

    /// Returns whether the steps run in rounds.
    pub(super) fn is_iterative(composition: &Composition) -> bool {
        composition.pattern == Pattern::Iterative
    }
}
