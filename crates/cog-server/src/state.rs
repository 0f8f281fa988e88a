//! The state that all requests share.

use std::{any::Any, ops::Deref, sync::Arc};

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::{Extensions, request::Parts},
};
use cog_module::Module;
use cog_run::{ClientRules, ModuleRef, Runtime, events::SpanContext, sessions::Sessions};
use cog_spec::{Code, ErrorBody};

use crate::{
    MediaStore, RunRecords, ServerSettings,
    broken::ModuleChecks,
    error::ApiError,
    guard::{Client, Grant, Guard, Host, Page, RequestRuns, parent_span, request_id},
    offload::Offload,
    workbench::Bench,
};

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The fields of [`App`].
pub(crate) struct Shared {
    pub(crate) settings: ServerSettings,
    pub(crate) runtime: Runtime,
    pub(crate) sessions: Sessions,
    pub(crate) guard: Guard,
    pub(crate) media: MediaStore,
    pub(crate) offload: Offload,
    pub(crate) checks: ModuleChecks,
    /// The operator's log of runs, if runs of clients are logged.
    pub(crate) records: Option<Arc<dyn RunRecords>>,
    /// The workbench, if the server was started for it.
    pub(crate) bench: Option<Bench>,
    /// Whether modules are served only as tools of MCP.
    pub(crate) only_mcp: bool,
    /// The OpenAPI document.
    pub(crate) openapi: &'static str,
    /// The paths of all routes.
    pub(crate) paths: &'static [String],
}

impl App {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Loads a module by its name, on a blocking thread where that reads files.
    ///
    /// # Errors
    /// The errors of [`Runtime::load`].
    pub(crate) async fn load(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.runtime.load_async(ModuleRef::Name(name)).await.map_err(for_client)
    }

    /// Returns the base URL of the server: the one of the settings, or the one that the caller used.
    pub(crate) fn base_url(&self, caller: &Caller) -> String {
        match (&self.settings.public_url, &caller.host) {
            (Some(url), _) => url.clone(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => String::new(),
        }
    }

    /// Takes a slot for a stream. It is free again when the value is dropped.
    ///
    /// # Errors
    /// 429 E4002 where no slot is free.
    pub(crate) fn slot(&self, client: &Client) -> Result<Box<dyn Any + Send>, ApiError> {
        Ok(Box::new(self.guard.slots.take(client)?))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Replaces the advice to use the command line, unless it names a similar module.
pub(crate) fn for_client(error: ErrorBody) -> ErrorBody {
    let names_module = error.suggestion.as_deref().is_some_and(|text| text.starts_with("Did you mean"));
    match error.code == Code::ModuleNotFound.into() && !names_module {
        true => error.suggest("`GET /v1/modules` lists the modules."),
        false => error,
    }
}

/// The caller of a run.
pub(crate) struct Caller {
    pub(crate) client: Client,
    /// What the client may do.
    pub(crate) grant: Grant,
    request_id: Arc<str>,
    host: Option<Host>,
    /// Whether a page of another origin sends the request, which the operator allows to run modules.
    pub(crate) is_of_other_page: bool,
    /// The span of the caller.
    pub(crate) parent: Option<SpanContext>,
    /// The runs of the request, for its line in the log.
    pub(crate) runs: RequestRuns,
}

impl Caller {
    /// The caller, from the extensions that the guard has set.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Self {
        Self {
            client: client(extensions),
            grant: extensions.get::<Grant>().cloned().unwrap_or_default(),
            request_id: request_id(extensions).into(),
            host: extensions.get::<Host>().cloned(),
            is_of_other_page: matches!(extensions.get::<Page>(), Some(Page::Allowed(_))),
            parent: parent_span(extensions),
            runs: extensions.get::<RequestRuns>().cloned().unwrap_or_default(),
        }
    }

    /// Returns the id of its request.
    pub(crate) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Returns the rules for its runs. Without tokens, every client may see what the operator sees.
    pub(crate) fn rules(&self, app: &App) -> ClientRules {
        let mut rules = ClientRules::default();
        rules.models = self.grant.models.clone().or_else(|| app.settings.access.models.clone());
        let is_hidden = app.guard.access.has_tokens() && !self.grant.is_operator;
        rules.request_id = is_hidden.then(|| Arc::clone(&self.request_id));
        rules
    }
}

/// The client that the guard has set; [`Client::Others`] where a test calls the router without a guard.
pub(crate) fn client(extensions: &Extensions) -> Client {
    extensions.get::<Client>().cloned().unwrap_or(Client::Others)
}

/// The path parameter of a route: the name of a module, the id of a session.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let name = params.ok().and_then(|params| params.iter().next().map(|(_, value)| value.to_owned()));
        name.map(Self).ok_or_else(|| {
            ApiError::new(Code::InvalidReference, "the path is not UTF-8")
                .suggest("Use lower case letters, digits and hyphens in a name.")
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::from_extensions(&parts.extensions))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(client(&parts.extensions))
    }
}
