//! Starts servers, connects to them, and lists their tools.

use std::{
    borrow::Cow,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use reqwest::Url;
use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, ElicitationCapability, ErrorCode,
        FormElicitationCapability, Implementation, JsonRpcMessage, ProtocolVersion, RequestId,
        RootsCapabilities, SamplingCapability, ServerJsonRpcMessage,
    },
    service::{ClientInitializeError, RunningService, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        IntoTransport, StreamableHttpClientTransport, Transport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    asked::Client,
    http_client::VerbatimClient,
    link::{Connection, Host, McpTools, Program},
    oauth::{Authorization, chain},
    server::{McpError, McpServer, McpTransport, excerpt},
    shared::Shared,
    verbatim,
};

impl McpServer {
    /// Starts the server or connects to it, and lists its tools. The tools of a server that failed are tried again later.
    pub async fn start(&self) -> (McpTools, Result<(), McpError>) {
        let tools = McpTools::new(self, Handle::current(), None);
        let started = tools.start().await;
        (tools, started)
    }

    /// Starts the server as [`McpServer::start`], on a thread of its own, which ends with the last tool.
    ///
    /// This blocks, so it must not be called in an async task.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_blocking(&self) -> std::io::Result<(McpTools, Result<(), McpError>)> {
        let host = Arc::new(Host::start()?);
        let handle = host.handle();
        let tools = McpTools::new(self, handle.clone(), Some(host));
        let started = handle.block_on(tools.start());
        Ok((tools, started))
    }

    /// Connects to the server.
    pub(crate) async fn open(&self, shared: &Arc<Shared>) -> Result<Connection, McpError> {
        let is_old = self.initialize || shared.is_old.load(Ordering::Relaxed);
        let first = match self.open_with(shared, is_old).await {
            Err(first) if first.may_be_old && !is_old => first,
            opened => return opened.map_err(|failed| failed.error),
        };
        // Servers of many libraries end at a request before `initialize`, or answer with an error of HTTP.
        match self.open_with(shared, true).await {
            Ok(connection) => {
                shared.is_old.store(true, Ordering::Relaxed);
                Ok(connection)
            }
            Err(_) => Err(first.error),
        }
    }

    async fn open_with(&self, shared: &Arc<Shared>, is_old: bool) -> Result<Connection, Failed> {
        match &self.transport {
            McpTransport::Stdio { .. } => self.open_program(shared, is_old).await,
            McpTransport::Http { url, token, headers, oauth } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let mut config = match token {
                    Some(token) => config.auth_header(token.expose()),
                    None => config,
                };
                for (name, value) in headers {
                    let header =
                        HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
                    let header = header
                        .ok_or_else(|| self.violation(&format!("`headers.{name}` is not a valid header")))?;
                    config.custom_headers.insert(header.0, header.1);
                }
                // A fixed token is the operator's decision, and headers may have one too.
                let has_token = token.is_some()
                    || headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
                let authorization = (!has_token).then(|| Authorization::new(&self.name, url, oauth));
                let client = VerbatimClient::new(Arc::clone(shared), authorization)
                    .map_err(|error| self.violation(&error))?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = self.serve(transport, shared, is_old).await?;
                Ok(Connection::new(service, None))
            }
        }
    }

    async fn open_program(&self, shared: &Arc<Shared>, is_old: bool) -> Result<Connection, Failed> {
        let mut child = self.start_program()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.violation(&"the program has no standard input and output").into());
        };
        let mut log = JoinSet::new();
        let (ended, has_ended) = oneshot::channel();
        if let Some(stderr) = child.stderr.take() {
            let shared = Arc::clone(shared);
            let name = self.name.clone();
            log.spawn(async move {
                verbatim::log_stderr(name, stderr, &shared).await;
                let _ = ended.send(());
            });
        }
        let (read, write) = verbatim::verbatim(stdout, stdin, Arc::clone(shared), &mut log);
        // The pipe answers for messages that are too long.
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(usize::MAX);
        match self.serve(transport, shared, is_old).await {
            Ok(service) => Ok(Connection::new(service, Some(Program::new(child, log)))),
            Err(failed) => {
                let _ = child.start_kill();
                let _ = timeout(LAST_WORDS_TIMEOUT, has_ended).await;
                Err(failed.with(&self.masked(&shared.last_words())))
            }
        }
    }

    /// Replaces the values of the server's variables, which may be secrets.
    fn masked(&self, text: &str) -> String {
        let McpTransport::Stdio { env, .. } = &self.transport else { return text.to_owned() };
        let secrets = env.iter().filter(|(name, value)| value.len() >= 8 && !is_public(name));
        secrets.fold(text.to_owned(), |text, (_, value)| text.replace(value, "[secret]"))
    }

    fn start_program(&self) -> Result<Child, McpError> {
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
    async fn serve<T, E, A>(
        &self,
        transport: T,
        shared: &Arc<Shared>,
        is_old: bool,
    ) -> Result<RunningService<RoleClient, Client>, Failed>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        let first = match is_old {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Auto {
                preferred_versions: preferred_versions.clone(),
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let (startup, returned) = Startup::new(transport.into_transport());
        let first = self.client(shared, is_old).serve_with_lifecycle(startup, first).await;
        let (initialize, transport) = match (first, returned.take()) {
            (Err(error), Some(transport)) => (error, transport),
            (first, _) => return first.map_err(|error| self.failed(&error)),
        };
        let current = ClientLifecycleMode::Discover { preferred_versions };
        let served = self.client(shared, is_old).serve_with_lifecycle(transport, current).await;
        // A slow server of the older revision has answered `initialize`: its error is the first.
        served.map_err(|discover| self.violation(&format!("{initialize}; then: {discover}")).into())
    }

    /// Returns what answers the requests of the server.
    #[expect(deprecated, reason = "servers of older revisions still ask for sampling and roots")]
    fn client(&self, shared: &Arc<Shared>, is_old: bool) -> Client {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = (!self.roots.is_empty()).then(RootsCapabilities::default);
        capabilities.sampling = self.sampling.then(SamplingCapability::default);
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        capabilities.elicitation = self.person.is_some().then_some(form);
        let implementation = Implementation::new("cog", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, implementation);
        if is_old {
            config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        }
        let uris = self.roots.iter().filter_map(|root| Url::from_directory_path(root).ok());
        Client {
            config,
            server: self.name.clone(),
            roots: uris.map(|uri| rmcp::model::Root::new(uri.as_str())).collect(),
            sampling: self.sampling,
            person: self.person.clone(),
            shared: Arc::clone(shared),
        }
    }

    fn failed(&self, error: &ClientInitializeError) -> Failed {
        let is_program = matches!(self.transport, McpTransport::Stdio { .. });
        let is_closed = matches!(
            error,
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
        );
        // Of two tries, the second one was what older servers expect.
        let last = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
            other => other,
        };
        let ClientInitializeError::TransportError { error, .. } = last else {
            return Failed { error: self.violation(last), may_be_old: is_closed || !is_program };
        };
        if let Some(error) = self.sign_in_error(error) {
            return error.into();
        }
        Failed { error: self.violation(&chain(error.error.as_ref())), may_be_old: true }
    }

    pub(crate) fn violation(&self, error: &dyn std::fmt::Display) -> McpError {
        let message = excerpt(&error.to_string().replace("Transport [MCP] error: ", ""));
        McpError::Protocol { server: self.name.clone(), message }
    }
}

