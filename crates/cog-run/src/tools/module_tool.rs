//! A module as a tool: its input is the arguments, and its envelope the result.

use std::sync::Arc;

use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_spec::{Code, Envelope, Outcome, Risk};

use super::{Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput};
use crate::{Caller, RunOptions, state::RuntimeState};

/// The maximum depth of modules that call modules (docs/spec/composition.md).
const MAX_DEPTH: usize = 5;

/// A module that another module may call.
pub(super) struct ModuleTool {
    info: ToolInfo,
    module: Arc<Module>,
    shared: Arc<RuntimeState>,
    /// The modules that lead to this one, from the first.
    callers: Vec<String>,
}

impl ModuleTool {
    pub(super) fn new(shared: &Arc<RuntimeState>, module: Arc<Module>, callers: Vec<String>) -> Self {
        let info = shared.compilations.get(&module).as_tool(&module);
        Self { info, module, shared: Arc::clone(shared), callers }
    }

    /// Checks that the module is not called by itself, and not too deeply.
    fn check_depth(&self) -> Result<(), ToolError> {
        let (name, callers) = (&self.module.manifest.name, &self.callers);
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
        let parent = &context.options;
        let options = RunOptions {
            provider: parent.provider.clone(),
            model: parent.model.clone(),
            timeout: Some(context.timeout),
            media: parent.media.clone(),
            owner: parent.owner.clone(),
            trace_id: parent.trace_id.clone(),
            parent_span: context.span.clone(),
            cancellation: context.cancellation.clone(),
            budgets: parent.budgets.clone(),
            tools: parent.tools.clone(),
            caller: Caller::Agent,
            callers: self.callers.clone(),
            is_tool: true,
            ..RunOptions::default()
        };
        let (shared, module) = (Arc::clone(&self.shared), Arc::clone(&self.module));
        output((self.shared.call_module)(shared, module, arguments, options).await?)
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
