//! `cog serve`: modules over HTTP; and what every command shares whose modules others call.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use cog_host::{
    Host, Hosted, Use,
    run_log::ServedRuns,
    settings::{Environment, Flags, ServeSettings, Settings},
};
use cog_module::Finder;
use cog_run::sessions::{SessionError, SessionSettings, Sessions};
use cog_server::{MediaStore, Metrics, Server, SetupError, Tokens};
use cog_spec::{Code, ErrorBody};
use tokio::{net::TcpListener, runtime::Runtime as Events, sync::oneshot};

use super::{
    runtime::{self, note_served},
    workbench::HostWorkbench,
};
use crate::{
    args::{HealthcheckArgs, ModelArgs, OfferedArgs, ServeArgs},
    commands::runtime::{load_run_settings, note_telemetry},
    error::{CliError, Exit},
    output::Console,
    system::{ReloadSignal, Signals, raise_open_files, return_large_blocks},
};

/// What a server is started with.
pub(super) struct Listening<'a> {
    pub(super) offered: &'a OfferedArgs,
    pub(super) model: &'a ModelArgs,
    /// Returns the value of a flag of `cog serve`.
    pub(super) flag: &'a dyn Fn(&str) -> Option<String>,
    /// Whether modules are served only as tools of MCP.
    pub(super) only_mcp: bool,
    /// The workbench, if the server has one.
    pub(super) workbench: Option<ServedWorkbench<'a>>,
}

/// The workbench of a server.
pub(super) struct ServedWorkbench<'a> {
    /// Whether files of modules may be written.
    pub(super) can_edit: bool,
    /// Opens the page with its address and token, for a server that is only for the browser of its user.
    pub(super) open: Option<&'a dyn Fn(&PageAddress)>,
}

/// Where the page of a server is that is only for the browser of its user.
pub(super) struct PageAddress {
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

/// Serves until Ctrl-C or SIGTERM. A second one ends the server at once; SIGHUP reads the tokens again.
pub(crate) fn serve(args: &ServeArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let listening = Listening {
        offered: &args.offered,
        model: &args.model,
        flag: &|flag| args.settings.get(flag),
        only_mcp: false,
        workbench: args.workbench.then_some(ServedWorkbench { can_edit: args.edit, open: None }),
    };
    listen(&listening, environment, console)
}

/// Serves at the address of the settings.
pub(super) fn listen(
    args: &Listening<'_>,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let opens = args.workbench.as_ref().and_then(|workbench| workbench.open);
    let mut settings = load_run_settings(args.model.flags(), environment.clone(), console)?;
    // Its user is the operator: what is run on the page is logged as what is run with `cog run`.
    settings.logs.server.value |= opens.is_some();
    let settings = Arc::new(settings);
    note_telemetry(&settings, console);
    let (mut serving, _) = ServeSettings::read(&settings, args.flag)?;
    // Tokens and address first: a server that must not listen should not start MCP servers either.
    let token = match opens {
        Some(_) => Some(only_for_operator(&mut serving)?),
        None => {
            serving.server.access.tokens = tokens(serving.token_file.as_deref(), console)?;
            None
        }
    };
    serving.server.access.check(serving.socket_addr()).map_err(|error| cannot_serve(&error))?;
    if args.workbench.is_some() {
        serving.server.access.check_workbench(serving.socket_addr()).map_err(|error| cannot_serve(&error))?;
    }
    let metrics = Metrics::new();
    let media = MediaStore::new(serving.server.uploads.clone(), Some(settings.media.tool()));
    let finder = finder(args.offered, &settings, console)?;
    let workbench = args.workbench.as_ref().map(|flags| {
        let workbench = HostWorkbench::new(&settings, &environment, args.model, &finder, console);
        (Arc::new(workbench), flags.can_edit)
    });
    let host = Host {
        finder: Some(finder),
        state_dir: serving.state_dir.as_deref(),
        context_limits: Some(serving.context),
        uploads: Some(Arc::new(media.clone())),
        events: Some(Arc::new(metrics.clone())),
        ..Host::new(&settings)
    };
    let Hosted { runtime, note, notes, .. } = host.runtime(Use::Serve)?;
    notes.iter().for_each(|sentence| console.note(sentence));
    let mut stored = serving.sessions.clone();
    stored.state_dir = serving.state_dir.clone();
    stored.recovery = stored.recovery.filter(|_| serving.resume);
    let broken = cog_server::broken_modules(&runtime);
    for module in &broken {
        console.caution(&format!("module not loaded: {}", module.error.message));
    }
    let modules = runtime.finder().offered().len() - broken.len();
    raise_open_files();
    return_large_blocks();
    events(serving.workers)?.block_on(async {
        let sessions = open_sessions(&serving, stored, &settings).await?;
        let listener = cog_server::listen(serving.socket_addr())
            .map_err(|error| cannot_listen(serving.socket_addr(), &error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(serving.socket_addr(), &error))?;
        // From here on, SIGTERM drains and SIGHUP reads the tokens again. The address is printed after that: whoever waits for it may
        // send a signal at once.
        let signals = Signals::without_hangup()?;
        let reloading = reload_tokens(&serving, ReloadSignal::new()?, console);
        console.note(&note);
        let path = if args.only_mcp { "/mcp" } else { "" };
        console.note(&format!(
            "{modules} {} at http://{address}{path} (Ctrl-C ends it)",
            if modules == 1 { "module" } else { "modules" }
        ));
        let server =
            Server::new(serving.server.clone(), runtime, sessions).with_metrics(metrics).with_media(media);
        let server = match ServedRuns::new(&settings) {
            Some(runs) => server.with_records(Arc::new(runs)),
            None => server,
        };
        let server = match &serving.state_dir {
            Some(directory) => with_budgets(server, &directory.join("budgets.json"))?,
            None => server,
        };
        let server = with_routes(server, args.only_mcp);
        let server = match workbench {
            Some((workbench, can_edit)) => server.with_workbench(workbench, can_edit),
            None => server,
        };
        if let (Some(open), Some(token)) = (opens, token) {
            open(&PageAddress { address, token });
        }
        until_signal(server, listener, signals, reloading, console).await
    })
}

/// Restricts a server to the browser of its user on this machine, whatever the settings of servers for others say. Returns the token
/// of the browser.
fn only_for_operator(serving: &mut ServeSettings) -> Result<String, CliError> {
    let (tokens, token) = Tokens::for_operator().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("the system has no random numbers: {error}"))
    })?;
    let access = &mut serving.server.access;
    access.tokens = Some(tokens);
    access.hosts.clear();
    access.origins.clear();
    access.models = None;
    serving.token_file = None;
    serving.state_dir = None;
    serving.nats.clear();
    Ok(token)
}

