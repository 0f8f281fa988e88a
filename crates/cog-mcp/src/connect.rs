//! Starts servers, connects to them, and lists their tools.

use std::{
    borrow::Cow,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use cog_run::tools::Tool;
use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _, RoleClient,
    model::{
        ClientCapabilities, ClientRequest, Implementation, JsonRpcMessage, ProtocolVersion, RequestId,
        Tool as Listed,
    },
    service::{RunningService, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        IntoTransport, StreamableHttpClientTransport, Transport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
    task::JoinSet,
    time::timeout,
};

use crate::{
    http_client::VerbatimClient,
    link::{Config, Connection, Host, Link, Program},
    server::{McpError, McpServer, McpTransport, excerpt},
    tool::McpTool,
    verbatim,
};

/// The tools of a server.
pub struct McpTools {
    /// The tools that can be called.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The tools that cannot be called, each with the reason.
    pub skipped: Vec<(String, String)>,
}

impl McpServer {
    /// Connects to the server, and lists its tools.
    ///
    /// # Errors
    /// The server cannot be started or reached, violates the protocol, or exceeds the time limit.
    pub async fn connect(&self) -> Result<McpTools, McpError> {
        self.connect_on(None).await
    }

    /// Connects to the server on a thread of its own, and lists its tools. The thread ends with the last tool.
    ///
    /// This blocks, so it must not be called in an async task; there, use [`McpServer::connect`].
    ///
    /// # Errors
    /// As [`McpServer::connect`].
    pub fn connect_blocking(&self) -> Result<McpTools, McpError> {
        let host = Host::start().map_err(|error| self.violation(&error))?;
        let handle = host.handle();
        handle.block_on(self.connect_on(Some(Arc::new(host))))
    }

    async fn connect_on(&self, host: Option<Arc<Host>>) -> Result<McpTools, McpError> {
        let connected = timeout(self.startup_timeout, async {
            let connection = self.open().await?;
            let listed = connection.peer().list_all_tools().await.map_err(|error| self.violation(&error))?;
            Ok((connection, listed))
        });
        match connected.await {
            Ok(connected) => connected.map(|(connection, listed)| {
                self.tools(Link::new(self, connection, Handle::current(), host), listed)
            }),
            Err(_) => Err(McpError::Timeout { server: self.name.clone(), limit: self.startup_timeout }),
        }
    }

    fn tools(&self, link: Link, listed: Vec<Listed>) -> McpTools {
        let link = Arc::new(link);
        let mut found = McpTools { tools: Vec::new(), skipped: Vec::new() };
        for listed in listed {
            let name = listed.name.to_string();
            let tool = McpTool::new(self, listed, Arc::clone(&link)).map_err(|error| error.to_string());
            let is_new =
                |tool: &McpTool| found.tools.iter().all(|other| other.info().name != tool.info().name);
            match tool {
                Ok(tool) if is_new(&tool) => found.tools.push(Arc::new(tool)),
                Ok(_) => {
                    found.skipped.push((name, "another tool of the server has the same name".to_owned()));
                }
                Err(reason) => found.skipped.push((name, reason)),
            }
        }
        found
    }

    /// Connects to the server.
    pub(crate) async fn open(&self) -> Result<Connection, McpError> {
        match &self.transport {
            McpTransport::Stdio { .. } => self.open_program().await,
            McpTransport::Http { url, token } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let config = match token {
                    Some(token) => config.auth_header(token.expose()),
                    None => config,
                };
                let client = VerbatimClient::new().map_err(|error| self.violation(&error))?;
                let service = self.serve(StreamableHttpClientTransport::with_client(client, config)).await?;
                Ok(Connection::new(service, None))
            }
        }
    }

    async fn open_program(&self) -> Result<Connection, McpError> {
        let mut child = self.start()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.violation(&"the program has no standard input and output"));
        };
        let mut log = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            log.spawn(verbatim::log_stderr(self.name.clone(), stderr));
        }
        let (read, write) = verbatim::verbatim(stdout, stdin, &mut log);
        // The pipe has dropped messages that are too long.
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(usize::MAX);
        let service = self.serve(transport).await?;
        Ok(Connection::new(service, Some(Program::new(child, log))))
    }

    fn start(&self) -> Result<Child, McpError> {
        let McpTransport::Stdio { command: program, args, env, directory } = &self.transport else {
            return Err(self.violation(&"it is not a program"));
        };
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.current_dir(directory);
        command.spawn().map_err(|source| McpError::Start {
            server: self.name.clone(),
            command: program.display().to_string(),
            source,
        })
    }

    /// Starts the protocol. A server of the older revision does not know the first request.
    async fn serve<T, E, A>(&self, transport: T) -> Result<RunningService<RoleClient, Config>, McpError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let client = Implementation::new("cog", env!("CARGO_PKG_VERSION"));
        let config = Config::new(ClientCapabilities::default(), client);
        let preferred_versions = vec![ProtocolVersion::LATEST];
        let either = ClientLifecycleMode::Auto {
            preferred_versions: preferred_versions.clone(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let (startup, returned) = Startup::new(transport.into_transport());
        let first = config.clone().serve_with_lifecycle(startup, either).await;
        let (initialize, transport) = match (first, returned.take()) {
            (Err(error), Some(transport)) => (error, transport),
            (first, _) => return first.map_err(|error| self.violation(&error)),
        };
        let current = ClientLifecycleMode::Discover { preferred_versions };
        let served = config.serve_with_lifecycle(transport, current).await;
        // A slow server of the older revision has answered `initialize`: its error is the first.
        served.map_err(|discover| self.violation(&format!("{initialize}; then: {discover}")))
    }

    fn violation(&self, error: &dyn std::fmt::Display) -> McpError {
        McpError::Protocol { server: self.name.clone(), message: excerpt(&error.to_string()) }
    }
}

// The first messages to a server that starts slowly.

/// A transport that drops a late reply to `server/discover`.
///
/// The client sends `initialize` if there is no reply within 10 seconds, as an older server gives none. A server that
/// is still starting, such as one that is downloaded first, replies to both later, and the client would take the first reply
/// for that to `initialize`. A server of the current revision then refuses `initialize`: its transport is returned for another
/// `server/discover`.
struct Startup<T> {
    transport: Option<T>,
    returned: Returned<T>,
    discover: Option<RequestId>,
    /// The request whose reply is not wanted any more.
    late: Option<RequestId>,
    /// Whether that reply arrived.
    is_slow: bool,
}

/// The transport to a server that replied late, once its [`Startup`] is dropped.
struct Returned<T>(Arc<Mutex<Option<T>>>);

impl<T> Returned<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Startup<T> {
    fn new(transport: T) -> (Self, Returned<T>) {
        let returned = Arc::new(Mutex::new(None));
        let startup = Self {
            transport: Some(transport),
            returned: Returned(Arc::clone(&returned)),
            discover: None,
            late: None,
            is_slow: false,
        };
        (startup, Returned(returned))
    }

    fn note(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        match request.request {
            ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
            ClientRequest::InitializeRequest(_) => self.late = self.discover.take(),
            _ => {}
        }
    }

    fn is_late(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.is_some() && id == self.late.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Startup<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        let sent = self.transport.as_mut().map(|transport| transport.send(message));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.as_mut()?.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
            self.late = None;
            self.is_slow = true;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match self.transport.take() {
            Some(mut transport) => transport.close().await,
            None => Ok(()),
        }
    }
}

impl<T> Drop for Startup<T> {
    fn drop(&mut self) {
        if self.is_slow {
            *self.returned.0.lock().unwrap_or_else(PoisonError::into_inner) = self.transport.take();
        }
    }
}
