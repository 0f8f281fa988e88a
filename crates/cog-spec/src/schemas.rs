//! The published JSON Schemas (draft-07) of the documents that this crate and `cog-harmony` describe.
//!
//! `cargo xtask generate` writes `envelope`, `chunk`, `capabilities` and `forms` from the types. The others are written by hand:
//! a manifest, an expected answer and a media item are read as trees, so that errors have a position, and no type has the form of a
//! handoff.
//! The schema of a message depends on its role.

use crate::string_enum::string_enum;

string_enum! {
    /// A document that has a JSON Schema.
    Schema {
        /// `module.yaml`.
        Manifest = "manifest",
        /// The expected answer of a golden test.
        Expected = "expected",
        /// The envelope of a run.
        Envelope = "envelope",
        /// One chunk of a stream.
        Chunk = "chunk",
        /// The capabilities of a runtime.
        Capabilities = "capabilities",
        /// `forms.json` of a module.
        Forms = "forms",
        /// A Harmony message.
        Message = "message",
        /// A Harmony handoff packet.
        Handoff = "handoff",
        /// A media source, or a generated media item. `cog verify` uses it, and `cog schema` does not print it.
        Media = "media",
    }
}

impl Schema {
    /// Returns the text of the schema.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Manifest => include_str!("../schemas/manifest.schema.json"),
            Self::Expected => include_str!("../schemas/expected.schema.json"),
            Self::Envelope => include_str!("../schemas/envelope.schema.json"),
            Self::Chunk => include_str!("../schemas/chunk.schema.json"),
            Self::Capabilities => include_str!("../schemas/capabilities.schema.json"),
            Self::Forms => include_str!("../schemas/forms.schema.json"),
            Self::Message => include_str!("../schemas/message.schema.json"),
            Self::Handoff => include_str!("../schemas/handoff.schema.json"),
            Self::Media => include_str!("../schemas/media.schema.json"),
        }
    }
}
