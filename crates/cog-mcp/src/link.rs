//! The link to a server, which is started again if it dies, and whose tools are listed again when they change.

mod tool;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex as SyncMutex, PoisonError, RwLock, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use cog_run::tools::{Tool, ToolError, ToolSource};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
        Tool as Listing,
    },
    service::RunningService,
};
use tokio::{
    process::Child,
    runtime::{Builder, Handle, Runtime},
    sync::Mutex,
    task::JoinSet,
    time::timeout,
};

use self::tool::Offered;
use crate::{
    asked::Client,
    server::{McpError, McpServer},
    shared::Shared,
};

/// The number of runs whose restarts are remembered.
const RUNS: usize = 256;

/// The maximum number of pages in a list of tools, and of tools after which no page is requested.
const MAX_PAGES: usize = 1_000;
const MAX_TOOLS: usize = 10_000;

/// How long a server that cannot be started is left alone.
const RETRY: Duration = Duration::from_secs(10);

/// The tools of a server. Dropping them and all of their tools ends the connection.
///
/// They are listed again when the server says that they have changed. A server that could not be started is tried again when
/// a run asks for its tools.
#[derive(Clone)]
pub struct McpTools(pub(crate) Arc<Source>);

pub(crate) struct Source {
    link: Arc<Link>,
    prefix: String,
    listed: RwLock<Listed>,
    /// The task that lists the tools again, and a start in the background.
    tasks: SyncMutex<JoinSet<()>>,
    is_listing: Mutex<()>,
}

/// What a server listed last.
struct Listed {
    offered: Offered,
    /// Why there are no tools.
    problem: Option<String>,
    tried: Instant,
}

impl McpTools {
    pub(crate) fn new(server: &McpServer, handle: Handle, host: Option<Arc<Host>>) -> Self {
        let link = |source: &Weak<Source>| Link {
            server: server.clone(),
            handle,
            state: Mutex::new(State { connection: None, restarted: VecDeque::new() }),
            shared: Arc::default(),
            alone: Mutex::default(),
            source: Weak::clone(source),
            _host: host,
        };
        let listed = Listed { offered: Offered::default(), problem: None, tried: Instant::now() };
        Self(Arc::new_cyclic(|source| Source {
            link: Arc::new(link(source)),
            prefix: server.prefix(),
            listed: RwLock::new(listed),
            tasks: SyncMutex::default(),
            is_listing: Mutex::new(()),
        }))
    }

    /// Starts the server, and lists its tools.
    pub(crate) async fn start(&self) -> Result<(), McpError> {
        let started = self.0.start().await;
        let weak = Arc::downgrade(&self.0);
        let shared = Arc::clone(&self.0.link.shared);
        self.0.spawn(async move {
            loop {
                shared.changed.notified().await;
                let Some(source) = weak.upgrade() else { break };
                source.list_changed().await;
            }
        });
        started
    }

    /// Returns the tools that cannot be called, each with the reason.
    pub fn skipped(&self) -> Vec<(String, String)> {
        self.0.listed.read().unwrap_or_else(PoisonError::into_inner).offered.skipped.clone()
    }
}

impl ToolSource for McpTools {
    fn prefix(&self) -> &str {
        &self.0.prefix
    }

    fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String> {
        let mut listed = self.0.listed.write().unwrap_or_else(PoisonError::into_inner);
        let Some(problem) = &listed.problem else { return Ok(listed.offered.tools.clone()) };
        let problem = problem.clone();
        if listed.tried.elapsed() > RETRY {
            listed.tried = Instant::now();
            let weak = Arc::downgrade(&self.0);
            self.0.spawn(async move {
                if let Some(source) = weak.upgrade() {
                    let _ = source.start().await;
                }
            });
        }
        Err(problem)
    }
}

