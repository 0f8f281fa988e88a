//! A run with tools and a scripted model.

use std::sync::Arc;

use cog_harmony::{Message, Role};
use cog_json::Value;
use cog_module::{Finder, Module};
use cog_run::{
    ChunkStream, RunOptions, Runtime, RuntimeBuilder,
    provider::{FinishReason, ModelEvent, Provider, ToolCallDelta},
    tools::{PendingApprovals, Tool, ToolEffects, ToolInfo, ToolLimits},
};
use cog_spec::Envelope;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{ANSWER, Scripted, directory, sample_input};

/// A module with tools, and the model that calls them.
pub(crate) struct Setup {
    pub(crate) provider: Arc<Scripted>,
    pub(crate) directory: TempDir,
    pub(crate) halted: PendingApprovals,
    pub(crate) limits: ToolLimits,
    pub(crate) confirm: Vec<String>,
    pub(crate) modules: Vec<std::path::PathBuf>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

impl Setup {
    /// Creates a module that may call these tools, and a model with these replies.
    pub(crate) fn new(allowed: &[&str], replies: impl IntoIterator<Item = Vec<ModelEvent>>) -> Self {
        let allowed = format!("tools: {{ allowed: [{}] }}", allowed.join(", "));
        Self::with_manifest(&["policies: { tools_allowed: true }", &allowed], replies)
    }

    pub(crate) fn with_manifest(
        manifest: &[&str],
        replies: impl IntoIterator<Item = Vec<ModelEvent>>,
    ) -> Self {
        Self {
            provider: Arc::new(Scripted::new(replies)),
            directory: directory("Do it.", manifest),
            halted: PendingApprovals::default(),
            limits: ToolLimits::default(),
            confirm: Vec::new(),
            modules: Vec::new(),
            tools: Vec::new(),
        }
    }

    pub(crate) fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    pub(crate) fn builder(&self) -> RuntimeBuilder {
        let builder = Runtime::builder()
            .provider(Arc::clone(&self.provider) as Arc<dyn Provider>)
            .finder(Finder::new(".", self.modules.clone(), None))
            .pending_approvals(self.halted.clone())
            .confirmed_tools(self.confirm.clone())
            .tool_limits(self.limits);
        self.tools.iter().cloned().fold(builder, RuntimeBuilder::tool)
    }

    /// Returns a new runtime, as another process would have.
    pub(crate) fn runtime(&self) -> Runtime {
        self.builder().build().unwrap()
    }

    pub(crate) fn module(&self) -> Arc<Module> {
        self.runtime().load(self.directory.path().to_str().unwrap()).unwrap()
    }

    pub(crate) async fn run(&self) -> Envelope {
        self.run_with(RunOptions::default()).await
    }

    pub(crate) async fn run_with(&self, options: RunOptions) -> Envelope {
        self.runtime().run(&self.module(), sample_input(), options).await
    }

    pub(crate) fn stream(&self, options: RunOptions) -> ChunkStream {
        self.runtime().stream(&self.module(), sample_input(), options).unwrap()
    }
}

/// The effects of a tool that changes something outside the run.
pub(crate) const SIDE_EFFECTS: ToolEffects =
    ToolEffects { network: false, filesystem_write: false, side_effects: true, code_execution: false };

/// Describes a tool that accepts the integers `a` and `b`; both are required of the tool `add`.
pub(crate) fn info(name: &str) -> ToolInfo {
    let required = if name == "add" { json!(["a", "b"]) } else { json!([]) };
    let number = json!({ "type": "integer" });
    let parameters = json!({ "type": "object", "required": required, "additionalProperties": false,
        "properties": { "a": number, "b": number, "name": { "type": "string" } } });
    ToolInfo::new(name, "Does it.", &Value::from(parameters)).unwrap()
}

/// Returns the event of one call.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> Vec<ModelEvent> {
    calls(&[(id, tool, arguments)]).into_iter().take(1).collect()
}

/// Returns a reply that requests these calls: id, tool, arguments.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Vec<ModelEvent> {
    let event = |(index, (id, tool, arguments)): (usize, &(&str, &str, &str))| {
        ModelEvent::ToolCall(ToolCallDelta {
            index: u32::try_from(index).unwrap(),
            id: Some((*id).to_owned()),
            name: Some((*tool).to_owned()),
            arguments: (*arguments).to_owned(),
            signature: None,
        })
    };
    let end = ModelEvent::Finished(FinishReason::ToolCalls);
    calls.iter().enumerate().map(event).chain([end]).collect()
}

/// Returns a reply with a valid answer.
pub(crate) fn answer() -> Vec<ModelEvent> {
    vec![ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)]
}

/// Returns the JSON of a tool message.
pub(crate) fn content(message: &Message) -> serde_json::Value {
    serde_json::from_str(message.content[0].as_text().unwrap()).unwrap()
}

/// Returns the id and the JSON of each result in the last request.
pub(crate) fn results(setup: &Setup) -> Vec<(String, serde_json::Value)> {
    let requests = setup.provider.requests();
    let messages = requests.last().unwrap().messages.messages();
    let tools = messages.iter().filter(|message| message.role == Role::Tool);
    tools.map(|message| (message.tool_call_id.clone().unwrap(), content(message))).collect()
}
