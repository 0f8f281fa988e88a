//! The connection to a server.

use rmcp::{Peer, RoleClient, model::ClientConfig, service::RunningService};
use tokio::{
    process::Child,
    runtime::{Builder, Handle, Runtime},
    task::JoinSet,
};

/// What the client reports about itself.
pub(crate) type Config = ClientConfig;

/// The connection to a server. Dropping it ends the connection, and the program.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Config>,
    _program: Option<Program>,
}

impl Connection {
    pub(crate) fn new(service: RunningService<RoleClient, Config>, program: Option<Program>) -> Self {
        Self { service, _program: program }
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Returns whether the server closed the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer().is_transport_closed()
    }
}

/// A program that runs as long as its server is connected.
pub(crate) struct Program {
    _child: Child,
    _log: JoinSet<()>,
}

impl Program {
    pub(crate) fn new(child: Child, log: JoinSet<()>) -> Self {
        Self { _child: child, _log: log }
    }
}

/// A thread on which a connection runs.
pub(crate) struct Host(Option<Runtime>, Handle);

impl Host {
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("mcp").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Self(Some(runtime), handle))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.1.clone()
    }
}

/// Dropping a runtime waits for its tasks, which is not allowed in an async task.
impl Drop for Host {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
