//! What all requests share.

use std::{any::Any, ops::Deref, sync::Arc};

use axum::http::Extensions;
use cog_run::{Runtime, sessions::Sessions};

use crate::{
    MediaStore, ServerSettings,
    fault::Fault,
    guard::{Client, Guard},
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
}

impl App {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// A place for one more stream, held as long as its run goes on.
    ///
    /// # Errors
    /// 429 E4002 where there is none.
    pub(crate) fn slot(&self, client: &Client) -> Result<Box<dyn Any + Send>, Fault> {
        Ok(Box::new(self.guard.slots.take(client)?))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Who asks, as the guard found it; everybody is one where there is no guard, as in tests of the router alone.
pub(crate) fn client(extensions: &Extensions) -> Client {
    extensions.get::<Client>().cloned().unwrap_or(Client::Others)
}
