//! The link to a server, which is started again if it dies.

use std::{collections::VecDeque, sync::Arc};

use cog_run::tools::ToolError;
use rmcp::{Peer, RoleClient, model::ClientConfig, service::RunningService};
use tokio::{
    process::Child,
    runtime::{Builder, Handle, Runtime},
    sync::Mutex,
    task::JoinSet,
    time::timeout,
};

use crate::server::{McpError, McpServer};

/// The number of runs whose restarts are remembered.
const RUNS: usize = 256;

/// The link to a server. Dropping it ends the connection.
pub(crate) struct Link {
    server: McpServer,
    /// Where the tasks of the connection run.
    handle: Handle,
    state: Mutex<State>,
    /// Dropped last, since the others run on it.
    _host: Option<Arc<Host>>,
}

struct State {
    connection: Arc<Connection>,
    /// The runs in which the server was started again.
    restarted: VecDeque<String>,
}

impl Link {
    pub(crate) fn new(
        server: &McpServer,
        connection: Connection,
        handle: Handle,
        host: Option<Arc<Host>>,
    ) -> Self {
        let state = State { connection: Arc::new(connection), restarted: VecDeque::new() };
        Self { server: server.clone(), handle, state: Mutex::new(state), _host: host }
    }

    /// Returns the connection for a call of a run. A server that died is started again, once in each run. `dead` is a
    /// connection that failed.
    ///
    /// # Errors
    /// The server died, and cannot be started again.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        run: &str,
        dead: Option<&Arc<Connection>>,
    ) -> Result<Arc<Connection>, ToolError> {
        if let Some(connection) = self.state.lock().await.living(dead) {
            return Ok(connection);
        }
        // A call whose time limit passes does not end the start, so that the next call finds the server.
        let link = Arc::clone(self);
        let run = run.to_owned();
        let dead = dead.cloned();
        let restarted = self.handle.spawn(async move { link.restart(run, dead).await }).await;
        restarted.unwrap_or_else(|error| Err(self.failed(&error)))
    }

    async fn restart(
        &self,
        run: String,
        dead: Option<Arc<Connection>>,
    ) -> Result<Arc<Connection>, ToolError> {
        let mut state = self.state.lock().await;
        // Another call may have restarted the server.
        if let Some(connection) = state.living(dead.as_ref()) {
            return Ok(connection);
        }
        let name = &self.server.name;
        let limit = self.server.startup_timeout;
        if !state.remember(run) {
            let message = format!(
                "The MCP server `{name}` closed the connection again. It is restarted once in a run."
            );
            return Err(unavailable(message));
        }
        tracing::warn!(server = name, "the MCP server closed the connection; it is started again");
        let late = McpError::Timeout { server: name.clone(), limit };
        let opened = timeout(limit, self.server.open()).await.unwrap_or(Err(late));
        state.connection = Arc::new(opened.map_err(|error| self.failed(&error))?);
        Ok(Arc::clone(&state.connection))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> ToolError {
        let name = &self.server.name;
        tracing::warn!(server = name, %error, "the MCP server cannot be started again");
        unavailable(format!("The MCP server `{name}` closed the connection, and cannot be started again."))
    }
}

impl State {
    /// Returns the connection, unless it is closed or `dead`.
    fn living(&self, dead: Option<&Arc<Connection>>) -> Option<Arc<Connection>> {
        let is_dead = self.connection.is_closed() || dead.is_some_and(|it| Arc::ptr_eq(it, &self.connection));
        (!is_dead).then(|| Arc::clone(&self.connection))
    }

    /// Remembers that the server is started again in a run. Returns whether this is the first time.
    fn remember(&mut self, run: String) -> bool {
        let is_first = !self.restarted.contains(&run);
        if self.restarted.len() >= RUNS {
            self.restarted.pop_front();
        }
        self.restarted.push_back(run);
        is_first
    }
}

fn unavailable(message: String) -> ToolError {
    ToolError::new("ServerUnavailable", message)
}

// The connection, and the program that it belongs to.

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
