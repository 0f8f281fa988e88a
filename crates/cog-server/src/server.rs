use std::{future::Future, io};

use axum::Router;
use cog_run::{Runtime, sessions::Sessions};
use tokio::net::TcpListener;

use crate::{ServerSettings, router, serve, state::App};

/// Runs modules for whoever asks over HTTP.
pub struct Server {
    app: App,
}

impl Server {
    /// A server over these modules and sessions.
    pub fn new(settings: ServerSettings, runtime: Runtime, sessions: Sessions) -> Self {
        Self { app: App::new(settings, runtime, sessions) }
    }

    /// Its routes, for a program that has a listener of its own.
    pub fn router(&self) -> Router {
        router::build(self.app.clone()).0
    }

    /// Serves until `shutdown` is ready and what was under way then has ended, or [`ServerSettings::drain`] is over.
    ///
    /// # Errors
    /// The listener gives no connections any more.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        serve::serve(self.router(), self.app, listener, shutdown).await
    }
}
