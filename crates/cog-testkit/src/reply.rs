use std::time::Duration;

use serde_json::{Value, json};

/// The reply of the mock to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) media: Vec<Media>,
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) refusal: Option<String>,
    pub(crate) finish: Finish,
    pub(crate) model: String,
    pub(crate) usage: (u64, u64),
    pub(crate) chunk_size: usize,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) raw: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) packet_size: Option<usize>,
    pub(crate) interrupt_after: Option<usize>,
    pub(crate) delay: Duration,
    pub(crate) pause: Duration,
    pub(crate) hangs: bool,
    pub(crate) when: Vec<String>,
}

/// An image or audio item in addition to the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Media {
    pub(crate) media_type: String,
    pub(crate) data: String,
}

/// A tool call in addition to the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// The identifier. Ollama has none.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments, JSON as text.
    pub(crate) arguments: String,
}

impl ToolCall {
    /// Returns the arguments as an object; empty if they are not JSON.
    pub(crate) fn object(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}))
    }
}

/// The finish reason; each vendor has its own value for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Finish {
    /// The reply is complete.
    #[default]
    Stop,
    /// The token limit was reached.
    Length,
    /// A filter stopped the reply.
    ContentFilter,
    /// This value.
    Other(String),
}

impl Reply {
    /// Creates a successful reply with this text, in chunks of eight characters.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: String::new(),
            media: Vec::new(),
            tool_calls: Vec::new(),
            refusal: None,
            finish: Finish::Stop,
            model: "mock-model".to_owned(),
            usage: (11, 7),
            chunk_size: 8,
            status: 200,
            headers: Vec::new(),
            raw: None,
            error: None,
            packet_size: None,
            interrupt_after: None,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            hangs: false,
            when: Vec::new(),
        }
    }

    /// Creates an error reply with this status, in the vendor's format.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self { status, error: Some(message.into()), ..Self::text("") }
    }

    /// Creates a reply that calls these tools: their names, and the arguments as JSON. Their identifiers are `call_mock_0`,
    /// `call_mock_1`, ….
    pub fn tool_calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        calls.into_iter().fold(Self::text(""), |reply, (name, arguments)| reply.tool_call(name, arguments))
    }

    /// Creates a reply with this body.
    pub fn raw(body: impl Into<String>) -> Self {
        Self { raw: Some(body.into()), ..Self::text("") }
    }

    /// Sets the length of each chunk of text, in characters.
    #[must_use]
    pub fn chunk_size(self, characters: usize) -> Self {
        Self { chunk_size: characters.max(1), ..self }
    }

    /// Adds reasoning before the text.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        Self { reasoning: text.into(), ..self }
    }

    /// Adds a media item.
    #[must_use]
    pub fn media(mut self, media_type: impl Into<String>, base64: impl Into<String>) -> Self {
        self.media.push(Media { media_type: media_type.into(), data: base64.into() });
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn tool_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let id = format!("call_mock_{}", self.tool_calls.len());
        self.tool_calls.push(ToolCall { id, name: name.into(), arguments: arguments.into() });
        self
    }

    /// Refuses with this explanation.
    #[must_use]
    pub fn refusal(self, explanation: impl Into<String>) -> Self {
        Self { refusal: Some(explanation.into()), ..self }
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn finish(self, finish: Finish) -> Self {
        Self { finish, ..self }
    }

    /// Sets the name of the model.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Sets the token counts, input and output.
    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Self {
        Self { usage: (input, output), ..self }
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends an error in the vendor's format after the text, within the stream.
    #[must_use]
    pub fn stream_error(self, message: impl Into<String>) -> Self {
        Self { error: Some(message.into()), ..self }
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn interrupt_after(self, bytes: usize) -> Self {
        Self { interrupt_after: Some(bytes), ..self }
    }

    /// Sends the body in packets of this many bytes, split at any position.
    #[must_use]
    pub fn packet_size(self, bytes: usize) -> Self {
        Self { packet_size: Some(bytes.max(1)), ..self }
    }

    /// Delays the status and headers.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Pauses between two chunks.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Keeps the connection open after the last chunk, without sending anything.
    #[must_use]
    pub fn hang(self) -> Self {
        Self { hangs: true, ..self }
    }

    /// Replies only to requests whose body contains this text, however often they come. Several texts must all be in
    /// the body.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>) -> Self {
        self.when.push(text.into());
        self
    }

    /// Returns whether the reply is only for some requests, and this body is one of them.
    pub(crate) fn is_for(&self, body: &str) -> bool {
        !self.when.is_empty() && self.when.iter().all(|text| body.contains(text))
    }

    /// Returns the chunks of the text; at least one, which may be empty, unless the reply calls tools.
    pub(crate) fn text_chunks(&self) -> Vec<String> {
        if self.has_text() { in_chunks(&self.text, self.chunk_size) } else { Vec::new() }
    }

    /// Returns whether the reply has text, which may be empty. Replies that only call tools have none.
    pub(crate) fn has_text(&self) -> bool {
        !self.text.is_empty() || self.tool_calls.is_empty()
    }

    /// Returns the chunks of a call's arguments.
    pub(crate) fn argument_chunks(&self, call: &ToolCall) -> Vec<String> {
        in_chunks(&call.arguments, self.chunk_size)
    }

    /// Returns the chunks of the reasoning; none if it is empty.
    pub(crate) fn reasoning_chunks(&self) -> Vec<String> {
        if self.reasoning.is_empty() { Vec::new() } else { in_chunks(&self.reasoning, self.chunk_size) }
    }
}

fn in_chunks(text: &str, characters: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let chunks: Vec<String> = letters.chunks(characters).map(|chunk| chunk.iter().collect()).collect();
    if chunks.is_empty() { vec![String::new()] } else { chunks }
}

// Replies from JSON, for programs in other languages.

impl Reply {
    /// Reads a reply: `{"text": "…"}`, or `{"status": 429, "message": "…"}`, or `{"raw": "…"}`. Optional
    /// fields are `media` (`[{"media_type", "data"}]`, base64), `tool_calls` (`[{"name", "arguments"}]`), `reasoning`, `refusal`, `finish`, `model`, `usage` (`[in, out]`),
    /// `chunk_size`, `packet_size`, `interrupt_after`, `delay_ms`, `when`, `pause_ms`, `hang` and `headers`. A `text` that is not a string
    /// is sent as JSON.
    ///
    /// # Errors
    /// Fails if a field is unknown or has the wrong type.
    pub fn from_json(script: &Value) -> Result<Self, String> {
        let fields = script.as_object().ok_or("a reply must be an object")?;
        fields.iter().try_fold(Self::text(""), |reply, (key, value)| {
            reply.set(key, value).ok_or_else(|| format!("unknown or invalid field `{key}`: {value}"))
        })
    }

    fn set(self, key: &str, value: &Value) -> Option<Self> {
        Some(match key {
            "text" => Self { text: text(value).unwrap_or_else(|| value.to_string()), ..self },
            "when" => self.when(text(value)?),
            "raw" => Self { raw: Some(text(value)?), ..self },
            "message" => self.stream_error(text(value)?),
            "status" => self.status(u16::try_from(value.as_u64()?).ok()?),
            "reasoning" => self.reasoning(text(value)?),
            "refusal" => self.refusal(text(value)?),
            "finish" => self.finish(finish(value.as_str()?)),
            "model" => self.model(text(value)?),
            "media" => value.as_array()?.iter().try_fold(self, |reply, item| {
                Some(reply.media(text(item.get("media_type")?)?, text(item.get("data")?)?))
            })?,
            "tool_calls" => value.as_array()?.iter().try_fold(self, |reply, call| {
                let arguments = call.get("arguments")?;
                let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                Some(reply.tool_call(call.get("name")?.as_str()?, text))
            })?,
            "usage" => self.usage(value.get(0)?.as_u64()?, value.get(1)?.as_u64()?),
            "chunk_size" => self.chunk_size(size(value)?),
            "packet_size" => self.packet_size(size(value)?),
            "interrupt_after" => self.interrupt_after(size(value)?),
            "delay_ms" => self.delay(Duration::from_millis(value.as_u64()?)),
            "pause_ms" => self.pause(Duration::from_millis(value.as_u64()?)),
            "hang" => Self { hangs: value.as_bool()?, ..self },
            "headers" => value
                .as_object()?
                .iter()
                .try_fold(self, |reply, (name, value)| Some(reply.header(name, value.as_str()?)))?,
            _ => return None,
        })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn size(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn script_and_builder_create_the_same_reply() {
        let script = json!({ "text": { "ok": true }, "finish": "length", "usage": [1, 2], "delay_ms": 3,
            "headers": { "x-a": "b" }, "chunk_size": 1 });
        let built =
            Reply::text(r#"{"ok":true}"#).finish(Finish::Length).usage(1, 2).chunk_size(1).header("x-a", "b");
        assert_eq!(Reply::from_json(&script), Ok(built.delay(Duration::from_millis(3))));
        let calls =
            Reply::from_json(&json!({ "tool_calls": [{ "name": "search", "arguments": { "q": 1 } }] }));
        assert_eq!(calls, Ok(Reply::tool_calls([("search", r#"{"q":1}"#)])));
        let failure = Reply::from_json(&json!({ "status": 429, "message": "slow" }));
        assert_eq!(failure, Ok(Reply::error(429, "slow")));
    }

    #[test]
    fn rejects_unknown_and_invalid_fields() {
        assert_eq!(
            Reply::from_json(&json!({ "hang": "x" })).unwrap_err(),
            "unknown or invalid field `hang`: \"x\""
        );
        assert!(Reply::from_json(&json!({ "txt": "" })).is_err());
        assert!(Reply::from_json(&json!([])).is_err());
    }
}
