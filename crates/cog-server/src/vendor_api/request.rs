//! What a request states in addition to its messages.

use cog_json::{Node, Value};
use cog_module::Module;
use cog_schema::{Contract, Rules};
use cog_spec::{Code, ErrorBody, Format, Manifest, Tier};
use serde_json::{Map, json};

use super::{RequestError, anthropic, is_nothing, messages::Message, module_name};
use crate::request::{self, MediaOutput, Options};

/// An interface of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// `POST /v1/messages` of Anthropic.
    Messages,
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
    /// The sampling parameters, which have no effect.
    pub(super) sampling: Vec<&'static str>,
}

const REASONING: &Parameters = &[("effort", Rule::Read)];
const TEXT: &Parameters = &[("format", Rule::Read), ("verbosity", Rule::Read)];
const OUTPUT_CONFIG: &Parameters = &[("effort", Rule::Read), ("format", Rule::Read)];
const OBFUSCATION: (&str, Rule) = ("include_obfuscation", Rule::Only(&["false"]));

impl ParsedRequest {
    /// Parses the body of a request. Unless `is_lenient`, sampling parameters are refused.
    ///
    /// # Errors
    /// E1000 to E1004, with the name of the parameter.
    pub(super) fn parse(api: Api, bytes: &[u8], is_lenient: bool) -> Result<Self, RequestError> {
        let body = request::object(bytes)?;
        let node = body.node();
        let sampling = check(node, "", api.parameters())?;
        if let Some(name) = sampling.first().filter(|_| !is_lenient) {
            return Err(refused(name, name, ""));
        }
        let Some(model) = text(node, "", "model")? else {
            return Err(RequestError::new(Code::MissingRequiredField, "model", "`model` is missing")
                .suggest("Name a module: GET /v1/models lists them."));
        };
        let (module, (format, options)) = (module_name(model).to_owned(), api.read(node)?);
        let stream = flag(node, "", "stream")?;
        let include_usage = api.include_usage(node)?;
        Ok(Self { api, module, format, options, stream, include_usage, sampling, body })
    }

    /// Returns the messages, from the first.
    ///
    /// # Errors
    /// E1001 to E1004, with the path of the message.
    pub(super) fn messages(&self) -> Result<Vec<Message>, RequestError> {
        let name = self.api.messages_name();
        let mut messages = Vec::new();
        let system = match self.api {
            Api::Chat => None,
            Api::Responses => text(self.body.node(), "", "instructions")?.map(|_| "instructions"),
            Api::Messages => Some("system"),
        };
        if let Some((name, value)) = system.and_then(|name| Some((name, self.body.get(name)?)))
            && !is_nothing(value)
        {
            messages.push(Message::system(value, name)?);
        }
        match self.body.get(name) {
            Some(text) if self.api == Api::Responses && text.is_string() => {
                messages.push(Message::user(text.as_str().unwrap_or_default(), name));
            }
            list => messages.extend(Message::read_list(list, name)?),
        }
        Ok(messages)
    }
}

impl Api {
    /// Returns the parameter with the messages.
    pub(super) const fn messages_name(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "messages",
            Self::Responses => "input",
        }
    }

    const fn parameters(self) -> &'static Parameters {
        match self {
            Self::Chat => CHAT,
            Self::Responses => RESPONSES,
            Self::Messages => anthropic::PARAMETERS,
        }
    }

    /// Reads the format of the answer and the options of the run.
    fn read(self, request: Node<'_>) -> Result<(ResponseFormat, Box<Options>), RequestError> {
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
                        ResponseFormat::from_response(text.get("format"), "text.format")?
                    }
                    None => ResponseFormat::default(),
                }
            }
            Self::Messages => match object(request, "output_config", OUTPUT_CONFIG)? {
                Some(config) => {
                    generation.effort = keyword(config, "output_config.", "effort")?;
                    ResponseFormat::from_response(config.get("format"), "output_config.format")?
                }
                None => ResponseFormat::default(),
            },
        };
        if self != Self::Messages && text(request, "", "service_tier")? != Some("default") {
            generation.service_tier = keyword(request, "", "service_tier")?;
        }
        Ok((format, options))
    }

    /// Reads `stream_options`.
    fn include_usage(self, request: Node<'_>) -> Result<bool, RequestError> {
        let rules: &'static Parameters = match self {
            Self::Chat => &[("include_usage", Rule::Read), OBFUSCATION],
            Self::Responses | Self::Messages => &[OBFUSCATION],
        };
        let Some(options) = object(request, "stream_options", rules)? else { return Ok(false) };
        flag(options, "stream_options.", "include_usage")
    }
}

