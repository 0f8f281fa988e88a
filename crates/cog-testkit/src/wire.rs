//! The replies of each vendor, as its API reference describes them.

mod anthropic;
mod gemini;
mod models;
mod ollama;
mod openai;
mod responses;

use serde_json::Value;

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
        let ends = |end: &str| path.ends_with(end);
        if ends("/chat/completions") {
            Some(Wire::OpenAi)
        } else if ends("/responses") {
            Some(Wire::OpenAiResponses)
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

#[cfg(test)]
mod tests;
