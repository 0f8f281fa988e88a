use std::{future::Future, net::SocketAddr};

use axum::Router;
use cog_run::{CancelReason, Runtime, sessions::Sessions};
use tokio::net::TcpListener;

use crate::{
    MediaStore, Metrics, ServerSettings, SetupError,
    guard::{Drain, Guard, Guards, Hosts, Rates, Slots},
    offload::Offload,
    router,
    routes::pages,
    serve,
    state::{App, Shared},
};

/// Runs modules for whoever asks over HTTP.
pub struct Server {
    settings: ServerSettings,
    runtime: Runtime,
    sessions: Sessions,
    metrics: Metrics,
    media: MediaStore,
}

impl Server {
    /// A server over these modules and sessions.
    pub fn new(settings: ServerSettings, runtime: Runtime, sessions: Sessions) -> Self {
        let media = MediaStore::new(settings.uploads.clone(), None);
        Self { settings, runtime, sessions, metrics: Metrics::new(), media }
    }

    /// The same, with counters that the runtime tells of its runs ([`cog_run::RuntimeBuilder::observer`]).
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// The same with the store that the runtime opens uploads from, and leaves there what runs have made.
    #[must_use]
    pub fn with_media(self, media: MediaStore) -> Self {
        Self { media, ..self }
    }

    /// Its routes and their guards, for a program that has a listener of its own at this address. The other end of each
    /// connection is to be in the requests' extensions, as [`axum::extract::ConnectInfo`] of a [`SocketAddr`].
    ///
    /// # Errors
    /// The settings do not allow to serve at this address.
    pub fn router(&self, address: SocketAddr) -> Result<Router, SetupError> {
        Ok(router::build(self.app(address)?))
    }

    /// Serves until `shutdown` is ready and what was under way then has ended, or was ended because
    /// [`ServerSettings::drain`] is over.
    ///
    /// # Errors
    /// The settings do not allow to serve at the listener's address.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), SetupError> {
        let app = self.app(listener.local_addr()?)?;
        let router = router::build(app.clone());
        let stop = || self.sessions.stop_all(CancelReason::Shutdown);
        serve::serve(listener, router, app.guard.clone(), &self.settings, shutdown, stop).await;
        Ok(())
    }

    fn app(&self, address: SocketAddr) -> Result<App, SetupError> {
        let settings = &self.settings;
        let (access, origins) = settings.access.guards(address)?;
        let drain = Drain::new();
        let guard = Guard::from(Guards {
            hosts: Hosts::new(address.ip(), &settings.access.hosts),
            origins,
            access,
            rates: Rates::new(settings.requests_per_second, settings.request_burst),
            slots: Slots::new(settings.max_streams_per_client, settings.max_streams, &drain),
            drain,
            metrics: self.metrics.clone(),
            is_public: pages::is_public,
        });
        Ok(App::new(Shared {
            settings: settings.clone(),
            runtime: self.runtime.clone(),
            sessions: self.sessions.clone(),
            guard,
            media: self.media.clone(),
            offload: Offload::new(),
            openapi: router::openapi(),
            paths: router::paths(),
        }))
    }
}