// `response_format`: what the client expects of the answer, in addition to the schema of the module.

/// The schema that the client expects, if it has sent one.
#[derive(Debug, Default)]
pub(super) struct ResponseFormat(Option<Expected>);

#[derive(Debug)]
struct Expected {
    contract: Contract,
    /// The parameter with the schema.
    param: &'static str,
}

/// The members of a format that are read, and those that change nothing.
const FORMAT: &Parameters = &[("type", Rule::Read)];
const CHAT_FORMAT: &Parameters = &[("type", Rule::Read), ("json_schema", Rule::Read)];
const SCHEMA: &Parameters =
    &[("schema", Rule::Read), ("name", Rule::Label), ("description", Rule::Label), ("strict", Rule::Label)];
const RESPONSE_FORMAT: &Parameters = &[
    ("type", Rule::Read),
    ("schema", Rule::Read),
    ("name", Rule::Label),
    ("description", Rule::Label),
    ("strict", Rule::Label),
];

impl ResponseFormat {
    /// Reads `response_format` of a chat completion: text, `json_object` or `json_schema`.
    ///
    /// # Errors
    /// E1001 for a schema that is not valid, E1004 for another type.
    pub(super) fn from_chat(format: Option<Node<'_>>) -> Result<Self, RequestError> {
        let param = "response_format";
        let Some(format) = expects_schema(format, param, CHAT_FORMAT)? else { return Ok(Self(None)) };
        let inner = format.get("json_schema").filter(|inner| inner.is_object());
        inner.map_or(Ok(Vec::new()), |inner| check(inner, "response_format.json_schema.", SCHEMA))?;
        Self::compile(inner, param, "response_format.json_schema.schema")
    }

    /// Reads `text.format` of a response, or `output_config.format` of a message.
    ///
    /// # Errors
    /// The errors of [`ResponseFormat::from_chat`].
    pub(super) fn from_response(format: Option<Node<'_>>, param: &'static str) -> Result<Self, RequestError> {
        let Some(format) = expects_schema(format, param, RESPONSE_FORMAT)? else { return Ok(Self(None)) };
        Self::compile(Some(format), param, &format!("{param}.schema"))
    }

    fn compile(outer: Option<Node<'_>>, param: &'static str, place: &str) -> Result<Self, RequestError> {
        match outer.and_then(|outer| outer.get("schema")).filter(|schema| schema.is_object()) {
            Some(schema) => Ok(Self(Some(Expected { contract: compile(schema, place)?, param }))),
            None => {
                let message = format!("`{place}` must be an object");
                Err(RequestError::new(Code::MissingRequiredField, place, message))
            }
        }
    }

