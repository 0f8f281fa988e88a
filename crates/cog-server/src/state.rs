//! What all requests share.

use std::{any::Any, ops::Deref, sync::Arc};

use axum::http::Extensions;
use cog_module::Module;
use cog_run::{Runtime, sessions::Sessions};
use cog_spec::ErrorBody;

use crate::{
    MediaStore, ServerSettings,
    error::ApiError,
    guard::{Client, Guard, Host, trace_id},
    offload::{self, Offload},
    request::{MediaOutput, Options},
};

/// What all requests share.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The parts of [`App`].
pub(crate) struct Shared {
    pub(crate) settings: ServerSettings,
    pub(crate) runtime: Runtime,
    pub(crate) sessions: Sessions,
    pub(crate) guard: Guard,
    pub(crate) media: MediaStore,
    pub(crate) offload: Offload,
    /// The OpenAPI document.
    pub(crate) openapi: &'static str,
    /// The paths of all routes.
    pub(crate) paths: &'static [String],
}

impl App {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Loads a module by its name, away from the event loop where that reads files.
    ///
    /// # Errors
    /// As [`Runtime::load_name`].
    pub(crate) async fn load(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        if let Some(module) = self.runtime.cached_name(name) {
            return Ok(module);
        }
        let (runtime, name) = (self.runtime.clone(), name.to_owned());
        offload::blocking(move || runtime.load_name(&name)).await
    }

    /// Gives a run what its caller's runs have: an owner, a trace, and a place where the media go that it makes.
    pub(crate) fn own(&self, options: &mut Options, caller: &Caller) {
        options.run.owner = Some(caller.client.owner());
        options.run.trace_id.clone_from(&caller.trace_id);
        if options.media == MediaOutput::Url {
            let host = caller.host.as_ref().map(|host| format!("http://{host}"));
            let base = self.settings.public_url.clone().or(host);
            options.run.delivery = self.media.delivery(base.as_deref().unwrap_or_default());
        }
    }

    /// A place for one more stream, held as long as its run goes on.
    ///
    /// # Errors
    /// 429 E4002 where there is none.
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

/// Who asks for runs, and how: what each of them is given.
pub(crate) struct Caller {
    pub(crate) client: Client,
    host: Option<Host>,
    trace_id: Option<String>,
}

impl Caller {
    /// As the guard found it.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let host = extensions.get::<Host>().cloned();
        Self { client: client(extensions), host, trace_id: trace_id(extensions) }
    }
}

/// Who asks, as the guard found it; everybody is one where there is no guard, as in tests of the router alone.
pub(crate) fn client(extensions: &Extensions) -> Client {
    extensions.get::<Client>().cloned().unwrap_or(Client::Others)
}
