//! Modules as models of the clients of OpenAI (docs/openai.md) and Anthropic (docs/anthropic.md): `GET /v1/models`,
//! `POST /v1/chat/completions`, `POST /v1/responses`, `POST /v1/messages`, `POST /v1/messages/count_tokens`.
//!
//! * `run`: one request, from its body to its response, also as a stream of events;
//! * `request` and `parameters`: what a request contains, which parameters are accepted, and the schema of the client;
//! * `messages`: from messages and their contents to the input of a module;
//! * `data_text`: which modules send their data while these arrive, and what is certain of them;
//! * `reply` and `anthropic`: the forms of the interfaces.

mod anthropic;
mod data_text;
mod messages;
mod reply;
mod request;
mod run;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cog_json::{Array, Node, ToJson, Writer};
use cog_module::Module;
use cog_run::RunInput;
use cog_spec::{Code, ErrorBody, Meta, Warning};

use self::request::{Api, ResponseFormat};
use crate::{
    answer,
    error::ApiError,
    guard::{BodyLease, Client, Refusal},
    offload,
    request::Options,
    state::{App, Name},
};

/// Adds the routes.
pub(crate) fn add(router: Router<App>) -> Router<App> {
    router
        .route("/v1/models", get(list))
        .route("/v1/models/{id}", get(show))
        .route("/v1/chat/completions", post(run::complete_chat))
        .route("/v1/responses", post(run::create_response))
        .route(MESSAGES, post(run::create_message))
        .route(COUNT_TOKENS, post(run::count_tokens))
}

/// The paths of the routes.
pub(crate) const PATHS: &[&str] =
    &["/v1/models", "/v1/models/{id}", "/v1/chat/completions", "/v1/responses", MESSAGES, COUNT_TOKENS];

/// The route of Anthropic's clients.
const MESSAGES: &str = "/v1/messages";
const COUNT_TOKENS: &str = "/v1/messages/count_tokens";

/// What a model may begin with; the name of its module follows.
const PREFIX: &str = "module:";

/// Whether a value says nothing: null, or empty.
fn is_nothing(value: Node<'_>) -> bool {
    let is_container = value.is_array() || value.is_object();
    value.is_null() || value.as_str() == Some("") || is_container && value.is_empty()
}

/// Returns the name of the module that a model names.
fn module_name(model: &str) -> &str {
    model.strip_prefix(PREFIX).unwrap_or(model)
}

/// Returns the id of the model that is a module.
fn model_id(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A request that is ready to run.
struct Run {
    module: Arc<Module>,
    input: RunInput,
    options: Box<Options>,
    /// What the client expects of the answer.
    format: ResponseFormat,
    reply: Box<dyn Reply>,
    /// The size of the request.
    bytes: usize,
    client: Client,
    /// The memory of the request, in use until the run has ended.
    lease: BodyLease,
}

// The list of models: the modules.

/// Lists the modules as models.
async fn list(State(app): State<App>) -> Response {
    let runtime = app.runtime.clone();
    let mut names: Vec<String> =
        offload::blocking(move || runtime.finder().offered().into_iter().map(|(name, _)| name).collect())
            .await;
    names.sort_unstable();
    answer::json(StatusCode::OK, &List(&names.iter().map(|name| Model(name)).collect::<Vec<_>>()))
}

/// Describes a module as a model.
async fn show(State(app): State<App>, id: Result<Name, ApiError>) -> Result<Response, RequestError> {
    let Name(id) = id?;
    let name = module_name(&id);
    app.load(name).await?;
    Ok(answer::json(StatusCode::OK, &Model(name)))
}

struct List<'a>(&'a [Model<'a>]);

impl ToJson for List<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("object", "list");
            w.field("data", &Array(self.0));
            // Anthropic's clients read pages; there is one.
            w.field("has_more", &false);
            w.field("first_id", &self.0.first().map(|model| model_id(model.0)));
            w.field("last_id", &self.0.last().map(|model| model_id(model.0)));
        });
    }
}

/// A model; its id is accepted as `model` of a request.
struct Model<'a>(&'a str);

impl ToJson for Model<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("id", &model_id(self.0));
            w.field("object", "model");
            w.field("created", &0_u64);
            w.field("owned_by", "cognitive");
            w.field("type", "model");
            w.field("created_at", "1970-01-01T00:00:00Z");
            w.field("display_name", self.0);
            w.field("lifecycle", "active");
        });
    }
}

// What both interfaces return: a complete answer, or its events.

/// Writes answers in the form of one interface.
trait Reply: Send {
    /// Writes the body of a complete answer.
    fn complete(&self, answer: &Answer<'_>, w: &mut Writer<'_>);
    /// Begins a stream.
    fn begin(&mut self, events: &mut Events);
    /// Adds a part of the text.
    fn text(&mut self, delta: &str, events: &mut Events);
    /// Ends the stream of a successful run.
    fn end(&mut self, answer: &Answer<'_>, events: &mut Events);
    /// Ends the stream of a run that fails.
    fn fail(&mut self, error: &RequestError, events: &mut Events);
}

/// What is known before the run.
struct Head {
    /// The id of the request.
    id: String,
    /// Seconds since 1970.
    created: u64,
    /// The id of the model.
    model: String,
    /// Whether the stream of a chat completion ends with the tokens.
    include_usage: bool,
}

/// A checked answer.
#[derive(Clone, Copy)]
struct Answer<'a> {
    /// The data as JSON text.
    text: &'a str,
    /// The meta, with the tokens of the run.
    meta: &'a Meta,
    warnings: &'a [Warning],
}