    /// Checks that an answer of the module can fit, before the model is paid.
    ///
    /// # Errors
    /// E1004 with the first member that cannot.
    pub(super) fn check_module(&self, module: &Module) -> Result<(), RequestError> {
        let Some(Expected { contract, param }) = &self.0 else { return Ok(()) };
        let shapes = contract.shape("input").zip(module.contract.shape("data"));
        let Some(found) = shapes.and_then(|(expected, data)| expected.exclusion(&data)) else {
            return Ok(());
        };
        let name = &module.manifest.name;
        let message = format!("no answer of `{name}` can fit `{param}`: {found}");
        Err(RequestError::new(Code::UnsupportedValue, *param, message)
            .suggest(format!("Remove `{param}`, or use the schema of the module: GET /v1/modules/{name}.")))
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// E3001 with every violation.
    pub(super) fn check(&self, data: &Value) -> Result<(), ErrorBody> {
        let Some(Expected { contract, param }) = &self.0 else { return Ok(()) };
        let mut violations = contract.check_input(data.node());
        let Some(first) = violations.first_mut() else { return Ok(()) };
        let message =
            format!("the answer does not fit `{param}`: {}: {}", data_path(&first.path), first.message);
        for violation in &mut violations {
            violation.path = data_path(&violation.path);
        }
        Err(ErrorBody::new(Code::OutputSchemaViolation, message)
            .with_recoverable(false)
            .suggest(format!("Remove `{param}`, or use the schema of the module: GET /v1/modules/NAME."))
            .with_details(Value::from(json!({ "violations": violations }))))
    }
}

/// Returns the path of a violation of an input as a path of the data.
fn data_path(path: &str) -> String {
    path.strip_prefix("input").map_or_else(|| path.to_owned(), |rest| format!("data{rest}"))
}

/// Returns the format if it has a schema.
fn expects_schema<'a>(
    format: Option<Node<'a>>,
    param: &str,
    rules: &'static Parameters,
) -> Result<Option<Node<'a>>, RequestError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Node::as_str) {
        Some("text" | "json_object") => check(format, &format!("{param}."), FORMAT).map(|_| None),
        Some("json_schema") => check(format, &format!("{param}."), rules).map(|_| Some(format)),
        other => {
            let other = other.map(shown).unwrap_or_default();
            let param = format!("{param}.type");
            let message = format!("`{param}`: `{other}` is not supported");
            Err(RequestError::new(Code::UnsupportedValue, param, message)
                .suggest("Use text, json_object or json_schema."))
        }
    }
}

fn compile(schema: Node<'_>, param: &str) -> Result<Contract, RequestError> {
    let schema = schema.to_serde();
    let mut document = Map::new();
    for key in ["$defs", "definitions"] {
        document.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    document.insert("input".to_owned(), schema);
    let manifest = Manifest::with_defaults("response_format", Format::V25, Some(Tier::Exploration));
    Contract::compile(&serde_json::Value::Object(document), &Rules::from(&manifest)).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        RequestError::new(Code::InvalidInput, param, format!("`{param}`: {}", problems.join("; ")))
    })
}

// The parameters of a request: each is read, a label, or refused by its name.

/// How a parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is read.
    Read,
    /// A name or a note for a vendor, or a word about tools that there are none of. It changes no answer.
    Label,
    /// Only these values as JSON, which change nothing.
    Only(&'static [&'static str]),
    /// Only a list of these strings: they add to the answer what it never has.
    Within(&'static [&'static str]),
    /// How a model samples, and how much it may write. Only these values as JSON change nothing.
    Sampling(&'static [&'static str]),
}