/// Returns the finder of modules that others call, and notes which of them get no tools.
fn finder(offered: &OfferedArgs, settings: &Settings, console: &Console) -> Result<Finder, CliError> {
    let finder = settings.finder();
    let finder = if offered.paths.is_empty() {
        // The command line does not name the working directory: its module is served, and calls tools only if it is trusted.
        let here = runtime::module_here(&finder).map(|_| PathBuf::from("."));
        finder.with_found_paths(here)?
    } else {
        finder.with_paths_only(&offered.paths, offered.builtin)?
    };
    note_served(&finder, console);
    Ok(finder)
}

/// Returns the runtime of the tools of a client, or of the jobs of a queue. Their senders name modules and open media as requests to a
/// server do.
#[cfg(any(feature = "mcp", feature = "nats"))]
pub(super) fn served_runtime(
    used: Use<'_>,
    offered: &OfferedArgs,
    settings: &Settings,
    console: &Console,
) -> Result<Hosted, CliError> {
    note_telemetry(settings, console);
    let finder = finder(offered, settings, console)?;
    let hosted = Host { finder: Some(finder), ..Host::new(settings) }.runtime(used)?;
    hosted.notes.iter().for_each(|sentence| console.note(sentence));
    Ok(hosted)
}

#[cfg(feature = "mcp")]
fn with_routes(server: Server, only_mcp: bool) -> Server {
    if only_mcp { server.only_mcp() } else { server }
}

/// Without the feature, a server has all its routes.
#[cfg(not(feature = "mcp"))]
fn with_routes(server: Server, _only_mcp: bool) -> Server {
    server
}

/// Opens the sessions of this server, or of all servers that share them through NATS.
async fn open_sessions(
    serving: &ServeSettings,
    stored: SessionSettings,
    settings: &Settings,
) -> Result<Sessions, CliError> {
    if serving.nats.is_empty() {
        return Ok(Sessions::open(stored).map_err(|error| cannot_store(&error))?);
    }
    shared_sessions(&serving.nats.join(","), stored, settings).await
}

/// Without the feature, no server shares sessions.
#[cfg(not(feature = "nats"))]
async fn shared_sessions(_: &str, _: SessionSettings, _: &Settings) -> Result<Sessions, CliError> {
    Err(CliError::usage(format!("--nats: {}", crate::parse::WITHOUT_NATS)))
}

#[cfg(feature = "nats")]
use super::nats::shared_sessions;

/// Checks that a server accepts requests.
pub(crate) fn healthcheck(args: &HealthcheckArgs, environment: Environment) -> Result<Exit, CliError> {
    let address = match args.address {
        Some(address) => address,
        None => {
            let settings = Settings::read(Flags::default(), environment)?;
            let (serving, _) = ServeSettings::read(&settings, |_| None)?;
            reachable(serving.socket_addr())
        }
    };
    let status = status_of_ready(address, args.timeout)
        .map_err(|error| not_ready(address, &format!("cannot be reached: {error}")))?;
    match status.split(' ').nth(1) {
        Some("200") => Ok(Exit::Ok),
        _ => Err(not_ready(address, &format!("is not ready: {}", status.trim_end())).into()),
    }
}

