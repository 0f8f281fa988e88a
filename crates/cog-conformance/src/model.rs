//! The scripted model behind a case.

use cog_spec::Form;
use cog_testkit::{Mock, Wire};
use serde_json::Value;

use crate::base::Reply;

/// The scripted model: a mock that listens on this machine until it is dropped.
pub(crate) struct Model {
    mock: Mock,
    wire: Wire,
    /// The form in which the program asks, if it is set.
    form: Option<&'static Form>,
}

impl Model {
    /// Starts the model, if there are replies. They are sent in order, and the last one repeats. With a form, it replies in what
    /// each request asks for.
    pub(crate) fn start(
        replies: &[Reply],
        base: &Value,
        form: Option<&'static Form>,
    ) -> Result<Option<Self>, String> {
        let Some(first) = replies.first() else { return Ok(None) };
        let scripts = replies.iter().map(|reply| cog_testkit::Reply::from_json(&reply.script(base)));
        let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
        let mock = Mock::try_start(scripts).map_err(|error| error.to_string())?;
        let mock = if form.is_some() { mock.in_requested_form() } else { mock };
        Ok(Some(Self { mock, wire: wire(first)?, form }))
    }

    /// Starts a model for OpenAI Chat Completions at this port, without replies. Port 0 is any free port.
    pub(crate) fn listen(port: u16) -> std::io::Result<Self> {
        Ok(Self { mock: Mock::try_start_at(port, [])?, wire: Wire::OpenAi, form: None })
    }

    /// Replaces the replies, and forgets the requests.
    pub(crate) fn reset(&self, replies: Vec<cog_testkit::Reply>) {
        self.mock.reset(replies);
    }

    /// Returns the environment variables that select it.
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
        let form = self.form.map(|form| ("COG_ASK", form.name.to_owned()));
        always
            .into_iter()
            .chain(protocol.map(|name| ("OPENAI_PROTOCOL", name.to_owned())))
            .chain(form)
            .collect()
    }

    /// Returns the number of replies that the client interrupted.
    pub(crate) fn interrupted(&self) -> usize {
        self.mock.interrupted()
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let requests = self.mock.requests().into_iter().filter(|request| request.method == "POST");
        requests.map(|request| request.body).collect()
    }
}

fn wire(reply: &Reply) -> Result<Wire, String> {
    let name = reply.0.get("protocol").and_then(Value::as_str).unwrap_or("openai");
    Wire::ALL.into_iter().find(|wire| wire.name() == name).ok_or_else(|| format!("no such protocol: {name}"))
}
