//! Reads replies from JSON, for programs in other languages.

use std::time::Duration;

use serde_json::Value;

use crate::{Finish, Reply};

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
        let text = || value.as_str().map(str::to_owned);
        let number = || value.as_u64().and_then(|number| usize::try_from(number).ok());
        Some(match key {
            "text" => Self { text: text().unwrap_or_else(|| value.to_string()), ..self },
            "when" => self.when(text()?),
            "raw" => Self { raw: Some(text()?), ..self },
            "message" => self.stream_error(text()?),
            "status" => self.status(u16::try_from(value.as_u64()?).ok()?),
            "reasoning" => self.reasoning(text()?),
            "refusal" => self.refusal(text()?),
            "finish" => self.finish(finish(value.as_str()?)),
            "model" => self.model(text()?),
            "media" => value.as_array()?.iter().try_fold(self, |reply, item| {
                let text = |key: &str| Some(item.get(key)?.as_str()?.to_owned());
                Some(reply.media(text("media_type")?, text("data")?))
            })?,
            "tool_calls" => value.as_array()?.iter().try_fold(self, |reply, call| {
                let arguments = call.get("arguments")?;
                let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                Some(reply.tool_call(call.get("name")?.as_str()?, text))
            })?,
            "usage" => self.usage(value.get(0)?.as_u64()?, value.get(1)?.as_u64()?),
            "chunk_size" => self.chunk_size(number()?),
            "packet_size" => self.packet_size(number()?),
            "interrupt_after" => self.interrupt_after(number()?),
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