/// The parameters that an object may have, each with its rule. Null and empty values are accepted for each.
pub(super) type Parameters = [(&'static str, Rule)];

/// The parameters of a chat completion.
const CHAT: &Parameters = &[
    ("model", Rule::Read),
    ("messages", Rule::Read),
    ("response_format", Rule::Read),
    ("reasoning_effort", Rule::Read),
    ("verbosity", Rule::Read),
    ("service_tier", Rule::Read),
    ("stream", Rule::Read),
    ("stream_options", Rule::Read),
    ("metadata", Rule::Label),
    ("prompt_cache_key", Rule::Label),
    ("safety_identifier", Rule::Label),
    ("user", Rule::Label),
    ("parallel_tool_calls", Rule::Label),
    ("tool_choice", NO_TOOL),
    ("function_call", NO_TOOL),
    ("logprobs", Rule::Only(&["false"])),
    ("modalities", Rule::Only(&[r#"["text"]"#])),
    ("n", Rule::Only(&["1"])),
    ("store", Rule::Only(&["false"])),
    ("top_logprobs", Rule::Only(&["0"])),
    ("frequency_penalty", Rule::Sampling(&["0"])),
    ("logit_bias", Rule::Sampling(&[])),
    ("max_completion_tokens", Rule::Sampling(&[])),
    ("max_tokens", Rule::Sampling(&[])),
    ("presence_penalty", Rule::Sampling(&["0"])),
    ("seed", Rule::Sampling(&[])),
    ("temperature", Rule::Sampling(&["1"])),
    ("top_k", Rule::Sampling(&[])),
    ("top_p", Rule::Sampling(&["1"])),
];

/// A client without tools may leave the choice to the model.
const NO_TOOL: Rule = Rule::Only(&["\"auto\"", "\"none\""]);

/// The parameters of a response.
const RESPONSES: &Parameters = &[
    ("model", Rule::Read),
    ("input", Rule::Read),
    ("text", Rule::Read),
    ("reasoning", Rule::Read),
    ("service_tier", Rule::Read),
    ("stream", Rule::Read),
    ("stream_options", Rule::Read),
    ("metadata", Rule::Label),
    ("prompt_cache_key", Rule::Label),
    ("safety_identifier", Rule::Label),
    ("user", Rule::Label),
    ("instructions", Rule::Read),
    ("parallel_tool_calls", Rule::Label),
    ("tool_choice", NO_TOOL),
    ("background", Rule::Only(&["false"])),
    ("include", Rule::Within(&["reasoning.encrypted_content", "web_search_call.action.sources"])),
    ("store", Rule::Only(&["false"])),
    ("top_logprobs", Rule::Only(&["0"])),
    ("truncation", Rule::Only(&["\"disabled\""])),
    ("max_output_tokens", Rule::Sampling(&[])),
    ("temperature", Rule::Sampling(&["1"])),
    ("top_p", Rule::Sampling(&["1"])),
];

/// Returns what to do about a parameter that is refused.
fn advice(name: &str) -> &'static str {
    match name {
        "tools"
        | "tool_choice"
        | "parallel_tool_calls"
        | "max_tool_calls"
        | "functions"
        | "function_call" => {
            "Remove it: the manifest of the module lists its tools, and the runtime calls them."
        }
        "n" => "Send n requests.",
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "stop" => {
            "Remove it: an answer that ends early does not fit the schema of the module."
        }
        "prompt" => {
            "Remove it: a module has its own prompt. Send text for the module in a field of the input."
        }
        "previous_response_id" | "conversation" => {
            "Send the earlier messages in `input`: no response is stored."
        }
        "store" => "Remove it: no response is stored.",
        "background" => {
            "Remove it. POST /v1/modules/NAME/execute with `_options.detach` runs in the background."
        }
        _ => "Remove it: the module and the settings of the server decide.",
    }
}

/// Checks that no parameter would be ignored, except sampling parameters: their names are returned. `prefix` is the path before
/// the names.
///
/// # Errors
/// E1004 with the name of the first one.
pub(super) fn check(
    object: Node<'_>,
    prefix: &str,
    rules: &'static Parameters,
) -> Result<Vec<&'static str>, RequestError> {
    let mut sampling = Vec::new();
    for (key, value) in object.members().filter(|(_, value)| !is_nothing(*value)) {
        let Some((known, rule)) = rules.iter().find(|(known, _)| *known == key) else {
            return Err(refused(&format!("{prefix}{}", shown(key)), key, ""));
        };
        let only = match rule {
            Rule::Read | Rule::Label => continue,
            Rule::Only(only) | Rule::Sampling(only) if only.iter().any(|json| is(value, json)) => continue,
            Rule::Sampling(_) => {
                sampling.push(*known);
                continue;
            }
            Rule::Within(names) => {
                let mut elements = value.elements();
                if value.is_array()
                    && elements.all(|one| one.as_str().is_some_and(|one| names.contains(&one)))
                {
                    continue;
                }
                names
            }
            Rule::Only(only) => only,
        };
        return Err(refused(&format!("{prefix}{known}"), key, &only.join(", ")));
    }
    Ok(sampling)
}

/// The error of a parameter at a path, of which only these values are supported.
fn refused(path: &str, key: &str, only: &str) -> RequestError {
    let except = if only.is_empty() { String::new() } else { format!(", except {only}") };
    let message = format!("`{path}` is not supported{except}");
    RequestError::new(Code::UnsupportedValue, path, message).suggest(advice(key))
}

/// Whether a value is this JSON. Numbers are compared by their value: a client may send `1.0`.
fn is(value: Node<'_>, json: &str) -> bool {
    match (value.as_f64(), json.parse::<f64>()) {
        (Some(found), Ok(only)) => (found - only).abs() < f64::EPSILON,
        _ => value.to_value().to_string() == json,
    }
}

/// Returns the beginning of a name that a client has sent.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// Returns a parameter that is an object, after a check of its members.
///
/// # Errors
/// E1003 for another type, E1004 for a member that would be ignored.
pub(super) fn object<'a>(
    outer: Node<'a>,
    name: &str,
    rules: &'static Parameters,
) -> Result<Option<Node<'a>>, RequestError> {
    let Some(value) = outer.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    if !value.is_object() {
        return Err(mistyped(name, "an object"));
    }
    check(value, &format!("{name}."), rules)?;
    Ok(Some(value))
}

/// Returns a parameter that is text. `prefix` is the path before its name.
///
/// # Errors
/// E1003 for another type.
pub(super) fn text<'a>(object: Node<'a>, prefix: &str, name: &str) -> Result<Option<&'a str>, RequestError> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| mistyped(&format!("{prefix}{name}"), "a string"))
}

