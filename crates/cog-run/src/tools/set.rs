//! The tools of one run.

use std::{pin::Pin, sync::Arc};

use cog_harmony::ToolChoice;
use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_provider::{ToolRequest, vendors::RequestLimits};
use cog_schema::MemberCount;
use cog_spec::{Code, Dialect, Envelope, ErrorBody, Manifest, Outcome, Risk, Warning, WarningCode};

use super::ToolSources;
use crate::{
    Caller, RunContext, RunOptions,
    tool::{
        Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, ToolSource, begins_like, matches,
    },
};

/// The tools of one run: those that the module may call, and those that it may not.
pub(crate) struct ToolSet {
    tools: Vec<Entry>,
    /// Where tools may appear and disappear during the run.
    sources: Vec<Arc<dyn ToolSource>>,
    module: Arc<Module>,
    /// The tools whose calls a person must confirm: names, or patterns.
    confirm: Vec<String>,
    /// Whether calls may run at the same time.
    is_parallel: bool,
}

/// A tool, and why the module may not call it.
pub(super) struct Entry {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) refusal: Option<String>,
    /// The operator requires a confirmation for each call.
    needs_confirmation: bool,
    /// Whether it is of a source.
    is_listed: bool,
}

impl Entry {
    /// Whether a call needs a confirmation, in a run of high risk also one that only changes something.
    pub(super) fn needs_confirmation(&self, is_high_risk: bool) -> bool {
        let info = self.tool.info();
        let is_risky = is_high_risk && info.effects.changes_something();
        info.needs_confirmation || self.needs_confirmation || is_risky
    }

    /// Whether a call runs alone, after the calls before it and before those after it.
    pub(super) fn is_sequential(&self) -> bool {
        let info = self.tool.info();
        info.is_sequential || info.effects.changes_something()
    }
}

impl ToolSet {
    /// Selects the tools of a run: the registered ones, and the modules that `tools.allowed` names. None if the module may
    /// call no tool. A tool that the manifest allows and that does not exist is a warning.
    pub(super) fn new(module: &Arc<Module>, sources: &ToolSources<'_>) -> (Option<Arc<Self>>, Vec<Warning>) {
        if !module.manifest.policies.tools_allowed {
            return (None, Vec::new());
        }
        // Every tool of a run comes from here, whoever added it, so that no front end can forget to ask.
        if !module.trust.allows_tools() {
            let warning = module.trust.warning(&module.manifest).map(|message| {
                // It contains the directory of the module, which only the operator may know.
                let message = match sources.options.client.request_id {
                    Some(_) => format!("`{}` gets no tools on this server", module.manifest.name),
                    None => message,
                };
                Warning::new(WarningCode::ToolUnavailable, message)
            });
            return (None, Vec::from_iter(warning));
        }
        let ToolSources { settings, modules, options, context, .. } = sources;
        let mut set = Self {
            tools: Vec::new(),
            sources: settings.sources.clone(),
            module: Arc::clone(module),
            confirm: settings.confirm.clone(),
            is_parallel: settings.limits.max_parallel > 1,
        };
        settings.registered.with(&options.tools).into_iter().for_each(|tool| set.add(tool, false));
        let mut warnings = set.list(options.client.request_id.is_some());
        if options.client.request_id.is_none() {
            warnings.extend(set.unmatched_confirmations());
        }
        let mut caller: Option<Arc<CallingRun>> = None;
        for name in &module.manifest.tools.allowed {
            if name.contains('*') {
                let is_matched = set.tools.iter().any(|entry| matches(name, &entry.tool.info().name));
                warnings.extend((!is_matched).then(|| unavailable(name, "it matches no tool")));
            } else if set.find(name).is_none() && !set.is_of_source_without_tools(name) {
                match modules.load(name) {
                    Ok(found) if !found.manifest.invocation.agent_invocable => {
                        warnings
                            .push(unavailable(name, "`invocation.agent_invocable: false` in its manifest"));
                    }
                    Ok(found) => {
                        let caller = caller.get_or_insert_with(|| calling_run(module, options, context));
                        set.add(Arc::new(ModuleTool::new(modules, found, Arc::clone(caller))), false);
                    }
                    Err(error) => warnings.push(unavailable(name, &options.client.shown(error).message)),
                }
            }
        }
        warnings.extend(set.withheld());
        let has_any = set.tools.iter().any(|entry| entry.refusal.is_none());
        (has_any.then(|| Arc::new(set)), warnings)
    }

