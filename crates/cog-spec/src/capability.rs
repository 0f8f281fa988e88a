//! The capabilities of a runtime, a provider and a model.

use serde::{Serialize, Serializer};

use crate::string_enum::string_enum;

string_enum! {
    /// A kind of content (SPEC 2.2; `document`: docs/spec/modules.md).
    Modality {
        /// Text; always supported.
        Text = "text",
        /// Images.
        Image = "image",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
        /// PDF.
        Document = "document",
    }
}

string_enum! {
    /// A transport of streams (SPEC 3.2.4).
    Transport {
        /// Server-sent events.
        Sse = "sse",
        /// WebSocket text frames.
        WebSocket = "websocket",
        /// One JSON object per line.
        Ndjson = "ndjson",
    }
}

string_enum! {
    /// The form in which a provider receives the schema of an answer.
    Dialect {
        /// OpenAI's strict schemas: every property is required and may be null, and no others are allowed.
        OpenAiStrict = "openai_strict",
        /// An unchanged JSON Schema in `response_format` (vLLM, Together and others).
        JsonSchema = "json_schema",
        /// Anthropic's output format.
        Anthropic = "anthropic",
        /// Gemini's `responseJsonSchema`.
        Gemini = "gemini",
        /// The part of JSON Schema that llama.cpp compiles to a grammar (llama.cpp, Ollama).
        LlamaCpp = "llamacpp",
        /// No schema, but the answer must be a JSON object.
        JsonObject = "json_object",
        /// Only the prompt requests JSON.
        Prompt = "prompt",
    }
}

impl Dialect {
    /// Returns whether projections to this dialect can make optional members nullable.
    pub const fn adds_nulls(self) -> bool {
        matches!(self, Dialect::OpenAiStrict | Dialect::Anthropic)
    }
}

impl Modality {
    /// Returns the input media types of this kind (SPEC 4.1.1); text has none.
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Modality::Text => &[],
            Modality::Image => &["image/jpeg", "image/png", "image/webp", "image/gif"],
            Modality::Audio => &["audio/mpeg", "audio/wav", "audio/ogg", "audio/webm"],
            Modality::Video => &["video/mp4", "video/webm", "video/quicktime"],
            Modality::Document => &["application/pdf"],
        }
    }

    /// Returns the output media types of this kind (SPEC 4.1.2); text and documents have none.
    pub const fn output_types(self) -> &'static [&'static str] {
        match self {
            Modality::Text | Modality::Document => &[],
            Modality::Image => &["image/png", "image/jpeg", "image/webp"],
            Modality::Audio => &["audio/mpeg", "audio/wav"],
            Modality::Video => &["video/mp4"],
        }
    }
}

/// The version of the specification that these types define.
pub const SPECIFICATION: &str = "2.5";

/// The capabilities document of a runtime (SPEC 8.1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The name of the runtime.
    pub runtime: String,
    /// The version of the runtime.
    pub version: String,
    /// The version of the specification that the runtime implements. The specification itself does not ask for it.
    pub specification: Option<String>,
    /// Whether it supports streaming.
    pub streaming: bool,
    /// The input modalities.
    pub input: Vec<Modality>,
    /// The output modalities.
    pub output: Vec<Modality>,
    /// The maximum size of a media file, in MB of 1,048,576 bytes.
    pub max_media_size_mb: u32,
    /// The transports of streams.
    pub transports: Vec<Transport>,
}

impl Capabilities {
    /// Creates the capabilities of a runtime that only supports text, and does not stream.
    pub fn new(runtime: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            runtime: runtime.into(),
            version: version.into(),
            specification: None,
            streaming: false,
            input: vec![Modality::Text],
            output: vec![Modality::Text],
            max_media_size_mb: 0,
            transports: Vec::new(),
        }
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let multimodal = MultimodalForm { input: &self.input, output: &self.output };
        let capabilities = CapabilitiesForm {
            streaming: self.streaming,
            multimodal,
            max_media_size_mb: self.max_media_size_mb,
            supported_transports: &self.transports,
        };
        let Self { runtime, version, .. } = self;
        let specification = self.specification.as_deref();
        CapabilitiesDocument { runtime, version, specification, capabilities }.serialize(serializer)
    }
}

/// The capabilities of a runtime (SPEC 8.1).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Capabilities"))]
pub(crate) struct CapabilitiesDocument<'a> {
    /// The name of the runtime.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    runtime: &'a str,
    /// The version of the runtime.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    version: &'a str,
    /// The version of the specification that the runtime implements.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    specification: Option<&'a str>,
    /// The capabilities.
    capabilities: CapabilitiesForm<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct CapabilitiesForm<'a> {
    /// Whether the runtime supports streaming.
    streaming: bool,
    /// The supported kinds of content.
    multimodal: MultimodalForm<'a>,
    /// The maximum size of a media file, in MB of 1,048,576 bytes.
    max_media_size_mb: u32,
    /// The transports of streams.
    supported_transports: &'a [Transport],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct MultimodalForm<'a> {
    /// The input modalities.
    input: &'a [Modality],
    /// The output modalities.
    output: &'a [Modality],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_belong_to_their_kind() {
        let kinds = [
            (Modality::Image, "image/", [4, 3]),
            (Modality::Audio, "audio/", [4, 2]),
            (Modality::Video, "video/", [3, 1]),
            (Modality::Document, "application/pdf", [1, 0]),
            (Modality::Text, "none", [0, 0]),
        ];
        for (modality, start, counts) in kinds {
            let input = modality.media_types();
            let output = modality.output_types();
            assert_eq!([input.len(), output.len()], counts, "{modality}");
            assert!(input.iter().all(|media_type| media_type.starts_with(start)), "{modality}");
            assert!(output.iter().all(|media_type| input.contains(media_type)), "{modality}");
        }
    }

    #[test]
    fn strict_dialects_make_optional_members_nullable() {
        let nullable = Dialect::ALL.iter().filter(|dialect| dialect.adds_nulls());
        assert!(nullable.eq(&[Dialect::OpenAiStrict, Dialect::Anthropic]));
    }
}
