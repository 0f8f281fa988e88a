//! The state that all requests share.

use std::{any::Any, ops::Deref, sync::Arc};

use axum::http::Extensions;
use cog_module::Module;
use cog_run::{ModuleRef, Runtime, events::SpanContext, sessions::Sessions};
use cog_spec::{Code, ErrorBody};

use crate::{
    MediaStore, ServerSettings,
    error::ApiError,
    guard::{Client, Guard, Host, parent_span},
    offload::Offload,
    request::{MediaOutput, Options},
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
    /// As [`Runtime::load`].
    pub(crate) async fn load(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.runtime.load_async(ModuleRef::Name(name)).await.map_err(for_client)
    }

    /// Sets the options of a caller's run: owner, trace, and where generated media are stored.
    pub(crate) fn own(&self, options: &mut Options, caller: &Caller) {
        options.run.owner = Some(caller.client.owner());
        options.run.trace_id = caller.parent.as_ref().map(SpanContext::trace_id);
        options.context.parent_span.clone_from(&caller.parent);
        options.run.budgets.extend(self.guard.budgets.budget(&caller.client));
        if options.media == MediaOutput::Url {
            options.run.delivery = self.media.delivery(&self.base_url(caller));
        }
    }

    /// Returns the base URL of the server: that of the settings, or the one that the caller used.
    pub(crate) fn base_url(&self, caller: &Caller) -> String {
        let host = || caller.host.as_ref().map(|host| format!("http://{host}"));
        self.settings.public_url.clone().or_else(host).unwrap_or_default()
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
fn for_client(error: ErrorBody) -> ErrorBody {
    let names_module = error.suggestion.as_deref().is_some_and(|text| text.starts_with("Did you mean"));
    match error.code == Code::ModuleNotFound.into() && !names_module {
        true => error.suggest("`GET /v1/modules` lists the modules."),
        false => error,
    }
}

/// The caller of a run.
pub(crate) struct Caller {
    pub(crate) client: Client,
    host: Option<Host>,
    /// The span of the caller.
    parent: Option<SpanContext>,
}

impl Caller {
    /// The caller, from the extensions that the guard has set.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Self {
        let host = extensions.get::<Host>().cloned();
        Self { client: client(extensions), host, parent: parent_span(extensions) }
    }
}

/// The client that the guard has set; [`Client::Others`] where a test calls the router without a guard.
pub(crate) fn client(extensions: &Extensions) -> Client {
    extensions.get::<Client>().cloned().unwrap_or(Client::Others)
}