impl Answer<'_> {
    /// Writes the control plane of the envelope, which OpenAI's forms have no place for.
    fn write_control(&self, w: &mut Writer<'_>) {
        w.key("cognitive").object(|w| {
            w.field("meta", self.meta);
            if !self.warnings.is_empty() {
                w.field("_warnings", self.warnings);
            }
        });
    }
}

/// Server-sent events.
#[derive(Debug, Default)]
struct Events(String);

impl Events {
    /// Adds an event. Events of chat completions have no name.
    fn push(&mut self, name: Option<&str>, write: impl FnOnce(&mut Writer<'_>)) {
        if let Some(name) = name {
            self.0.push_str("event: ");
            self.0.push_str(name);
            self.0.push('\n');
        }
        self.0.push_str("data: ");
        write(&mut Writer::compact(&mut self.0));
        self.0.push_str("\n\n");
    }

    /// Adds an event whose data are not JSON.
    fn push_word(&mut self, word: &str) {
        self.0.push_str("data: ");
        self.0.push_str(word);
        self.0.push_str("\n\n");
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn into_text(self) -> String {
        self.0
    }
}

/// Shows OpenAI's clients whether to send the request again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Why a request fails, and which of its parameters is wrong.
#[derive(Debug)]
struct RequestError {
    error: Box<ApiError>,
    param: Option<String>,
}

impl RequestError {
    /// The error of a parameter.
    fn new(code: Code, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { error: Box::new(ApiError::new(code, message)), param: Some(param.into()) }
    }

    /// Adds a suggestion.
    fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        *self.error = self.error.suggest(suggestion);
        self
    }
}

impl<E: Into<ApiError>> From<E> for RequestError {
    fn from(error: E) -> Self {
        let error = error.into();
        let param = first_path(error.body());
        Self { error: Box::new(error), param }
    }
}

/// Returns the path of the first violation, such as `input.query`.
fn first_path(error: &ErrorBody) -> Option<String> {
    let path = error.details.as_ref()?.pointer("/violations/0/path")?.as_str();
    path.filter(|path| path.starts_with("input")).map(str::to_owned)
}

impl RequestError {
    /// Returns the members of the error.
    fn members(&self) -> Members<'_> {
        Members { error: self.error.body(), param: self.param.as_deref(), status: self.error.status() }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        self.into_response_of(Api::Chat)
    }
}

impl RequestError {
    /// Returns the response in the form of an interface.
    fn into_response_of(self, api: Api) -> Response {
        let mut text = match api {
            Api::Chat | Api::Responses => ErrorForm(self.members()).to_json(),
            Api::Messages => anthropic::ErrorForm(self.members()).to_json(),
        };
        text.push('\n');
        let is_final = self.error.body().recoverable == Some(false);
        // The status and the headers are the same as for the other routes.
        let mut response = self.error.into_response();
        *response.body_mut() = Body::from(text);
        if is_final {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// Returns the response to a request that a check refused: in the vendor's form for these routes.
pub(crate) fn refusal(path: &str, refusal: Refusal) -> Response {
    match api_at(path) {
        Some(api) => RequestError::from(refusal).into_response_of(api),
        None => refusal.into_response(),
    }
}

/// Returns the response with an error: in the vendor's form for these routes.
pub(crate) fn failure(path: &str, status: StatusCode, error: ErrorBody) -> Response {
    let error = ApiError::from(error).with_status(status);
    match api_at(path) {
        Some(api) => RequestError::from(error).into_response_of(api),
        None => error.into_response(),
    }
}

/// Returns the interface whose errors a route has.
fn api_at(path: &str) -> Option<Api> {
    let is_known = PATHS.iter().any(|route| is_at(route, path));
    is_known.then(|| if path.starts_with(MESSAGES) { Api::Messages } else { Api::Chat })
}

/// Whether a path belongs to a route, which may end with a parameter.
fn is_at(route: &str, path: &str) -> bool {
    match route.strip_suffix("{id}") {
        Some(prefix) => path.starts_with(prefix),
        None => path == route,
    }
}

/// The document of an error.
struct ErrorForm<'a>(Members<'a>);

impl ToJson for ErrorForm<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("error", &self.0);
        });
    }
}

/// The members of an error.
#[derive(Clone, Copy)]
struct Members<'a> {
    error: &'a ErrorBody,
    param: Option<&'a str>,
    status: StatusCode,
}

impl Members<'_> {
    /// Returns the message with the suggestion: clients show it alone.
    fn message(&self) -> String {
        match &self.error.suggestion {
            Some(suggestion) => format!("{}. {suggestion}", self.error.message),
            None => self.error.message.clone(),
        }
    }

    /// Returns our code.
    fn code(&self) -> &str {
        self.error.code.as_str()
    }

    /// Writes the parameter, or null.
    fn write_param(&self, w: &mut Writer<'_>) {
        w.key("param");
        match self.param {
            Some(param) => w.string(param),
            None => w.null(),
        }
    }
}

/// Written by hand: the type depends on the status.
impl ToJson for Members<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("type", error_type(self.status));
            self.write_rest(w);
        });
    }
}

impl Members<'_> {
    /// Writes the members that are the same in every form.
    fn write_rest(&self, w: &mut Writer<'_>) {
        w.field("message", &self.message());
        self.write_param(w);
        w.field("code", self.code());
        w.field("details", &self.error.all_details());
    }
}

/// Returns the type that OpenAI has for errors of this status.
fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
