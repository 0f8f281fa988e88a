//! Replies from JSON, for people and for programs in other languages.

use std::time::Duration;

use serde_json::Value;

use crate::{Finish, Reply};

impl Reply {
    /// Reads a reply: `{"text": "…"}`, or `{"status": 429, "message": "…"}`, or `{"raw": "…"}`, and with it
    /// any of `media` (`[{"media_type", "data"}]`, base64), `reasoning`, `refusal`, `finish`, `model`, `usage`
    /// (`[in, out]`), `pieces`, `network`, `cut`, `delay_ms`, `pause_ms`, `hang`, `headers`. A `text` that is no string is sent as JSON.
    ///
    /// # Errors
    /// A field that is not known, or has another type.
    pub fn from_json(script: &Value) -> Result<Self, String> {
        let fields = script.as_object().ok_or("a reply is an object")?;
        fields.iter().try_fold(Self::text(""), |reply, (key, value)| {
            reply.set(key, value).ok_or_else(|| format!("`{key}`: {value} is not understood"))
        })
    }

    fn set(self, key: &str, value: &Value) -> Option<Self> {
        let text = || value.as_str().map(str::to_owned);
        let number = || value.as_u64().and_then(|number| usize::try_from(number).ok());
        Some(match key {
            "text" => Self { text: text().unwrap_or_else(|| value.to_string()), ..self },
            "raw" => Self { raw: Some(text()?), ..self },
            "message" => self.fault(text()?),
            "status" => self.status(u16::try_from(value.as_u64()?).ok()?),
            "reasoning" => self.reasoning(text()?),
            "refusal" => self.refusal(text()?),
            "finish" => self.finish(finish(value.as_str()?)),
            "model" => self.model(text()?),
            "media" => value.as_array()?.iter().try_fold(self, |reply, medium| {
                let text = |key: &str| Some(medium.get(key)?.as_str()?.to_owned());
                Some(reply.media(text("media_type")?, text("data")?))
            })?,
            "usage" => self.usage(value.get(0)?.as_u64()?, value.get(1)?.as_u64()?),
            "pieces" => self.pieces(number()?),
            "network" => self.network(number()?),
            "cut" => self.cut(number()?),
            "delay_ms" => self.delay(Duration::from_millis(value.as_u64()?)),
            "pause_ms" => self.pause(Duration::from_millis(value.as_u64()?)),
            "hang" => Self { hang: value.as_bool()?, ..self },
            "headers" => value
                .as_object()?
                .iter()
                .try_fold(self, |reply, (name, value)| Some(reply.header(name, value.as_str()?)))?,
            _ => return None,
        })
    }
}

fn finish(word: &str) -> Finish {
    match word {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        other => Finish::Word(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_script_says_what_the_builder_says() {
        let script = json!({ "text": { "ok": true }, "finish": "length", "usage": [1, 2], "delay_ms": 3,
            "headers": { "x-a": "b" }, "pieces": 1 });
        let built =
            Reply::text(r#"{"ok":true}"#).finish(Finish::Length).usage(1, 2).pieces(1).header("x-a", "b");
        assert_eq!(Reply::from_json(&script), Ok(built.delay(Duration::from_millis(3))));
        let failure = Reply::from_json(&json!({ "status": 429, "message": "slow" }));
        assert_eq!(failure, Ok(Reply::error(429, "slow")));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        assert_eq!(Reply::from_json(&json!({ "cut": "x" })).unwrap_err(), "`cut`: \"x\" is not understood");
        assert!(Reply::from_json(&json!({ "txt": "" })).is_err());
        assert!(Reply::from_json(&json!([])).is_err());
    }
}