/// Returns a parameter that is true or false, and false if it is absent.
///
/// # Errors
/// E1003 for another type.
pub(super) fn flag(object: Node<'_>, prefix: &str, name: &str) -> Result<bool, RequestError> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(false) };
    value.as_bool().ok_or_else(|| mistyped(&format!("{prefix}{name}"), "true or false"))
}

/// Returns a parameter that is one of a list of words.
///
/// # Errors
/// E1003 for another type, E1004 with the allowed words.
pub(super) fn keyword<T: std::str::FromStr<Err = cog_spec::ParseEnumError>>(
    object: Node<'_>,
    prefix: &str,
    name: &str,
) -> Result<Option<T>, RequestError> {
    let Some(value) = text(object, prefix, name)? else { return Ok(None) };
    let name = format!("{prefix}{name}");
    value
        .parse()
        .map(Some)
        .map_err(|error| RequestError::new(Code::UnsupportedValue, &name, format!("`{name}`: {error}")))
}

fn mistyped(name: &str, expected: &str) -> RequestError {
    RequestError::new(Code::TypeMismatch, name, format!("`{name}` must be {expected}"))
}

#[cfg(test)]
mod response_format_tests {
    use super::*;

    fn read(format: &str) -> Result<ResponseFormat, String> {
        let format = Value::parse(format).unwrap();
        ResponseFormat::from_chat(Some(format.node())).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn format_of_a_response_has_the_schema_at_its_top() {
        let read = |format: &str| {
            let format = Value::parse(format).unwrap();
            ResponseFormat::from_response(Some(format.node()), "text.format")
                .map_err(|error| format!("{error:?}"))
        };
        let format = read(r#"{"type": "json_schema", "name": "n", "schema": {"required": ["a"]}}"#).unwrap();
        let error = format.check(&Value::parse("{}").unwrap()).unwrap_err();
        assert!(
            error.message.starts_with("the answer does not fit `text.format`: data.a"),
            "{}",
            error.message
        );
        assert!(read(r#"{"type": "text"}"#).is_ok());
        assert!(read(r#"{"type": "json_schema"}"#).unwrap_err().contains("`text.format.schema`"));
        assert!(read(r#"{"type": "text", "made_up": 1}"#).unwrap_err().contains("`text.format.made_up`"));
    }

    #[test]
    fn schema_of_the_client_is_checked_too() {
        let format = read(
            r##"{"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object",
                "required": ["a"], "properties": {"a": {"$ref": "#/$defs/short"}}, "$defs": {"short": {"maxLength": 2}}}}}"##,
        )
        .unwrap();
        assert_eq!(format.check(&Value::parse(r#"{"a": "ab"}"#).unwrap()), Ok(()));
        let error = format.check(&Value::parse(r#"{"a": "abc"}"#).unwrap()).unwrap_err();
        assert_eq!(error.code.as_str(), "E3001");
        assert!(
            error.message.starts_with("the answer does not fit `response_format`: data.a: "),
            "{}",
            error.message
        );
    }

    #[test]
    fn other_formats_are_errors() {
        assert!(read(r#"{"type": "text"}"#).is_ok() && read(r#"{"type": "json_object"}"#).is_ok());
        assert!(read(r#"{"type": "grammar"}"#).unwrap_err().contains("grammar"));
        assert!(
            read(r#"{"type": "json_schema"}"#).unwrap_err().contains("response_format.json_schema.schema")
        );
        let error =
            read(r#"{"type": "json_schema", "json_schema": {"schema": {"type": "wrong"}}}"#).unwrap_err();
        assert!(error.contains("wrong"), "{error}");
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn parse(api: Api, request: &str) -> Result<ParsedRequest, String> {
        ParsedRequest::parse(api, request.as_bytes(), false).map_err(|error| format!("{error:?}"))
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
        assert!(!chat(r#""stream_options": {"include_usage": true}"#).unwrap().stream);
        let error = chat(r#""stream": true, "stream_options": {"include_obfuscation": true}"#).err().unwrap();
        assert!(error.contains("stream_options.include_obfuscation"), "{error}");
        assert!(chat(r#""stream": 1"#).err().unwrap().contains("true or false"));
    }

    fn refusal(api: Api, member: &str) -> Option<String> {
        parse(api, &format!(r#"{{"model": "a", {member}}}"#)).err()
    }

    #[test]
    fn parameters_that_change_nothing_are_accepted() {
        for members in [
            r#""temperature": 1.0, "top_p": 1, "store": false, "stream": false"#,
            r#""tools": null, "max_tokens": null, "seed": null, "made_up": null"#,
            r#""user": "me", "metadata": {"a": "b"}, "parallel_tool_calls": true"#,
            r#""tools": [], "functions": [], "stop": [], "logit_bias": {}, "instructions": "", "include": []"#,
            r#""tool_choice": "auto", "reasoning": {}, "text": {}, "stream_options": {}"#,
            r#""tool_choice": "none", "parallel_tool_calls": false"#,
        ] {
            for api in [Api::Chat, Api::Responses] {
                assert_eq!(refusal(api, members), None, "{members}");
            }
        }
        let chat = r#""n": 1, "modalities": ["text"], "function_call": "auto""#;
        assert_eq!(refusal(Api::Chat, chat), None);
        let response = r#""include": ["reasoning.encrypted_content"], "truncation": "disabled""#;
        assert_eq!(refusal(Api::Responses, response), None);
    }

    #[test]
    fn sampling_parameters_have_no_effect_or_are_refused() {
        for (api, request, name) in [
            (Api::Chat, r#"{"model": "a", "temperature": 0.1, "top_p": 1}"#, "temperature"),
            (Api::Chat, r#"{"model": "a", "max_tokens": 5}"#, "max_tokens"),
            (Api::Responses, r#"{"model": "a", "max_output_tokens": 5}"#, "max_output_tokens"),
        ] {
            let parsed = ParsedRequest::parse(api, request.as_bytes(), true).unwrap();
            assert_eq!(parsed.sampling, [name]);
            assert!(parse(api, request).err().unwrap().contains(name));
        }
        assert!(ParsedRequest::parse(Api::Chat, br#"{"model": "a", "n": 2}"#, true).is_err());
    }

    #[test]
    fn other_parameters_are_refused_by_name() {
        for (name, value) in [
            ("n", "2"),
            ("temperature", "0"),
            ("tools", r#"[{"type": "function"}]"#),
            ("tool_choice", "\"required\""),
            ("max_tokens", "10"),
            ("seed", "1"),
            ("made_up", "true"),
            ("store", "true"),
            ("prompt", r#"{"id": "p"}"#),
            ("modalities", r#"["text", "audio"]"#),
            ("include", r#"["message.output_text.logprobs"]"#),
        ] {
            for api in [Api::Chat, Api::Responses] {
                let error = refusal(api, &format!("\"{name}\": {value}")).unwrap();
                assert!(error.contains("E1004") || error.contains("UnsupportedValue"), "{error}");
                assert!(error.contains(&format!("`{name}` is not supported")), "{error}");
            }
        }
    }

    #[test]
    fn members_are_checked_with_their_path() {
        let request =
            Value::parse(r#"{"reasoning": {"effort": "low", "summary": "auto"}, "text": 5}"#).unwrap();
        let rules: &'static Parameters = &[("effort", Rule::Read)];
        let error = object(request.node(), "reasoning", rules).unwrap_err();
        assert!(format!("{error:?}").contains("`reasoning.summary` is not supported"), "{error:?}");
        let error = object(request.node(), "text", rules).unwrap_err();
        assert!(format!("{error:?}").contains("`text` must be an object"), "{error:?}");
        assert!(object(request.node(), "other", rules).unwrap().is_none());
    }
}
