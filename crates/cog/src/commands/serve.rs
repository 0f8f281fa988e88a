//! `cog serve`: modules over HTTP.

use std::{io, net::SocketAddr, path::Path, pin::pin, sync::Arc};

use cog_media::Access;
use cog_run::sessions::{SessionError, Sessions};
use cog_server::{MediaStore, Metrics, Server, SetupError, Tokens};
use cog_spec::{Code, ErrorBody};
use tokio::{net::TcpListener, runtime::Runtime as Events, sync::oneshot};

use super::{providers, runtime, signals::Signals};
use crate::{
    args::ServeArgs,
    error::CliError,
    exit::Exit,
    output::Console,
    settings::{Environment, ServeSettings, Settings},
};

/// Serves until Ctrl-C or SIGTERM; at a second of them it ends at once.
pub(crate) fn serve(args: &ServeArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::load(args.model.flags(), environment, console)?;
    let (mut serving, _) = ServeSettings::read(&settings, |flag| args.settings.get(flag))?;
    serving.server.access.tokens = tokens(serving.token_file.as_deref(), console)?;
    serving.server.access.check(serving.socket_addr()).map_err(|error| cannot_serve(&error))?;
    let selected = providers::select(&settings, providers::RecordMode::Off)?;
    let metrics = Metrics::new();
    let media = MediaStore::new(serving.server.uploads.clone(), Some(settings.media.tool()));
    let runtime = runtime::builder(&settings, selected.providers)
        .media(access(&settings, &media))
        .observer(Arc::new(metrics.clone()))
        .build();
    let mut kept = serving.sessions.clone();
    kept.state_dir = serving.state_dir.clone();
    kept.recovery = kept.recovery.filter(|_| serving.resume);
    let sessions = Sessions::open(kept).map_err(|error| cannot_keep(&error))?;
    let modules = runtime.finder().origins().len();
    raise_open_files();
    events(serving.workers)?.block_on(async {
        let listener = TcpListener::bind(serving.socket_addr()).await;
        let listener = listener.map_err(|error| cannot_listen(serving.socket_addr(), &error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(serving.socket_addr(), &error))?;
        let signals = Signals::new()?;
        console.note(&selected.note);
        console.note(&format!("{modules} modules at http://{address} (Ctrl-C ends it)"));
        let server =
            Server::new(serving.server.clone(), runtime, sessions).with_metrics(metrics).with_media(media);
        until_told(server, listener, signals, console).await
    })
}

/// What remote callers may open: addresses, uploads of their own, and files under the operator's roots alone.
fn access(settings: &Settings, uploads: &MediaStore) -> Access {
    Access {
        fetcher: settings.media.fetcher(),
        by_url: settings.media.by_url.value,
        strip_metadata: settings.media.strip_metadata.value,
        files: settings.media.files([]),
        uploads: Some(Arc::new(uploads.clone())),
        tool: Some(settings.media.tool()),
        ..Access::default()
    }
}

/// The tokens of the file, where there is one.
fn tokens(file: Option<&Path>, console: &Console) -> Result<Option<Tokens>, CliError> {
    let Some(file) = file else { return Ok(None) };
    let tokens = Tokens::open(file).map_err(|error| CliError::Usage {
        message: format!("--token-file {}: {error}", file.display()),
        suggestion: Some(error.suggestion().to_owned()),
    })?;
    if Tokens::is_exposed(file) {
        let file = file.display();
        console.note(&format!(
            "warning: others of this machine may read {file}; `chmod 600 {file}` keeps the tokens yours"
        ));
    }
    Ok(Some(tokens))
}

/// Serves; the first signal lets what is under way end, the second does not.
async fn until_told(
    server: Server,
    listener: TcpListener,
    mut signals: Signals,
    console: &Console,
) -> Result<Exit, CliError> {
    let (tell, told) = oneshot::channel::<()>();
    let mut tell = Some(tell);
    let mut serving = pin!(server.serve(listener, async { drop(told.await) }));
    loop {
        tokio::select! {
            ended = &mut serving => return ended.map(|()| Exit::Ok).map_err(|error| cannot_serve(&error)),
            () = signals.next() => match tell.take() {
                Some(tell) => {
                    console.note("ending; streams have their time to end too (once more ends at once)");
                    let _ = tell.send(());
                }
                None => return Ok(Exit::Interrupted),
            },
        }
    }
}

fn cannot_keep(error: &SessionError) -> ErrorBody {
    ErrorBody::new(error.code(), format!("sessions cannot be kept: {error}"))
        .suggest("choose another --state-dir, a directory of your own")
}

/// Lets the server have as many connections open as the system allows: the usual limit is 1,024 files.
#[cfg(unix)]
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that may not be, the server has what it has, and further connections wait.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Where there is no such limit.
#[cfg(not(unix))]
fn raise_open_files() {}

fn events(workers: usize) -> Result<Events, ErrorBody> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // With hundreds of connections a worker's own queue overflows into the one that all share; looked into as rarely as
    // by default, that lets some clients wait many times as long as others.
    builder.global_queue_interval(2);
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("the system gives no event loop: {error}"))
    })
}

fn cannot_serve(error: &SetupError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion().to_owned()) }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> ErrorBody {
    let error_body = ErrorBody::new(Code::InternalError, format!("cannot listen at {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            error_body.suggest("another program listens there; choose another --port, or 0")
        }
        io::ErrorKind::PermissionDenied => {
            error_body.suggest("ports below 1024 are the system's; choose another --port")
        }
        _ => error_body,
    }
}
