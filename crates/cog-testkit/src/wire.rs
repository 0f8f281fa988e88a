//! What vendors send, from their interface descriptions.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use serde_json::{Value, json};

use crate::Reply;

/// The model that every vendor here lists.
const MODEL: &str = "mock-model";

/// A wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Images.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Wire {
    /// Every one that answers in words.
    pub const ALL: [Wire; 4] = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini, Wire::Ollama];

    /// Its name, `openai`.
    pub const fn name(self) -> &'static str {
        match self {
            Wire::OpenAi => "openai",
            Wire::OpenAiImages => "openai_images",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// The path that belongs to the address which clients of this form are given.
    pub(crate) const fn base_path(self) -> &'static str {
        match self {
            Wire::OpenAi | Wire::OpenAiImages => "/v1",
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => "",
        }
    }

    /// The form that is spoken at a path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let ends = |end: &str| path.ends_with(end);
        if ends("/chat/completions") {
            Some(Wire::OpenAi)
        } else if ends("/images/generations") {
            Some(Wire::OpenAiImages)
        } else if ends("/v1/messages") {
            Some(Wire::Anthropic)
        } else if ends(":streamGenerateContent") || ends(":generateContent") {
            Some(Wire::Gemini)
        } else if ends("/api/chat") {
            Some(Wire::Ollama)
        } else {
            None
        }
    }

    /// Whether a request to this path asks for a stream.
    pub(crate) fn wants_stream(self, path: &str, body: &Value) -> bool {
        let asked = body.get("stream").and_then(Value::as_bool);
        match self {
            Wire::Gemini => path.ends_with(":streamGenerateContent"),
            Wire::Ollama => asked.unwrap_or(true),
            Wire::OpenAi | Wire::OpenAiImages | Wire::Anthropic => asked.unwrap_or(false),
        }
    }

    /// The type of a streamed body.
    pub(crate) const fn stream_type(self) -> &'static str {
        match self {
            Wire::Ollama => "application/x-ndjson",
            Wire::OpenAi | Wire::OpenAiImages | Wire::Anthropic | Wire::Gemini => "text/event-stream",
        }
    }

    /// A streamed reply, event by event or line by line.
    pub fn stream(self, reply: &Reply) -> Vec<String> {
        match self {
            Wire::OpenAi => openai::stream(reply),
            Wire::OpenAiImages => vec![openai::images(reply).to_string()],
            Wire::Anthropic => anthropic::stream(reply),
            Wire::Gemini => gemini::stream(reply),
            Wire::Ollama => ollama::stream(reply),
        }
    }

    /// The same reply as one body.
    pub fn whole(self, reply: &Reply) -> Value {
        match self {
            Wire::OpenAi => openai::whole(reply),
            Wire::OpenAiImages => openai::images(reply),
            Wire::Anthropic => anthropic::whole(reply),
            Wire::Gemini => gemini::whole(reply),
            Wire::Ollama => ollama::whole(reply),
        }
    }

    /// The body of a failure.
    pub fn failure(self, status: u16, message: &str) -> Value {
        match self {
            Wire::OpenAi | Wire::OpenAiImages => openai::failure(status, message),
            Wire::Anthropic => anthropic::failure(status, message),
            Wire::Gemini => gemini::failure(status, message),
            Wire::Ollama => ollama::failure(message),
        }
    }
}

/// The answer to a question for the models, at any of the paths vendors have for it.
pub(crate) fn models(path: &str) -> Option<Value> {
    if path.ends_with("/api/tags") {
        Some(json!({ "models": [{ "name": MODEL, "model": MODEL }] }))
    } else if path.ends_with("/v1beta/models") {
        Some(json!({ "models": [
            { "name": format!("models/{MODEL}"), "supportedGenerationMethods": ["generateContent"] },
            { "name": "models/only-embeds", "supportedGenerationMethods": ["embedContent"] },
        ] }))
    } else if path.ends_with("/models") {
        Some(json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] }))
    } else {
        None
    }
}

/// An event that has only data.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

#[cfg(test)]
mod tests;
