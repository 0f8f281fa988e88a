//! A module as a tool: its input is the arguments, and its envelope the result.

use std::{pin::Pin, sync::Arc};

use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_spec::{Code, Envelope, ErrorBody, Outcome, Risk};

use crate::{
    Caller, RunContext, RunOptions,
    tool::{Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput},
};

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
pub(super) struct ModuleTool {
    info: ToolInfo,
    module: Arc<Module>,
    modules: Arc<dyn ModuleCalls>,
    caller: Arc<CallingRun>,
}

/// The run whose model calls a module.
pub(super) struct CallingRun {
    pub(super) options: RunOptions,
    /// The modules that lead to the called one, from the first.
    pub(super) callers: Vec<String>,
}

impl ModuleTool {
    pub(super) fn new(modules: &Arc<dyn ModuleCalls>, module: Arc<Module>, caller: Arc<CallingRun>) -> Self {
        Self { info: modules.as_tool(&module), module, modules: Arc::clone(modules), caller }
    }

    /// Checks that the module is not called by itself, and not too deeply.
    fn check_depth(&self) -> Result<(), ToolError> {
        let name = &self.module.manifest.name;
        let callers = &self.caller.callers;
        let path = || callers.iter().chain([name]).map(String::as_str).collect::<Vec<_>>().join(" → ");
        if callers.contains(name) {
            let message = format!("the module calls itself: {}", path());
            return Err(ToolError::with_code(Code::CircularDependency, message));
        }
        if callers.len() >= MAX_DEPTH {
            let message = format!("modules are nested more than {MAX_DEPTH} deep: {}", path());
            return Err(ToolError::with_code(Code::MaxDepthExceeded, message));
        }
        Ok(())
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
