//! `response_format`: what the client expects of the answer, in addition to the schema of the module.

use cog_json::{Node, Value};
use cog_schema::{Contract, Rules};
use cog_spec::{Code, ErrorBody, Format, Manifest, Tier};
use serde_json::{Map, json};

use super::{
    error::OpenAiError,
    parameters::{Parameters, Rule, check, shown},
};

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
    pub(super) fn from_chat(format: Option<Node<'_>>) -> Result<Self, OpenAiError> {
        let param = "response_format";
        let Some(format) = expects_schema(format, param, CHAT_FORMAT)? else { return Ok(Self(None)) };
        let inner = format.get("json_schema").filter(|inner| inner.is_object());
        inner.map_or(Ok(()), |inner| check(inner, "response_format.json_schema.", SCHEMA))?;
        Self::compile(inner, param, "response_format.json_schema.schema")
    }

    /// Reads `text.format` of a response.
    ///
    /// # Errors
    /// As [`ResponseFormat::from_chat`].
    pub(super) fn from_response(format: Option<Node<'_>>) -> Result<Self, OpenAiError> {
        let param = "text.format";
        let Some(format) = expects_schema(format, param, RESPONSE_FORMAT)? else { return Ok(Self(None)) };
        Self::compile(Some(format), param, "text.format.schema")
    }

    fn compile(outer: Option<Node<'_>>, param: &'static str, place: &str) -> Result<Self, OpenAiError> {
        match outer.and_then(|outer| outer.get("schema")).filter(|schema| schema.is_object()) {
            Some(schema) => Ok(Self(Some(Expected { contract: compile(schema, place)?, param }))),
            None => {
                let message = format!("`{place}` must be an object");
                Err(OpenAiError::new(Code::MissingRequiredField, place, message))
            }
        }
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

/// Returns the path of a violation, which is that of an input, as one of the data.
fn data_path(path: &str) -> String {
    path.strip_prefix("input").map_or_else(|| path.to_owned(), |rest| format!("data{rest}"))
}

/// Returns the format if it has a schema.
fn expects_schema<'a>(
    format: Option<Node<'a>>,
    param: &str,
    rules: &Parameters,
) -> Result<Option<Node<'a>>, OpenAiError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Node::as_str) {
        Some("text" | "json_object") => check(format, &format!("{param}."), FORMAT).map(|()| None),
        Some("json_schema") => check(format, &format!("{param}."), rules).map(|()| Some(format)),
        other => {
            let (other, param) = (other.map(shown).unwrap_or_default(), format!("{param}.type"));
            let message = format!("`{param}`: `{other}` is not supported");
            Err(OpenAiError::new(Code::UnsupportedValue, param, message)
                .suggest("Use text, json_object or json_schema."))
        }
    }
}

fn compile(schema: Node<'_>, param: &str) -> Result<Contract, OpenAiError> {
    let schema = schema.to_serde();
    let mut document = Map::new();
    for key in ["$defs", "definitions"] {
        document.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    document.insert("input".to_owned(), schema);
    let manifest = Manifest::with_defaults("response_format", Format::V25, Some(Tier::Exploration));
    Contract::compile(&serde_json::Value::Object(document), &Rules::from(&manifest)).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        OpenAiError::new(Code::InvalidInput, param, format!("`{param}`: {}", problems.join("; ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str) -> Result<ResponseFormat, String> {
        let format = Value::parse(format).unwrap();
        ResponseFormat::from_chat(Some(format.node())).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn format_of_a_response_has_the_schema_at_its_top() {
        let read = |format: &str| {
            let format = Value::parse(format).unwrap();
            ResponseFormat::from_response(Some(format.node())).map_err(|error| format!("{error:?}"))
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
