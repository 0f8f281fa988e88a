//! The bodies and queries of the requests.

use axum::http::Uri;
use cog_json::Value;
use cog_module::parts::ModulePart;
use cog_spec::Code;

use super::shown;
use crate::{
    NewCase,
    error::{ApiError, allow_only},
    request,
};

/// The maximum number of runs in a list, and the number without `limit`.
const MAX_RUNS: usize = 200;
const USUAL_RUNS: usize = 50;

/// What is checked.
pub(super) enum Subject {
    Files(Vec<(ModulePart, String)>),
    Input(Value),
}

impl Subject {
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        const FORM: &str = r#"Send {"files": {"manifest": TEXT, …}} or {"input": VALUE}."#;
        let body = request::object(body)?;
        allow_only(body.node(), "", &["files", "input"])?;
        match (body.get("files"), body.get("input")) {
            (Some(files), None) if files.is_object() => {
                let names = ModulePart::ALL.map(ModulePart::as_str);
                allow_only(files, "files.", &names)?;
                let texts = files.members().map(|(name, text)| {
                    let text =
                        text.as_str().ok_or_else(|| wrong_type(&format!("files.{name}"), "a string"))?;
                    Ok((ModulePart::by_name(name), text.to_owned()))
                });
                let texts = texts.collect::<Result<Vec<_>, ApiError>>()?;
                Ok(Self::Files(texts.into_iter().filter_map(|(part, text)| Some((part?, text))).collect()))
            }
            (Some(_), None) => Err(wrong_type("files", "an object")),
            (None, Some(input)) => Ok(Self::Input(body.child(input))),
            (None, None) => Err(missing("files").suggest(FORM)),
            (Some(_), Some(_)) => {
                Err(ApiError::new(Code::InvalidInput, "`files` and `input` cannot be used together")
                    .suggest(FORM))
            }
        }
    }
}

/// A new text of a file, and the hash of the text that was edited.
pub(super) struct Edit {
    pub(super) text: String,
    pub(super) hash: String,
}

impl Edit {
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body = request::object(body)?;
        allow_only(body.node(), "", &["text", "hash"])?;
        Ok(Self { text: required(&body, "text")?, hash: required(&body, "hash")? })
    }
}

/// The provider and the model that a request names.
pub(super) struct NamedModel {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
}

impl NamedModel {
    fn read(body: &Value) -> Result<Self, ApiError> {
        Ok(Self { provider: optional(body, "provider")?, model: optional(body, "model")? })
    }
}

pub(super) struct Rendering {
    pub(super) input: Value,
    pub(super) model: NamedModel,
}

impl Rendering {
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body = request::object(body)?;
        allow_only(body.node(), "", &["input", "provider", "model"])?;
        let input = body.get("input").ok_or_else(|| missing("input"))?;
        Ok(Self { input: body.child(input), model: NamedModel::read(&body)? })
    }
}

pub(super) struct Tests {
    pub(super) cases: Vec<String>,
    pub(super) model: NamedModel,
}

impl Tests {
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body = request::object(body)?;
        allow_only(body.node(), "", &["cases", "provider", "model"])?;
        let cases = match body.get("cases").filter(|cases| !cases.is_null()) {
            None => Vec::new(),
            Some(cases) if cases.is_array() => {
                let names = cases.elements().map(|name| name.as_str().map(str::to_owned));
                names.collect::<Option<_>>().ok_or_else(|| wrong_type("cases", "a list of names"))?
            }
            Some(_) => return Err(wrong_type("cases", "a list of names")),
        };
        Ok(Self { cases, model: NamedModel::read(&body)? })
    }
}

pub(super) fn read_case(body: &[u8]) -> Result<NewCase, ApiError> {
    let body = request::object(body)?;
    allow_only(body.node(), "", &["name", "input", "envelope"])?;
    let value = |key: &str| body.get(key).map(|value| body.child(value)).ok_or_else(|| missing(key));
    Ok(NewCase { name: required(&body, "name")?, input: value("input")?, envelope: value("envelope")? })
}

/// Which runs are listed.
pub(super) struct RunFilter {
    pub(super) module: Option<String>,
    pub(super) limit: usize,
}

impl RunFilter {
    pub(super) fn read(uri: &Uri) -> Result<Self, ApiError> {
        let mut filter = Self { module: None, limit: USUAL_RUNS };
        let query = uri.query().unwrap_or_default();
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match key {
                "module" if !value.is_empty() => filter.module = Some(value.to_owned()),
                "module" => {}
                "limit" => {
                    let limit = value.parse::<usize>().ok().filter(|limit| (1..=MAX_RUNS).contains(limit));
                    filter.limit = limit.ok_or_else(|| {
                        ApiError::new(
                            Code::InvalidInput,
                            format!("limit: must be a number from 1 to {MAX_RUNS}"),
                        )
                    })?;
                }
                other => {
                    let message = format!("unknown parameter `{}`", shown(other));
                    return Err(
                        ApiError::new(Code::InvalidInput, message).suggest("Use `module` and `limit`.")
                    );
                }
            }
        }
        Ok(filter)
    }
}

fn required(body: &Value, key: &str) -> Result<String, ApiError> {
    optional(body, key)?.ok_or_else(|| missing(key))
}

fn optional(body: &Value, key: &str) -> Result<Option<String>, ApiError> {
    match body.get(key).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => {
            value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| wrong_type(key, "a string"))
        }
    }
}

fn missing(key: &str) -> ApiError {
    ApiError::new(Code::MissingRequiredField, format!("missing field `{key}`"))
}

fn wrong_type(key: &str, expected: &str) -> ApiError {
    ApiError::new(Code::TypeMismatch, format!("{key}: must be {expected}"))
}