    /// Returns a warning for each tool that `tools.allowed` names and that a policy denies: the author wants both.
    fn withheld(&self) -> Vec<Warning> {
        let allowed = &self.module.manifest.tools.allowed;
        let named = self.tools.iter().filter(|entry| allowed.contains(&entry.tool.info().name));
        let denied = named.filter_map(|entry| Some((entry, entry.refusal.as_ref()?)));
        denied.map(|(entry, reason)| unavailable(&entry.tool.info().name, reason)).collect()
    }

    fn add(&mut self, tool: Arc<dyn Tool>, is_listed: bool) {
        self.tools.push(Entry {
            refusal: refusal(&self.module.manifest, tool.info()),
            needs_confirmation: self.confirm.iter().any(|pattern| matches(pattern, &tool.info().name)),
            is_listed,
            tool,
        });
    }

    /// Adds the tools of the sources. Returns a warning for each source and each tool that the module cannot call. Why a source has no
    /// tools is only for the operator.
    fn list(&mut self, is_for_client: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for source in self.sources.clone() {
            match source.tools() {
                Ok(tools) => {
                    for tool in tools {
                        let name = &tool.info().name;
                        if self.find(name).is_some() {
                            let message =
                                format!("there is more than one tool `{name}`: only the first can be called");
                            warnings.push(Warning::new(WarningCode::ToolUnavailable, message));
                        } else {
                            self.add(tool, true);
                        }
                    }
                }
                Err(reason) if self.may_call(source.prefix()) => {
                    tracing::warn!(tools = source.prefix(), reason, "no tool can be called");
                    let message = match is_for_client {
                        true => format!("no tool `{}*` can be called now", source.prefix()),
                        false => format!("no tool `{}*` can be called: {reason}", source.prefix()),
                    };
                    warnings.push(Warning::new(WarningCode::ToolUnavailable, message));
                }
                Err(_) => {}
            }
        }
        warnings
    }

    /// Returns the tools as the sources list them now; none if they have not changed.
    pub(super) fn listed_again(&self) -> Option<Arc<Self>> {
        let now: Vec<_> = self.sources.iter().filter_map(|source| source.tools().ok()).flatten().collect();
        let mut listed = self.tools.iter().filter(|entry| entry.is_listed);
        let has_all = listed.all(|entry| now.iter().any(|tool| Arc::ptr_eq(&entry.tool, tool)));
        if has_all && now.iter().all(|tool| self.find(&tool.info().name).is_some()) {
            return None;
        }
        let mut set = Self {
            tools: Vec::new(),
            sources: self.sources.clone(),
            module: Arc::clone(&self.module),
            confirm: self.confirm.clone(),
            is_parallel: self.is_parallel,
        };
        let own = self.tools.iter().filter(|entry| !entry.is_listed);
        own.for_each(|entry| set.add(Arc::clone(&entry.tool), false));
        set.list(true);
        Some(Arc::new(set))
    }

    /// Returns whether the manifest allows a tool whose name begins like this.
    fn may_call(&self, prefix: &str) -> bool {
        let rules = &self.module.manifest.tools;
        rules.allow_by_default || rules.allowed.iter().any(|name| begins_like(name, prefix))
    }

