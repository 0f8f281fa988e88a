//! The replies of each vendor, as its API reference describes them.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;

use serde_json::{Value, json};

use crate::Reply;

/// A wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// OpenAI Images.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own protocol.
    Ollama,
}

impl Wire {
    /// Every wire form for text.
    pub const ALL: [Wire; 5] =
        [Wire::OpenAi, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini, Wire::Ollama];

    /// Returns its name, `openai`.
    pub const fn name(self) -> &'static str {
        match self {
            Wire::OpenAi => "openai",
            Wire::OpenAiResponses => "openai_responses",
            Wire::OpenAiImages => "openai_images",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// Returns the name of the provider whose clients use this form.
    pub const fn provider(self) -> &'static str {
        match self {
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages => "openai",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// Returns the value of the provider's setting `protocol` for this form; `None` if it has no such setting.
    pub const fn protocol_setting(self) -> Option<&'static str> {
        match self {
            Wire::OpenAi => Some("chat"),
            Wire::OpenAiResponses => Some("responses"),
            Wire::OpenAiImages | Wire::Anthropic | Wire::Gemini | Wire::Ollama => None,
        }
    }

    /// Returns the path of the base URL for clients of this form.
    pub(crate) const fn base_path(self) -> &'static str {
        match self {
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages => "/v1",
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => "",
        }
    }

    /// Returns the form that a path belongs to.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        const ENDS: [(&str, Wire); 7] = [
            ("/chat/completions", Wire::OpenAi),
            ("/responses", Wire::OpenAiResponses),
            ("/images/generations", Wire::OpenAiImages),
            ("/v1/messages", Wire::Anthropic),
            (":streamGenerateContent", Wire::Gemini),
            (":generateContent", Wire::Gemini),
            ("/api/chat", Wire::Ollama),
        ];
        ENDS.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
    }

    /// Returns whether a request to this path is for a stream.
    pub(crate) fn wants_stream(self, path: &str, body: &Value) -> bool {
        let requested = body.get("stream").and_then(Value::as_bool);
        match self {
            Wire::Gemini => path.ends_with(":streamGenerateContent"),
            Wire::Ollama => requested.unwrap_or(true),
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages | Wire::Anthropic => {
                requested.unwrap_or(false)
            }
        }
    }

    /// Returns the media type of a streamed body.
    pub(crate) const fn stream_type(self) -> &'static str {
        match self {
            Wire::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// Returns the events or lines of a streamed reply.
    pub fn stream(self, reply: &Reply) -> Vec<String> {
        match self {
            Wire::OpenAi => openai::stream(reply),
            Wire::OpenAiResponses => responses::stream(reply),
            Wire::OpenAiImages => vec![openai::images(reply).to_string()],
            Wire::Anthropic => anthropic::stream(reply),
            Wire::Gemini => gemini::stream(reply),
            Wire::Ollama => ollama::stream(reply),
        }
    }

    /// Returns the same reply as one body.
    pub fn complete(self, reply: &Reply) -> Value {
        match self {
            Wire::OpenAi => openai::complete(reply),
            Wire::OpenAiResponses => responses::complete(reply),
            Wire::OpenAiImages => openai::images(reply),
            Wire::Anthropic => anthropic::complete(reply),
            Wire::Gemini => gemini::complete(reply),
            Wire::Ollama => ollama::complete(reply),
        }
    }

    /// Returns the body of an error reply.
    pub fn error_body(self, status: u16, message: &str) -> Value {
        match self {
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages => openai::error_body(status, message),
            Wire::Anthropic => anthropic::error_body(status, message),
            Wire::Gemini => gemini::error_body(status, message),
            Wire::Ollama => ollama::error_body(message),
        }
    }
}

/// Returns an event with data only.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

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

#[cfg(test)]
mod tests;
