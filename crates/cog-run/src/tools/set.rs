//! The tools of one run.

use std::sync::Arc;

use cog_harmony::ToolChoice;
use cog_module::Module;
use cog_provider::ToolRequest;
use cog_spec::{Dialect, Warning, WarningCode};

use super::{
    ToolSources, access,
    module_tool::{CallingRun, ModuleTool},
};
use crate::{RunContext, RunOptions, tool::Tool};

/// The tools of one run: those that the module may call, and those that it may not.
pub(crate) struct ToolSet {
    tools: Vec<Entry>,
    /// Whether calls may run at the same time.
    is_parallel: bool,
}

/// A tool, and why the module may not call it.
pub(super) struct Entry {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) refusal: Option<String>,
    /// The operator requires a confirmation for each call.
    needs_confirmation: bool,
}

impl Entry {
    /// Whether a call needs a confirmation, in a run of high risk also one that only changes something.
    pub(super) fn needs_confirmation(&self, is_high_risk: bool) -> bool {
        let info = self.tool.info();
        let is_risky = is_high_risk && info.effects.changes_something();
        info.needs_confirmation || self.needs_confirmation || is_risky
    }
}

impl ToolSet {
    /// Selects the tools of a run: the registered ones, and the modules that `tools.allowed` names. None if the module may
    /// call no tool. A tool that the manifest allows and that does not exist is a warning.
    pub(super) fn new(module: &Module, sources: &ToolSources<'_>) -> (Option<Arc<Self>>, Vec<Warning>) {
        if !module.manifest.policies.tools_allowed {
            return (None, Vec::new());
        }
        // Every tool of a run comes from here, whoever added it, so that no front end can forget to ask.
        if !module.trust.allows_tools() {
            let warning = module.trust.warning(&module.manifest);
            let warning = warning.map(|message| Warning::new(WarningCode::ToolUnavailable, message));
            return (None, Vec::from_iter(warning));
        }
        let ToolSources { settings, modules, options, context, .. } = sources;
        let mut tools = options.tools.with(&settings.registered);
        let mut caller: Option<Arc<CallingRun>> = None;
        let mut warnings = Vec::new();
        for name in &module.manifest.tools.allowed {
            if tools.iter().all(|tool| tool.info().name != *name) {
                match modules.load(name) {
                    Ok(found) if !found.manifest.invocation.agent_invocable => {
                        warnings
                            .push(unavailable(name, "`invocation.agent_invocable: false` in its manifest"));
                    }
                    Ok(found) => {
                        let caller = caller.get_or_insert_with(|| calling_run(module, options, context));
                        tools.push(Arc::new(ModuleTool::new(modules, found, Arc::clone(caller))));
                    }
                    Err(error) => warnings.push(unavailable(name, &error.message)),
                }
            }
        }
        let tools = tools.into_iter().map(|tool| Entry {
            refusal: access::refusal(&module.manifest, tool.info()),
            needs_confirmation: settings.confirm.contains(&tool.info().name),
            tool,
        });
        let tools: Vec<Entry> = tools.collect();
        let has_any = tools.iter().any(|entry| entry.refusal.is_none());
        let is_parallel = settings.limits.max_parallel > 1;
        (has_any.then(|| Arc::new(Self { tools, is_parallel })), warnings)
    }

    /// Returns the part of a request about the tools that the module may call.
    pub(crate) fn request(&self, dialect: Dialect, choice: ToolChoice) -> Arc<ToolRequest> {
        let allowed = self.tools.iter().filter(|entry| entry.refusal.is_none());
        let definitions = allowed.map(|entry| entry.tool.info().definition(dialect)).collect();
        Arc::new(ToolRequest { definitions, choice, parallel: self.is_parallel })
    }

    /// Returns a tool by its name.
    pub(super) fn find(&self, name: &str) -> Option<&Entry> {
        self.tools.iter().find(|entry| entry.tool.info().name == name)
    }

    /// Returns the names of the tools that the module may call.
    pub(super) fn names(&self) -> Vec<&str> {
        let allowed = self.tools.iter().filter(|entry| entry.refusal.is_none());
        allowed.map(|entry| entry.tool.info().name.as_str()).collect()
    }
}

fn calling_run(module: &Module, options: &RunOptions, context: &RunContext) -> Arc<CallingRun> {
    let callers = context.callers.iter().chain([&module.manifest.name]).cloned().collect();
    Arc::new(CallingRun { options: options.clone(), callers })
}

fn unavailable(name: &str, reason: &str) -> Warning {
    let message = format!("`tools.allowed` names `{name}`, which cannot be called: {reason}");
    Warning::new(WarningCode::ToolUnavailable, message)
}
