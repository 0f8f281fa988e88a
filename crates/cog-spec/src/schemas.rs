//! The JSON Schemas (draft-07) of the documents that this crate and `cog-harmony` describe, as they are published.

use crate::tier::words;

words! {
    /// A document of which there is a JSON Schema.
    Schema {
        /// `module.yaml`.
        Manifest = "manifest",
        /// The answer of a run.
        Envelope = "envelope",
        /// One chunk of a stream.
        Chunk = "chunk",
        /// What a runtime can do.
        Capabilities = "capabilities",
        /// A Harmony message.
        Message = "message",
        /// A Harmony handoff packet.
        Handoff = "handoff",
    }
}

impl Schema {
    /// The schema as it stands in the repository.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Manifest => include_str!("../schemas/manifest.schema.json"),
            Self::Envelope => include_str!("../schemas/envelope.schema.json"),
            Self::Chunk => include_str!("../schemas/chunk.schema.json"),
            Self::Capabilities => include_str!("../schemas/capabilities.schema.json"),
            Self::Message => include_str!("../schemas/message.schema.json"),
            Self::Handoff => include_str!("../schemas/handoff.schema.json"),
        }
    }
}
