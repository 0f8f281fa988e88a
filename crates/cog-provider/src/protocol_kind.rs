//! The wire protocols by name.
//!
//! The table of vendors names protocols, and the protocols read that table. So the names are a module of their own,
//! below both.

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolKind {
    /// OpenAI Chat Completions, which most vendors implement.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// OpenAI Images, for models that return only images.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own protocol.
    Ollama,
}

impl ProtocolKind {
    /// Every protocol.
    pub const ALL: &[Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::OpenAiImages,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
    ];

    /// Returns the protocol that a setting names: `chat` or `responses`. Between these two an operator can choose.
    pub fn from_setting(name: &str) -> Option<Self> {
        match name {
            "chat" => Some(Self::OpenAiChat),
            "responses" => Some(Self::OpenAiResponses),
            _ => None,
        }
    }
}
