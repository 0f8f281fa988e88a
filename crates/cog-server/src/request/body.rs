//! The JSON body of a request.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
};
use cog_json::{Limits, Value};
use cog_run::RunInput;
use cog_spec::Code;

use super::{
    Options,
    recovery::{self, Recovery},
};
use crate::{
    error::{ApiError, allow_only},
    guard::{BodyLease, Client},
    state::App,
};

/// The body of `POST /v1/modules/{name}/execute`, and of a WebSocket's first frame (docs/spec/http.md).
#[derive(Debug)]
pub(crate) struct ExecuteBody {
    /// `input`; optional for a resumed stream and for a halted run that continues.
    pub(crate) input: Option<Value>,
    /// `_options`. Boxed, because every future that passes them on contains a copy.
    pub(crate) options: Box<Options>,
    /// `_recovery`.
    pub(crate) recovery: Option<Recovery>,
    /// The size of the JSON text; unknown for a halted run that continues, whose state is in a file.
    pub(crate) bytes: usize,
}

/// The body of `POST /run`, for older clients.
#[derive(Debug)]
pub(crate) struct RunBody {
    /// `module`.
    pub(crate) module: String,
    /// `input` or `args`.
    pub(crate) input: RunInput,
    /// `provider` and `model`.
    pub(crate) options: Box<Options>,
    /// The size of the JSON text.
    pub(crate) bytes: usize,
}

/// The advice for a body that is the input itself.
const WRAP: &str = r#"Wrap the input: {"input": {…}}."#;

/// Reads a JSON body and parses it. The bytes of a large body reach `parse` off the event loop, and no route gets them otherwise.
/// `parse` owns the lease of their memory.
///
/// # Errors
/// 415 for another content type; as [`Bodies::read`](crate::guard::Bodies::read); as `parse`.
pub(crate) async fn read<T: Send + 'static, E: From<ApiError> + Send + 'static>(
    app: &App,
    client: &Client,
    headers: &HeaderMap,
    body: Body,
    parse: impl FnOnce(Bytes, BodyLease) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    if !is_json(headers) {
        return Err(not_json(headers).into());
    }
    let (bytes, lease) = app.guard.bodies.read(client, body).await.map_err(ApiError::from)?;
    app.offload.run(bytes.len(), move || parse(bytes, lease)).await
}

impl ExecuteBody {
    /// Parses the body of an execute request. The headers may name the stream to resume.
    ///
    /// # Errors
    /// E1000 to E1003, with the path.
    pub(crate) fn parse(body: &[u8], header_recovery: Option<Recovery>) -> Result<Self, ApiError> {
        Self::from_value(&object(body)?, body.len(), header_recovery)
    }

    /// Reads a parsed body. `bytes` is the size of its text.
    ///
    /// # Errors
    /// The errors of [`ExecuteBody::parse`].
    pub(crate) fn from_value(
        value: &Value,
        bytes: usize,
        header_recovery: Option<Recovery>,
    ) -> Result<Self, ApiError> {
        allow_only(value.node(), "", &["input", "_options", "_recovery", "_continue"])
            .map_err(|error| if value.get("input").is_some() { error } else { error.suggest(WRAP) })?;
        let body_recovery =
            value.get("_recovery").filter(|it| !it.is_null()).map(recovery::from_body).transpose()?;
        let recovery = body_recovery.or(header_recovery);
        let mut input = value.get("input").map(|input| value.child(input));
        let approval = value.get("_continue").filter(|it| !it.is_null());
        let approval = approval.map(super::read_approval).transpose()?;
        if approval.is_some() {
            if input.as_ref().is_some_and(|input| !input.is_null()) {
                return Err(wrong(
                    "`input` and `_continue` cannot be used together: the input is that of the halted run",
                ));
            }
            input = Some(Value::null()); // the halted run has its own
        }
        if input.is_none() && recovery.is_none() {
            return Err(missing("input", WRAP));
        }
        let options = value.get("_options").map(Options::read).transpose()?;
        let mut options = options.map(Box::new).unwrap_or_default();
        options.run.approval = approval;
        // Its file may be large, so it is always read off the event loop.
        let bytes = if options.run.approval.is_some() { usize::MAX } else { bytes };
        Ok(Self { input, options, recovery, bytes })
    }
}

impl RunBody {
    /// Parses the body of a `/run` request.
    ///
    /// # Errors
    /// E1000 to E1003, with the path.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = object(body)?;
        let bytes = body.len();
        allow_only(value.node(), "", &["module", "args", "input", "provider", "model"])?;
        let Some(module) = text(&value, "module")? else {
            return Err(missing("module", r#"Send {"module": "NAME", "input": {…}}."#));
        };
        let input = match (value.get("input"), text(&value, "args")?) {
            (Some(_), Some(_)) => return Err(wrong("`args` and `input` cannot be used together")),
            (Some(input), None) => RunInput::Json(value.child(input)),
            (None, Some(args)) => RunInput::Args(args),
            (None, None) => return Err(missing("input", "Send `input`, an object, or `args`, a string.")),
        };
        let mut options = Box::<Options>::default();
        options.run.provider = text(&value, "provider")?;
        options.run.model = text(&value, "model")?;
        Ok(Self { module, input, options, bytes })
    }
}

/// Parses a JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Value, ApiError> {
    // The guard has limited the size of the body already.
    let limits = Limits::default().with_bytes(body.len() as u64);
    let value = Value::parse_within(body, limits).map_err(|error| syntax(body, &error))?;
    match value.is_object() {
        true => Ok(value),
        false => Err(ApiError::new(Code::TypeMismatch, "the body must be a JSON object")),
    }
}

fn syntax(body: &[u8], error: &cog_json::SyntaxError) -> ApiError {
    let message = if body.is_empty() {
        "the body is empty; it must be a JSON object".to_owned()
    } else {
        let position = error.position(&String::from_utf8_lossy(body));
        format!("the body is not JSON: {error} (line {}, column {})", position.line, position.column)
    };
    ApiError::new(Code::ParseError, message).with_status(StatusCode::BAD_REQUEST)
}

fn text(value: &Value, key: &str) -> Result<Option<String>, ApiError> {
    match value.get(key).filter(|it| !it.is_null()) {
        None => Ok(None),
        Some(node) => match node.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(ApiError::new(Code::TypeMismatch, format!("{key}: must be a string"))),
        },
    }
}

fn missing(key: &str, suggestion: &str) -> ApiError {
    ApiError::new(Code::MissingRequiredField, format!("missing field `{key}`")).suggest(suggestion)
}

fn wrong(message: &str) -> ApiError {
    ApiError::new(Code::InvalidInput, message)
}

/// Whether the type is `application/json` or `application/…+json`. Web pages cannot send these across origins without a
/// preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    name == "application/json" || (name.starts_with("application/") && name.ends_with("+json"))
}

fn not_json(headers: &HeaderMap) -> ApiError {
    let found = match headers.get(header::CONTENT_TYPE) {
        Some(value) => format!("`{}`", value.to_str().unwrap_or("?")),
        None => "none".to_owned(),
    };
    ApiError::new(Code::InvalidInput, format!("unsupported content type: {found}; allowed: application/json"))
        .suggest("Send the header Content-Type: application/json.")
        .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}