    /// Returns whether a name is of a source whose tools are unavailable, for which there is a warning already.
    fn is_of_source_without_tools(&self, name: &str) -> bool {
        self.sources.iter().any(|source| name.starts_with(source.prefix()) && source.tools().is_err())
    }

    /// Returns a warning for each name in `tools.confirm` of a source that lists no such tool: the call that it should
    /// protect may have another name.
    fn unmatched_confirmations(&self) -> Vec<Warning> {
        let is_known =
            |pattern: &str| self.tools.iter().any(|entry| matches(pattern, &entry.tool.info().name));
        let listed = self.sources.iter().filter(|source| source.tools().is_ok());
        let prefixes: Vec<&str> = listed.map(|source| source.prefix()).collect();
        let unmatched = self.confirm.iter().filter(|pattern| {
            prefixes.iter().any(|prefix| pattern.starts_with(prefix)) && !is_known(pattern)
        });
        let warning = |pattern: &String| {
            let message = format!(
                "`tools.confirm` names `{pattern}`, which matches no tool: nothing is confirmed for it"
            );
            Warning::new(WarningCode::ToolUnavailable, message)
        };
        unmatched.map(warning).collect()
    }

    /// Returns the part of a request about the tools that the module may call. The first ones are strict, as many as the vendor
    /// accepts.
    pub(crate) fn request(&self, vendor: &VendorTools, choice: ToolChoice) -> Arc<ToolRequest> {
        let RequestLimits { mut strict, mut optional, mut unions, .. } = vendor.limits;
        optional = optional.saturating_sub(vendor.answer.optional);
        unions = unions.saturating_sub(vendor.answer.unions);
        let mut relaxed = 0;
        let allowed = self.tools.iter().filter(|entry| entry.refusal.is_none());
        let definitions = allowed.map(|entry| {
            let info = entry.tool.info();
            let definition = info.definition(vendor.dialect, |members| {
                let fits = strict > 0 && members.optional <= optional && members.unions <= unions;
                if fits {
                    strict -= 1;
                    optional -= members.optional;
                    unions -= members.unions;
                } else {
                    relaxed += 1;
                }
                fits
            });
            if vendor.plain_arguments { info.with_plain_arguments(definition) } else { definition }
        });
        let definitions = definitions.collect();
        Arc::new(ToolRequest { definitions, choice, parallel: self.is_parallel, relaxed })
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

/// How the model of a request receives tools.
pub(crate) struct VendorTools {
    pub(crate) dialect: Dialect,
    pub(crate) limits: RequestLimits,
    /// Whether only some characters may be in the names of arguments.
    pub(crate) plain_arguments: bool,
    /// The members of the answer's schema, which count too.
    pub(crate) answer: MemberCount,
}

fn calling_run(module: &Module, options: &RunOptions, context: &RunContext) -> Arc<CallingRun> {
    let callers = context.callers.iter().chain([&module.manifest.name]).cloned().collect();
    Arc::new(CallingRun { options: options.clone(), callers })
}

fn unavailable(name: &str, reason: &str) -> Warning {
    let message = format!("`tools.allowed` names `{name}`, which cannot be called: {reason}");
    Warning::new(WarningCode::ToolUnavailable, message)
}

// Decides which tools a module may call: `tools` and `policies` of its manifest.

/// Returns why a module may not call a tool; none if it may.
fn refusal(manifest: &Manifest, info: &ToolInfo) -> Option<String> {
    let rules = &manifest.tools;
    let policies = manifest.policies;
    let effects = info.effects;
    let names = |list: &[String]| list.iter().any(|pattern| matches(pattern, &info.name));
    if names(&rules.denied) {
        return Some("`tools.denied` names it".to_owned());
    }
    if !rules.allow_by_default && !names(&rules.allowed) {
        return Some("`tools.policy` is deny_by_default, and `tools.allowed` does not name it".to_owned());
    }
    let needed = [
        (effects.network, manifest.allows_network(), "network", "uses the network"),
        (effects.filesystem_write, policies.filesystem_write_allowed, "filesystem_write", "writes files"),
        (effects.side_effects, manifest.allows_side_effects(), "side_effects", "has side effects"),
        (effects.code_execution, policies.code_execution_allowed, "code_execution", "runs code"),
    ];
    let denied = needed.into_iter().find(|(is_needed, is_allowed, ..)| *is_needed && !is_allowed);
    denied.map(|(.., policy, effect)| format!("it {effect}, and {} denies that", key_of(manifest, policy)))
}

/// Returns the key of the manifest that denies a policy.
fn key_of(manifest: &Manifest, policy: &str) -> String {
    match policy {
        "network" if manifest.policies.network_allowed => "`constraints.no_network`".to_owned(),
        "side_effects" if manifest.policies.side_effects_allowed => {
            "`constraints.no_side_effects`".to_owned()
        }
        _ => format!("`policies.{policy}`"),
    }
}

// A module as a tool: its input is the arguments, and its envelope the result.

/// The maximum depth of modules that call modules (docs/spec/composition.md).
const MAX_DEPTH: usize = 5;

/// Finds and runs modules that are called as tools. The runtime, which lies above the tools, implements it.
pub(crate) trait ModuleCalls: Send + Sync {
    /// Loads a module by its name.
    fn load(&self, name: &str) -> Result<Arc<Module>, ErrorBody>;

    /// Returns the description of a module as a tool.
    fn as_tool(&self, module: &Arc<Module>) -> ToolInfo;

    /// Runs a module, whose input is the arguments of a call.
    fn call(
        self: Arc<Self>,
        module: Arc<Module>,
        arguments: Value,
        options: RunOptions,
        context: RunContext,
    ) -> ModuleCall;
}

/// The future of a module that runs as a tool. An error is one before the call to the model.
pub(crate) type ModuleCall = Pin<Box<dyn Future<Output = Result<Envelope, ErrorBody>> + Send>>;

/// A module that another module may call.
struct ModuleTool {
    info: ToolInfo,
    module: Arc<Module>,
    modules: Arc<dyn ModuleCalls>,
    caller: Arc<CallingRun>,
}

/// The run whose model calls a module.
struct CallingRun {
    options: RunOptions,
    /// The modules that lead to the called one, from the first.
    callers: Vec<String>,
}

impl ModuleTool {
    fn new(modules: &Arc<dyn ModuleCalls>, module: Arc<Module>, caller: Arc<CallingRun>) -> Self {
        Self { info: modules.as_tool(&module), module, modules: Arc::clone(modules), caller }
    }

    /// Checks that the module is not called by itself, and not too deeply.
    fn check_depth(&self) -> Result<(), ToolError> {
        let name = &self.module.manifest.name;
        let callers = &self.caller.callers;
        let is_circular = callers.contains(name);
        if !is_circular && callers.len() < MAX_DEPTH {
            return Ok(());
        }
        let path = callers.iter().chain([name]).map(String::as_str).collect::<Vec<_>>().join(" → ");
        Err(match is_circular {
            true => {
                ToolError::with_code(Code::CircularDependency, format!("the module calls itself: {path}"))
            }
            false => {
                let message = format!("modules are nested more than {MAX_DEPTH} deep: {path}");
                ToolError::with_code(Code::MaxDepthExceeded, message)
            }
        })
    }

    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.check_depth()?;
        let CallingRun { options: parent, callers } = &*self.caller;
        let options = RunOptions {
            provider: parent.provider.clone(),
            model: parent.model.clone(),
            timeout: Some(context.timeout),
            media: parent.media.clone(),
            owner: parent.owner.clone(),
            trace_id: parent.trace_id.clone(),
            cancellation: context.cancellation.clone(),
            budgets: parent.budgets.clone(),
            client: parent.client.clone(),
            tools: parent.tools.clone(),
            caller: Caller::Agent,
            ..RunOptions::default()
        };
        let run_context = RunContext {
            parent_span: context.span.clone(),
            callers: callers.clone(),
            is_tool: true,
            is_folded: true,
            ..RunContext::default()
        };
        let modules = Arc::clone(&self.modules);
        output(modules.call(Arc::clone(&self.module), arguments, options, run_context).await?)
    }
}

impl Tool for ModuleTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(self.run(arguments, context))
    }
}