/// How long an error waits for the last words of a server that ended.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether a variable is no secret: one that every program inherits.
fn is_public(name: &str) -> bool {
    matches!(name, "HOME" | "LANG" | "LOGNAME" | "PATH" | "SHELL" | "TERM" | "TMPDIR" | "USER")
}

/// Why a connection cannot be opened.
struct Failed {
    error: McpError,
    /// Whether another start may help, as the server may be of an older revision.
    may_be_old: bool,
}

impl Failed {
    /// Adds the last words of the server.
    fn with(mut self, last_words: &str) -> Self {
        if let McpError::Protocol { message, .. } = &mut self.error {
            message.push_str(last_words);
        }
        self
    }
}

impl From<McpError> for Failed {
    fn from(error: McpError) -> Self {
        Self { error, may_be_old: false }
    }
}

// The first messages to a server that starts slowly.

/// How long `server/discover` waits for its reply before `initialize` is sent.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// A transport that drops a late reply to `server/discover`.
///
/// The client sends `initialize` if there is no reply within 2 seconds, as an older server gives none. A server that
/// is still starting, such as one that is downloaded first, replies to both later, and the client would take the first reply
/// for that to `initialize`. A server of the current revision then refuses `initialize`: its transport is returned for another
/// `server/discover`.
struct Startup<T> {
    transport: Option<T>,
    returned: Returned<T>,
    discover: Option<RequestId>,
    /// Until when its reply is waited for.
    patience: Option<Instant>,
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
            patience: None,
            late: None,
            is_slow: false,
        };
        (startup, Returned(returned))
    }

    fn note(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        match request.request {
            ClientRequest::DiscoverRequest(_) => {
                self.discover = Some(request.id.clone());
                self.patience = Some(Instant::now() + DISCOVER_TIMEOUT);
            }
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
        Cow::Borrowed("MCP") // without the names of types, for errors
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
            let received = self.transport.as_mut()?.receive();
            let message = match self.patience {
                Some(end) => tokio::select! {
                    message = received => message?,
                    () = sleep_until(end) => {
                        self.patience = None;
                        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no reply to server/discover", None);
                        return Some(ServerJsonRpcMessage::error(error, self.discover.clone()));
                    }
                },
                None => received.await?,
            };
            if !self.is_late(&message) {
                self.patience = None;
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
