//! A scripted model, in place of one that needs a key.

use cog_run::provider::{
    FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderInfo, Role, ToolCallDelta, reply,
};

/// Lists the databases, deletes one, then answers with the last result.
pub(crate) struct Administrator(ProviderInfo);

impl Administrator {
    pub(crate) fn new() -> Self {
        Self(ProviderInfo::new("scripted", "administrator-1"))
    }
}

impl Provider for Administrator {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }
    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let results = request.messages.messages().iter().filter(|message| message.role == Role::Tool);
        let results: Vec<String> = results.map(|message| message.text()).collect();
        let events = match results.as_slice() {
            [] => call("call_1", "list_databases", "{}"),
            [_] => call("call_2", "delete_database", r#"{"name": "prod"}"#),
            [.., last] => answer(last),
        };
        Box::pin(async { Ok(reply(events)) })
    }
}

fn call(id: &str, tool: &str, arguments: &str) -> Vec<ModelEvent> {
    let call = ToolCallDelta {
        index: 0,
        id: Some(id.to_owned()),
        name: Some(tool.to_owned()),
        arguments: arguments.to_owned(),
        signature: None,
    };
    vec![ModelEvent::ToolCall(call), ModelEvent::Finished(FinishReason::ToolCalls)]
}

fn answer(explain: &str) -> Vec<ModelEvent> {
    let explain: String = explain.chars().take(200).collect();
    let answer = serde_json::json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": explain },
        "data": { "done": true, "rationale": "The tools returned this." },
    });
    vec![ModelEvent::Text(answer.to_string()), ModelEvent::Finished(FinishReason::Stop)]
}