/// Returns the address at which this machine reaches a server that listens on all of its addresses.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// Requests `/ready`, and returns the status line of the response.
fn status_of_ready(address: SocketAddr, timeout: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write!(stream, "GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = String::new();
    BufReader::new(stream.take(256)).read_line(&mut status)?;
    Ok(status)
}

fn not_ready(address: SocketAddr, reason: &str) -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, format!("the server at {address} {reason}"))
}

/// Reads the token file, if there is one.
fn tokens(file: Option<&Path>, console: &Console) -> Result<Option<Tokens>, CliError> {
    let Some(file) = file else { return Ok(None) };
    let tokens = Tokens::open(file).map_err(|error| CliError::Usage {
        message: format!("--token-file {}: {error}", file.display()),
        suggestion: Some(error.suggestion().to_owned()),
    })?;
    if Tokens::is_exposed(file) {
        let file = file.display();
        console.caution(&format!("other users of this machine can read {file}; run `chmod 600 {file}`"));
    }
    Ok(Some(tokens))
}

/// Reads the token file again at each SIGHUP, until the terminal is closed. The server keeps the current tokens where the file is
/// not valid.
async fn reload_tokens(serving: &ServeSettings, mut signal: ReloadSignal, console: &Console) {
    while signal.next().await {
        let read = tokens(serving.token_file.as_deref(), console);
        match (&serving.server.access.tokens, read) {
            (Some(current), Ok(Some(new))) => {
                current.replace(&new);
                console.note(&format!("SIGHUP: using {new:?} of the token file"));
            }
            (Some(_), Err(CliError::Usage { message, .. })) => {
                console.note(&format!("SIGHUP: keeping the current tokens: {message}"));
            }
            _ => console.note("SIGHUP ignored: no --token-file is set"),
        }
    }
}

/// Serves until the first signal or until the terminal is closed, and then until running requests have ended or another signal
/// arrives.
async fn until_signal(
    server: Server,
    listener: TcpListener,
    mut signals: Signals,
    closed: impl Future<Output = ()>,
    console: &Console,
) -> Result<Exit, CliError> {
    let (shutdown, begun) = oneshot::channel::<()>();
    let mut shutdown = Some(shutdown);
    let mut serving = pin!(server.serve(listener, async { drop(begun.await) }));
    let mut closed = pin!(closed);
    loop {
        tokio::select! {
            ended = &mut serving => return ended.map(|()| Exit::Ok).map_err(|error| cannot_serve(&error)),
            () = signals.next() => {}
            () = &mut closed, if shutdown.is_some() => {}
        }
        let Some(shutdown) = shutdown.take() else { return Ok(Exit::Interrupted) };
        console.note("shutting down; waiting for running requests (Ctrl-C again ends at once)");
        let _ = shutdown.send(());
    }
}

fn cannot_store(error: &SessionError) -> ErrorBody {
    ErrorBody::new(Code::InternalError, format!("cannot store sessions: {error}"))
        .suggest("Use another --state-dir that you own.")
}

/// Returns the async runtime of a server, with a number of threads; 0 has one for each core.
pub(super) fn events(workers: usize) -> Result<Events, ErrorBody> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // With hundreds of connections a worker's queue overflows into the shared queue. At the default interval, some clients
    // of the shared queue wait many times as long as others.
    builder.global_queue_interval(2);
    // A client that keeps its task busy delays the others by that many of its turns.
    builder.event_interval(8);
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("cannot start the async runtime: {error}"))
    })
}

/// Keeps what clients have spent in a file.
fn with_budgets(server: Server, file: &Path) -> Result<Server, CliError> {
    server.with_budget_file(file.to_owned()).map_err(|error| {
        let message = format!("cannot read what clients have spent from {}: {error}", file.display());
        let suggestion = "Remove the file to let each client begin a new period.".to_owned();
        CliError::Usage { message, suggestion: Some(suggestion) }
    })
}

fn cannot_serve(error: &SetupError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion().to_owned()) }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> CliError {
    let suggestion = match error.kind() {
        io::ErrorKind::AddrInUse => {
            Some("Another program uses this port; choose another --port, or 0 for any free port.")
        }
        io::ErrorKind::PermissionDenied => {
            Some("Ports below 1024 require privileges; choose another --port.")
        }
        io::ErrorKind::AddrNotAvailable => Some("This machine does not have the IP address of --listen."),
        _ => None,
    };
    let message = format!("cannot listen at {address}: {error}");
    CliError::Usage { message, suggestion: suggestion.map(str::to_owned) }
}
