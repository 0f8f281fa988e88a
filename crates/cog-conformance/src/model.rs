//! The scripted model of a case, on top of the testkit's server.

use cog_testkit::{Mock, Received, Wire};
use serde_json::Value;

use crate::reply::Reply;

/// A model that listens on this machine until the step ends.
pub(crate) struct Model {
    mock: Mock,
    wire: Wire,
}

impl Model {
    /// Starts the model, if there are replies. They are sent in order, and the last one repeats.
    pub(crate) fn start(replies: &[Reply], base: &Value) -> Result<Option<Self>, String> {
        let Some(first) = replies.first() else { return Ok(None) };
        let scripts = replies.iter().map(|reply| cog_testkit::Reply::from_json(&reply.script(base)));
        let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
        let mock = Mock::try_start(scripts).map_err(|error| error.to_string())?;
        Ok(Some(Self { mock, wire: wire(first)? }))
    }

    /// The environment variables that select it.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let (key, address) = match self.wire {
            Wire::OpenAi | Wire::OpenAiResponses | Wire::OpenAiImages => {
                ("OPENAI_API_KEY", "OPENAI_BASE_URL")
            }
            Wire::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            Wire::Gemini => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
            Wire::Ollama => ("OLLAMA_API_KEY", "OLLAMA_HOST"),
        };
        let protocol = self.wire.protocol_setting();
        let always = [
            ("LLM_PROVIDER", self.wire.provider().to_owned()),
            (key, "key-of-a-test".to_owned()),
            (address, self.mock.base_url(self.wire)),
        ];
        always.into_iter().chain(protocol.map(|name| ("OPENAI_PROTOCOL", name.to_owned()))).collect()
    }

    /// The number of replies that the client interrupted.
    pub(crate) fn interrupted(&self) -> usize {
        self.mock.interrupted()
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let asked = self.mock.requests().into_iter().filter(|request| request.method == "POST");
        asked.map(|Received { body, .. }| body).collect()
    }
}

fn wire(reply: &Reply) -> Result<Wire, String> {
    let name = reply.0.get("protocol").and_then(Value::as_str).unwrap_or("openai");
    Wire::ALL.into_iter().find(|wire| wire.name() == name).ok_or_else(|| format!("no such protocol: {name}"))
}
