//! Replies in the form that a request asks for (ruling R91). Scripts contain envelopes; a request may ask for the data alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::Reply;

/// The section of a prompt that describes the envelope begins its list of members with this.
const ENVELOPE: &str = "- `ok`: ";
/// The question of a call that explains an answer begins with this.
const QUESTION: &str = "Explain in one or two sentences";

/// Translates replies, and remembers the rationales that requests did not ask for.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// The answers without their rationale, and the rationales.
    unexplained: Mutex<Vec<(Value, String)>>,
}

impl Forms {
    /// Returns the explanation that a request asks for; none if it asks for an answer.
    pub(crate) fn explanation(&self, request: &Value) -> Option<Reply> {
        let mut texts = Vec::new();
        collect(request, &mut texts);
        texts.iter().find(|text| text.starts_with(QUESTION))?;
        let answers = self.unexplained();
        let is_said = |answer: &Value| {
            texts.iter().any(|text| serde_json::from_str(text).is_ok_and(|said: Value| said == *answer))
        };
        let rationale =
            answers.iter().rev().find(|(answer, _)| is_said(answer)).map(|(_, rationale)| rationale);
        Some(Reply::text(json!({ "rationale": rationale.map_or("", String::as_str) }).to_string()))
    }

    /// Returns a reply in the form that a request asks for. One that is no envelope stays as it is.
    pub(crate) fn translated(&self, request: &Value, reply: Reply) -> Reply {
        let Ok(Value::Object(mut envelope)) = serde_json::from_str(&reply.text) else { return reply };
        let asks_for_envelope = request.to_string().contains(ENVELOPE);
        if asks_for_envelope || !envelope.contains_key("ok") {
            return reply;
        }
        if envelope.get("ok") == Some(&Value::Bool(false)) {
            let error = envelope.remove("error").unwrap_or_default();
            return Reply { text: json!({ "error": error }).to_string(), ..reply };
        }
        let mut data = envelope.remove("data").unwrap_or_default();
        if !asks_for_rationale(request)
            && let Some(rationale) = data.as_object_mut().and_then(|data| data.remove("rationale"))
            && let Value::String(rationale) = rationale
        {
            self.unexplained().push((data.clone(), rationale));
        }
        Reply { text: data.to_string(), ..reply }
    }

    fn unexplained(&self) -> MutexGuard<'_, Vec<(Value, String)>> {
        self.unexplained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a schema of the request has a rationale.
fn asks_for_rationale(request: &Value) -> bool {
    match request {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (name == "properties" && value.get("rationale").is_some()) || asks_for_rationale(value)
        }),
        Value::Array(items) => items.iter().any(asks_for_rationale),
        // Where a provider takes no schema, the prompt contains it.
        Value::String(text) => text.contains("\"rationale\""),
        _ => false,
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        _ => {}
    }
}