/// Returns the envelope as the result of the call.
fn output(envelope: Envelope) -> Result<ToolOutput, ToolError> {
    let usage = envelope.meta.runtime.usage.clone();
    match &envelope.outcome {
        Outcome::Success { .. } => {
            let is_high_risk = envelope.meta.risk.level() == Risk::High;
            let value = Value::parse(&envelope.to_json()).unwrap_or_default();
            Ok(ToolOutput { usage, is_high_risk, ..value.into() })
        }
        Outcome::Failure { error, .. } => {
            Err(ToolError { usage: usage.map(Box::new), ..ToolError::from(error.clone()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Format, Tier};

    use super::*;
    use crate::tool::ToolEffects;

    fn info(effects: ToolEffects) -> ToolInfo {
        let parameters = Value::parse("{}").unwrap();
        ToolInfo::new("t", "Does it.", &parameters).unwrap().with_effects(effects)
    }

    #[test]
    fn names_decide_before_the_default() {
        let mut manifest = Manifest::with_defaults("m", Format::V25, Some(Tier::Decision));
        let tool = info(ToolEffects::default());
        assert!(refusal(&manifest, &tool).unwrap().contains("deny_by_default"));
        manifest.tools.allowed = vec!["t".to_owned()];
        assert_eq!(refusal(&manifest, &tool), None);
        manifest.tools.denied = vec!["t".to_owned()];
        assert!(refusal(&manifest, &tool).unwrap().contains("tools.denied"));
        manifest.tools = cog_spec::ToolRules { allow_by_default: true, ..Default::default() };
        assert_eq!(refusal(&manifest, &tool), None);
    }

    #[test]
    fn each_effect_needs_its_policy() {
        let mut manifest = Manifest::with_defaults("m", Format::V25, Some(Tier::Decision));
        manifest.tools.allow_by_default = true;
        let all = [
            (ToolEffects { network: true, ..Default::default() }, "policies.network"),
            (ToolEffects { filesystem_write: true, ..Default::default() }, "policies.filesystem_write"),
            (ToolEffects { side_effects: true, ..Default::default() }, "policies.side_effects"),
            (ToolEffects { code_execution: true, ..Default::default() }, "policies.code_execution"),
        ];
        for (effects, policy) in all {
            assert!(refusal(&manifest, &info(effects)).unwrap().contains(policy));
        }
        let policies = &mut manifest.policies;
        (policies.network_allowed, policies.filesystem_write_allowed) = (true, true);
        (policies.side_effects_allowed, policies.code_execution_allowed) = (true, true);
        for (effects, _) in all {
            assert_eq!(refusal(&manifest, &info(effects)), None);
        }
    }

    #[test]
    fn constraints_deny_what_a_policy_allows() {
        let mut manifest = Manifest::with_defaults("m", Format::V1, None);
        manifest.tools.allow_by_default = true;
        (manifest.policies.network_allowed, manifest.policies.side_effects_allowed) = (true, true);
        (manifest.constraints.no_network, manifest.constraints.no_side_effects) = (true, true);
        let network = ToolEffects { network: true, ..Default::default() };
        let effects = ToolEffects { side_effects: true, ..Default::default() };
        assert!(refusal(&manifest, &info(network)).unwrap().contains("`constraints.no_network`"));
        assert!(refusal(&manifest, &info(effects)).unwrap().contains("`constraints.no_side_effects`"));
    }
}