impl Source {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.link.handle);
    }

    async fn start(&self) -> Result<(), McpError> {
        let server = &self.link.server;
        let started = timeout(server.startup_timeout, async {
            let connection = server.open(&self.link.shared).await?;
            let listed =
                list_tools(server, connection.peer()).await.map_err(|error| server.violation(&error))?;
            Ok((connection, listed))
        });
        let late = || McpError::Timeout {
            server: server.name.clone(),
            limit: server.startup_timeout,
            last_words: self.link.shared.last_words(),
        };
        match started.await.unwrap_or_else(|_| Err(late())) {
            Ok((connection, listed)) => {
                let connection = Arc::new(connection);
                self.listen(&connection);
                self.link.state.lock().await.connection = Some(connection);
                self.set(tool::offered(server, listed, &self.link), None);
                Ok(())
            }
            Err(error) => {
                self.set(Offered::default(), Some(error.to_string()));
                Err(error)
            }
        }
    }

    /// Asks a server of the current revision to say when its tools change; older ones say it by themselves.
    fn listen(&self, connection: &Arc<Connection>) {
        let is_current = connection.peer().peer_info().is_some_and(|info| {
            let changes = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
            info.protocol_version == ProtocolVersion::LATEST && changes == Some(true)
        });
        if !is_current {
            return;
        }
        let peer = connection.peer().clone();
        self.spawn(async move {
            let changes = SubscriptionFilter::builder().tools_list_changed().build();
            // Each notification passes the client before, which notes it.
            if let Ok(mut subscription) = peer.listen(changes).await {
                while let Ok(Some(_)) = subscription.next().await {}
            }
        });
    }

    fn set(&self, offered: Offered, problem: Option<String>) {
        let listed = Listed { offered, problem, tried: Instant::now() };
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = listed;
    }

    /// Lists the tools again if the server has said that they have changed.
    pub(crate) async fn list_changed(&self) {
        let _alone = self.is_listing.lock().await;
        let server = &self.link.server;
        let connection = self.link.state.lock().await.connection.clone();
        let Some(connection) = connection.filter(|_| self.link.shared.is_stale.swap(false, Ordering::AcqRel))
        else {
            return;
        };
        match timeout(server.startup_timeout, list_tools(server, connection.peer())).await {
            Ok(Ok(listed)) => self.set(tool::offered(server, listed, &self.link), None),
            Ok(Err(error)) => {
                tracing::warn!(server = server.name, %error, "the tools cannot be listed again");
            }
            Err(_) => tracing::warn!(server = server.name, "the tools were not listed again in time"),
        }
    }
}

/// Lists the tools of a server, page by page. The list ends at a page that names itself as the next one, and at a maximum: a server
/// may have a next page always.
async fn list_tools(server: &McpServer, peer: &Peer<RoleClient>) -> Result<Vec<Listing>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = cursor.clone().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = peer.list_tools(page).await?;
        tools.extend(page.tools);
        if page.next_cursor.is_none() {
            return Ok(tools);
        }
        if page.next_cursor == cursor || tools.len() >= MAX_TOOLS {
            break;
        }
        cursor = page.next_cursor;
    }
    tracing::warn!(server = server.name, tools = tools.len(), "the list of tools has no end");
    Ok(tools)
}

/// The link to a server. Dropping it ends the connection.
pub(crate) struct Link {
    server: McpServer,
    /// Where the tasks of the connection run.
    handle: Handle,
    state: Mutex<State>,
    shared: Arc<Shared>,
    /// Held by the call of a server that gets one at a time, in all runs.
    alone: Mutex<()>,
    /// Who lists the tools.
    source: Weak<Source>,
    /// Dropped last, since the others run on it.
    _host: Option<Arc<Host>>,
}

struct State {
    /// None until the server was started.
    connection: Option<Arc<Connection>>,
    /// The runs in which the server was started again.
    restarted: VecDeque<String>,
}

impl Link {
    /// Waits until the tools are listed again, if the server has said that they have changed.
    pub(crate) async fn list_changed(&self) {
        if let Some(source) = self.source.upgrade() {
            source.list_changed().await;
        }
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
        let opened = timeout(limit, self.server.open(&self.shared)).await;
        let late = |_| Err(McpError::Timeout { server: name.clone(), limit, last_words: String::new() });
        let opened = opened.unwrap_or_else(late).map_err(|error| self.failed(&error))?;
        self.shared.note_change(); // it may be another version
        Ok(Arc::clone(state.connection.insert(Arc::new(opened))))
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
        let connection = self.connection.as_ref()?;
        let is_dead = connection.is_closed() || dead.is_some_and(|it| Arc::ptr_eq(it, connection));
        (!is_dead).then(|| Arc::clone(connection))
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

/// The connection to a server. Dropping it ends the connection, and the program.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    _program: Option<Program>,
}

impl Connection {
    pub(crate) fn new(service: RunningService<RoleClient, Client>, program: Option<Program>) -> Self {
        Self { service, _program: program }
    }

    /// Calls a tool. What the server requires for its result is answered as a request of its own would be.
    pub(crate) async fn call_tool(
        &self,
        params: CallToolRequestParams,
    ) -> Result<CallToolResult, ServiceError> {
        self.service.call_tool(params).await
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
