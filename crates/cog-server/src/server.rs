use std::{future::Future, net::SocketAddr};

use axum::Router;
use cog_run::{CancelReason, Runtime, sessions::Sessions};
use tokio::net::TcpListener;

use crate::{
    MediaStore, Metrics, ServerSettings, SetupError,
    guard::{Bodies, ClientBudgets, Drain, Guard, Guards, Hosts, Rates, Slots},
    offload::Offload,
    openai, router,
    routes::pages,
    serve,
    state::{App, Shared},
};

/// An HTTP server that runs modules.
pub struct Server {
    settings: ServerSettings,
    runtime: Runtime,
    sessions: Sessions,
    metrics: Metrics,
    media: MediaStore,
    only_mcp: bool,
}

impl Server {
    /// A server for the modules of this runtime.
    pub fn new(settings: ServerSettings, runtime: Runtime, sessions: Sessions) -> Self {
        let media = MediaStore::new(settings.uploads.clone(), None);
        Self { settings, runtime, sessions, metrics: Metrics::new(), media, only_mcp: false }
    }

    /// Sets the metrics, which the runtime reports its runs to ([`cog_run::RuntimeBuilder::events`]).
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Sets the store of uploads and generated media, from which the runtime opens uploads.
    #[must_use]
    pub fn with_media(self, media: MediaStore) -> Self {
        Self { media, ..self }
    }

    /// Serves only `/mcp`, `/health` and `/ready`.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn only_mcp(self) -> Self {
        Self { only_mcp: true, ..self }
    }

    /// Returns the routes with their checks, for a program with a listener of its own at this address. The requests must have
    /// the peer of their connection as an extension, an [`axum::extract::ConnectInfo`] of a [`SocketAddr`].
    ///
    /// # Errors
    /// The settings do not allow serving at this address.
    pub fn router(&self, address: SocketAddr) -> Result<Router, SetupError> {
        Ok(router::build(self.app(address)?))
    }

    /// Serves until `shutdown` is ready. Then waits until running requests have ended, or stops them after
    /// [`ServerSettings::shutdown_timeout`].
    ///
    /// # Errors
    /// The settings do not allow serving at the address of the listener.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), SetupError> {
        let app = self.app(listener.local_addr()?)?;
        let router = router::build(app.clone());
        let stop = || self.sessions.cancel_all(CancelReason::Shutdown);
        serve::serve(listener, router, app.guard.clone(), &self.settings, shutdown, stop).await;
        Ok(())
    }

    fn app(&self, address: SocketAddr) -> Result<App, SetupError> {
        let settings = &self.settings;
        let (access, origins) = settings.access.guards(address)?;
        let drain = Drain::default();
        let guard = Guard::from(Guards {
            hosts: Hosts::new(address.ip(), &settings.access.hosts),
            origins,
            access,
            rates: Rates::new(settings.requests_per_second, settings.request_burst),
            messages: Rates::new(settings.requests_per_second, settings.request_burst),
            slots: Slots::new(settings.max_streams_per_client, settings.max_streams, &drain),
            budgets: ClientBudgets::new(settings.client_budget, settings.client_budget_period),
            bodies: Bodies::new(settings),
            drain,
            metrics: self.metrics.clone(),
            is_public: pages::is_public,
            refusal: openai::refusal,
        });
        Ok(App::new(Shared {
            settings: settings.clone(),
            runtime: self.runtime.clone(),
            sessions: self.sessions.clone(),
            guard,
            media: self.media.clone(),
            offload: Offload::new(),
            only_mcp: self.only_mcp,
            openapi: router::openapi(),
            paths: router::paths(),
        }))
    }
}
