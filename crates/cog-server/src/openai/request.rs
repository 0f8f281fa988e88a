//! What a request states beside its messages.

use cog_json::{Node, Value};
use cog_spec::Code;

use super::{
    error::OpenAiError,
    messages::Message,
    module_name,
    parameters::{CHAT, Parameters, RESPONSES, Rule, check, flag, keyword, object, text},
    response_format::ResponseFormat,
};
use crate::request::{self, MediaOutput, Options};

/// One of OpenAI's interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

/// A request whose parameters are checked.
pub(super) struct ParsedRequest {
    /// The request, which contains the messages.
    body: Value,
    api: Api,
    /// The name of the module.
    pub(super) module: String,
    pub(super) format: ResponseFormat,
    pub(super) options: Box<Options>,
    pub(super) stream: bool,
    /// Whether the stream of a chat completion ends with the tokens.
    pub(super) include_usage: bool,
}

const REASONING: &Parameters = &[("effort", Rule::Read)];
const TEXT: &Parameters = &[("format", Rule::Read), ("verbosity", Rule::Read)];
const OBFUSCATION: (&str, Rule) = ("include_obfuscation", Rule::Only("false"));

impl ParsedRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// E1000 to E1004, with the name of the parameter.
    pub(super) fn parse(api: Api, bytes: &[u8]) -> Result<Self, OpenAiError> {
        let body = request::object(bytes)?;
        let node = body.node();
        check(node, "", api.parameters())?;
        let Some(model) = text(node, "", "model")? else {
            return Err(OpenAiError::new(Code::MissingRequiredField, "model", "`model` is missing")
                .suggest("Name a module: GET /v1/models lists them."));
        };
        let (module, (format, options)) = (module_name(model).to_owned(), api.read(node)?);
        let (stream, include_usage) = (flag(node, "", "stream")?, api.include_usage(node)?);
        Ok(Self { api, module, format, options, stream, include_usage, body })
    }

    /// Returns the messages, from the first.
    ///
    /// # Errors
    /// E1001 to E1004, with the path of the message.
    pub(super) fn messages(&self) -> Result<Vec<Message>, OpenAiError> {
        let name = self.api.messages_name();
        match self.body.get(name) {
            Some(text) if self.api == Api::Responses && text.is_string() => {
                Ok(vec![Message::from_user_text(text.as_str().unwrap_or_default(), name)])
            }
            list => Message::read_list(list, name),
        }
    }
}

impl Api {
    /// Returns the parameter with the messages.
    pub(super) const fn messages_name(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Responses => "input",
        }
    }

    const fn parameters(self) -> &'static Parameters {
        match self {
            Self::Chat => CHAT,
            Self::Responses => RESPONSES,
        }
    }

    /// Reads the format of the answer and the options of the run.
    fn read(self, request: Node<'_>) -> Result<(ResponseFormat, Box<Options>), OpenAiError> {
        // An image is content of the answer: the client has no second request for it.
        let mut options = Box::new(Options { media: MediaOutput::Base64, ..Options::default() });
        let generation = &mut options.run.generation;
        let format = match self {
            Self::Chat => {
                generation.effort = keyword(request, "", "reasoning_effort")?;
                generation.verbosity = keyword(request, "", "verbosity")?;
                ResponseFormat::from_chat(request.get("response_format"))?
            }
            Self::Responses => {
                if let Some(reasoning) = object(request, "reasoning", REASONING)? {
                    generation.effort = keyword(reasoning, "reasoning.", "effort")?;
                }
                match object(request, "text", TEXT)? {
                    Some(text) => {
                        generation.verbosity = keyword(text, "text.", "verbosity")?;
                        ResponseFormat::from_response(text.get("format"))?
                    }
                    None => ResponseFormat::default(),
                }
            }
        };
        if text(request, "", "service_tier")? != Some("default") {
            generation.service_tier = keyword(request, "", "service_tier")?;
        }
        Ok((format, options))
    }

    /// Reads `stream_options`.
    fn include_usage(self, request: Node<'_>) -> Result<bool, OpenAiError> {
        let rules: &Parameters = match self {
            Self::Chat => &[("include_usage", Rule::Read), OBFUSCATION],
            Self::Responses => &[OBFUSCATION],
        };
        let Some(options) = object(request, "stream_options", rules)? else { return Ok(false) };
        if !flag(request, "", "stream")? {
            let message = "`stream_options` is not supported without `stream`";
            return Err(OpenAiError::new(Code::UnsupportedValue, "stream_options", message)
                .suggest("Remove it, or set `stream` to true."));
        }
        flag(options, "stream_options.", "include_usage")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(api: Api, request: &str) -> Result<ParsedRequest, String> {
        ParsedRequest::parse(api, request.as_bytes()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn options_have_the_values_of_the_runtime() {
        for (api, request) in [
            (
                Api::Chat,
                r#"{"model": "a", "reasoning_effort": "low", "verbosity": "high", "service_tier": "default"}"#,
            ),
            (
                Api::Responses,
                r#"{"model": "module:a", "reasoning": {"effort": "low"}, "text": {"verbosity": "high"}}"#,
            ),
        ] {
            let parsed = parse(api, request).unwrap();
            let generation = &parsed.options.run.generation;
            assert_eq!((parsed.module.as_str(), parsed.stream), ("a", false));
            assert_eq!(generation.effort.map(|effort| effort.as_str()), Some("low"));
            assert_eq!(generation.verbosity.map(|verbosity| verbosity.as_str()), Some("high"));
            assert_eq!(generation.service_tier, None);
        }
        let error = parse(Api::Chat, r#"{"model": "a", "verbosity": "loud"}"#).err().unwrap();
        assert!(error.contains("low, medium, high"), "{error}");
    }

    #[test]
    fn options_of_a_stream_belong_to_a_stream() {
        let chat = |more: &str| parse(Api::Chat, &format!(r#"{{"model": "a", {more}}}"#));
        let parsed = chat(r#""stream": true, "stream_options": {"include_usage": true}"#).unwrap();
        assert!(parsed.stream && parsed.include_usage);
        let error = chat(r#""stream_options": {"include_usage": true}"#).err().unwrap();
        assert!(error.contains("without `stream`"), "{error}");
        let error = chat(r#""stream": true, "stream_options": {"include_obfuscation": true}"#).err().unwrap();
        assert!(error.contains("stream_options.include_obfuscation"), "{error}");
        assert!(chat(r#""stream": 1"#).err().unwrap().contains("true or false"));
    }
}
