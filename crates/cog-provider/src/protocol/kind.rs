//! The wire protocols.

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolKind {
    /// OpenAI Chat Completions, which most vendors implement.
    OpenAiChat,
    /// OpenAI Images, for models that return only images.
    OpenAiImages,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Ollama's own protocol.
    Ollama,
}
