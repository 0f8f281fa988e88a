use serde_json::{Value, json};

use super::Wire;

/// The model that every vendor lists.
const MODEL: &str = "mock-model";

/// A model that Anthropic is about to retire.
const RETIRING: &str = "mock-old";

impl Wire {
    /// Returns the reply to a request for the list of models.
    pub fn models(self) -> Value {
        match self {
            Wire::Anthropic => json!({
                "data": [anthropic(MODEL, "active", None), anthropic(RETIRING, "deprecated", Some("2027-02-01T00:00:00Z"))],
                "has_more": false, "first_id": MODEL, "last_id": RETIRING,
            }),
            Wire::Gemini => {
                json!({ "models": [gemini(MODEL, "generateContent"), gemini("only-embeds", "embedContent")] })
            }
            Wire::Ollama => json!({ "models": [{
                "name": format!("{MODEL}:latest"), "model": format!("{MODEL}:latest"), "size": 1, "digest": "00",
                "modified_at": "2026-01-01T00:00:00Z", "details": { "family": "mock", "format": "gguf" },
            }] }),
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages => json!({
                "object": "list",
                "data": [{ "id": MODEL, "object": "model", "created": 1_767_225_600, "owned_by": "mock" }],
            }),
        }
    }

    /// Returns the vendor whose list of models a request is for. Anthropic's clients send their version.
    pub(crate) fn of_models(path: &str, has_anthropic_version: bool) -> Option<Self> {
        if path.ends_with("/api/tags") {
            Some(Wire::Ollama)
        } else if path.ends_with("/v1beta/models") {
            Some(Wire::Gemini)
        } else if path.ends_with("/models") {
            Some(if has_anthropic_version { Wire::Anthropic } else { Wire::OpenAi })
        } else {
            None
        }
    }
}

fn anthropic(id: &str, lifecycle: &str, retires_at: Option<&str>) -> Value {
    let yes = json!({ "supported": true });
    let no = json!({ "supported": false });
    json!({
        "type": "model", "id": id, "display_name": "Mock", "created_at": "2026-01-01T00:00:00Z", "line": null,
        "lifecycle": lifecycle, "deprecated_at": null, "retires_at": retires_at,
        "max_input_tokens": 200_000, "max_tokens": 64_000,
        "capabilities": {
            "batch": yes, "citations": yes, "code_execution": no, "image_input": yes, "pdf_input": no,
            "structured_outputs": yes, "context_management": no,
            "effort": { "supported": true, "low": yes, "medium": yes, "high": yes, "max": no, "xhigh": null },
            "thinking": { "supported": false, "types": {
                "adaptive": no, "between_tools": no, "disabled": yes, "enabled": no,
            } },
            "server_tools": { "supported": false, "code_execution": no, "web_search": no },
        },
    })
}

fn gemini(name: &str, method: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": "Mock", "version": "1",
        "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "supportedGenerationMethods": [method],
    })
}
