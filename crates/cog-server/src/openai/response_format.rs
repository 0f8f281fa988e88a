//! `response_format`: what the client expects of the answer, in addition to the schema of the module.

use cog_json::{Node, Value};
use cog_schema::{Contract, Rules};
use cog_spec::{Code, ErrorBody, Format, Manifest, Tier};
use serde_json::{Map, json};

use super::{error::OpenAiError, parameters::shown};

/// The schema that the client expects, if it has sent one.
#[derive(Debug)]
pub(super) struct ResponseFormat(Option<Contract>);

impl ResponseFormat {
    /// Reads `response_format`: text, `json_object` or `json_schema`.
    ///
    /// # Errors
    /// E1001 for a schema that is not valid, E1004 for another type.
    pub(super) fn read(format: Option<Node<'_>>) -> Result<Self, OpenAiError> {
        let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(Self(None)) };
        match format.get("type").and_then(Node::as_str) {
            Some("text" | "json_object") => Ok(Self(None)),
            Some("json_schema") => match format.pointer("/json_schema/schema") {
                Some(schema) if schema.is_object() => compile(schema).map(|contract| Self(Some(contract))),
                _ => {
                    let param = "response_format.json_schema.schema";
                    let message = format!("`{param}` must be an object");
                    Err(OpenAiError::new(Code::MissingRequiredField, param, message))
                }
            },
            other => {
                let other = other.map(shown).unwrap_or_default();
                let message = format!("`response_format.type`: `{other}` is not supported");
                Err(OpenAiError::new(Code::UnsupportedValue, "response_format.type", message)
                    .suggest("Use text, json_object or json_schema."))
            }
        }
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// E3001 with every violation.
    pub(super) fn check(&self, data: &Value) -> Result<(), ErrorBody> {
        let Some(contract) = &self.0 else { return Ok(()) };
        let mut violations = contract.check_input(data.node());
        let Some(first) = violations.first_mut() else { return Ok(()) };
        let message = format!(
            "the answer does not fit `response_format`: {}: {}",
            data_path(&first.path),
            first.message
        );
        for violation in &mut violations {
            violation.path = data_path(&violation.path);
        }
        Err(ErrorBody::new(Code::OutputSchemaViolation, message)
            .with_recoverable(false)
            .suggest("Remove response_format, or use the schema of the module: GET /v1/modules/NAME.")
            .with_details(Value::from(json!({ "violations": violations }))))
    }
}

/// Returns the path of a violation, which is that of an input, as one of the data.
fn data_path(path: &str) -> String {
    path.strip_prefix("input").map_or_else(|| path.to_owned(), |rest| format!("data{rest}"))
}

fn compile(schema: Node<'_>) -> Result<Contract, OpenAiError> {
    let schema = schema.to_serde();
    let mut document = Map::new();
    for key in ["$defs", "definitions"] {
        document.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    document.insert("input".to_owned(), schema);
    let manifest = Manifest::with_defaults("response_format", Format::V25, Some(Tier::Exploration));
    Contract::compile(&serde_json::Value::Object(document), &Rules::from(&manifest)).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let param = "response_format.json_schema.schema";
        OpenAiError::new(Code::InvalidInput, param, format!("`{param}`: {}", problems.join("; ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str) -> Result<ResponseFormat, String> {
        let format = Value::parse(format).unwrap();
        ResponseFormat::read(Some(format.node())).map_err(|error| format!("{error:?}"))
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
