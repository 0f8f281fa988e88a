//! What a runtime, a provider and a model can do.

use cog_json::{ToJson, Writer};

use crate::tier::words;

words! {
    /// A kind of content (SPEC 2.2; `document`: docs/spec/modules.md).
    Modality {
        /// Text; always supported.
        Text = "text",
        /// Images.
        Image = "image",
        /// Sound.
        Audio = "audio",
        /// Video.
        Video = "video",
        /// PDF.
        Document = "document",
    }
}

words! {
    /// A way to deliver a stream (SPEC 3.2.4).
    Transport {
        /// Server-sent events.
        Sse = "sse",
        /// WebSocket text frames.
        WebSocket = "websocket",
        /// A JSON object a line.
        Ndjson = "ndjson",
    }
}

words! {
    /// A vendor's way to be told the schema of an answer.
    Dialect {
        /// OpenAI's strict schemas: every property required, no further ones, nullable by union.
        OpenAiStrict = "openai_strict",
        /// A JSON Schema in `response_format`, taken as it is (vLLM, llama.cpp, Mistral and others).
        JsonSchema = "json_schema",
        /// Anthropic's output format.
        Anthropic = "anthropic",
        /// Gemini's `responseJsonSchema`.
        Gemini = "gemini",
        /// Ollama's `format`.
        Ollama = "ollama",
        /// No schema, but "answer with a JSON object".
        JsonObject = "json_object",
        /// Nothing: the prompt alone asks for JSON.
        Prompt = "prompt",
    }
}

impl Modality {
    /// The media types of this kind that go in (SPEC 4.1.1); text has none.
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Modality::Text => &[],
            Modality::Image => &["image/jpeg", "image/png", "image/webp", "image/gif"],
            Modality::Audio => &["audio/mpeg", "audio/wav", "audio/ogg", "audio/webm"],
            Modality::Video => &["video/mp4", "video/webm", "video/quicktime"],
            Modality::Document => &["application/pdf"],
        }
    }

    /// The media types of this kind that come out (SPEC 4.1.2); text and documents have none.
    pub const fn output_types(self) -> &'static [&'static str] {
        match self {
            Modality::Text | Modality::Document => &[],
            Modality::Image => &["image/png", "image/jpeg", "image/webp"],
            Modality::Audio => &["audio/mpeg", "audio/wav"],
            Modality::Video => &["video/mp4"],
        }
    }
}

/// The document that every runtime must be able to show (SPEC 8.1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The runtime's name.
    pub runtime: String,
    /// Its version.
    pub version: String,
    /// Whether it streams.
    pub streaming: bool,
    /// What it takes.
    pub input: Vec<Modality>,
    /// What it makes.
    pub output: Vec<Modality>,
    /// The largest medium of any kind, in MB of 1,048,576 bytes.
    pub max_media_size_mb: u32,
    /// How it delivers streams.
    pub transports: Vec<Transport>,
}

impl Capabilities {
    /// The capabilities of a runtime that takes and gives text alone, and does not stream.
    pub fn new(runtime: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            runtime: runtime.into(),
            version: version.into(),
            streaming: false,
            input: vec![Modality::Text],
            output: vec![Modality::Text],
            max_media_size_mb: 0,
            transports: Vec::new(),
        }
    }
}

impl ToJson for Modality {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(self.as_str());
    }
}

impl ToJson for Transport {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(self.as_str());
    }
}

impl ToJson for Capabilities {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("runtime", &self.runtime);
            w.field("version", &self.version);
            w.field("capabilities", &Inner(self));
        });
    }
}

struct Inner<'a>(&'a Capabilities);

impl ToJson for Inner<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("streaming", &self.0.streaming);
            w.field("multimodal", &Multimodal(self.0));
            w.field("max_media_size_mb", &self.0.max_media_size_mb);
            w.field("supported_transports", &self.0.transports);
        });
    }
}

struct Multimodal<'a>(&'a Capabilities);

impl ToJson for Multimodal<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("input", &self.0.input);
            w.field("output", &self.0.output);
        });
    }
}
