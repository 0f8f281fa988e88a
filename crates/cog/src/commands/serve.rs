//! `cog serve`: modules over HTTP.

use std::{future::Future, io, net::SocketAddr};

use cog_run::sessions::{SessionSettings, Sessions};
use cog_server::Server;
use cog_spec::{Code, ErrorBody};
use tokio::{net::TcpListener, runtime::Runtime as Events};

use super::{asking, running};
use crate::{
    args::ServeArgs,
    exit::Exit,
    fault::Fault,
    output::Console,
    settings::{Environment, Serving, Settings},
};

/// Serves until Ctrl-C or SIGTERM.
pub(crate) fn serve(args: &ServeArgs, environment: Environment, console: &Console) -> Result<Exit, Fault> {
    let settings = Settings::read(args.model.flags(), environment)?;
    let (serving, _) = Serving::read(&settings, |flag| args.knobs.get(flag))?;
    let asked = asking::asked(&settings, asking::Tape::Off)?;
    let runtime = running::runtime(&settings, asked.providers);
    let sessions =
        Sessions::open(SessionSettings { state_dir: serving.state_dir.clone(), ..serving.sessions.clone() })
            .map_err(|error| ErrorBody::new(error.code(), error.to_string()))?;
    let modules = runtime.finder().origins().len();
    events(serving.workers)?.block_on(async {
        let listener = TcpListener::bind(serving.address()).await;
        let listener = listener.map_err(|error| cannot_listen(serving.address(), &error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(serving.address(), &error))?;
        console.note(&asked.told);
        console.note(&format!("{modules} modules at http://{address} (Ctrl-C ends it)"));
        let server = Server::new(serving.server.clone(), runtime, sessions);
        let told = server.serve(listener, told_to_end(console)?).await;
        told.map_err(|error| cannot_listen(address, &error))?;
        Ok(Exit::Ok)
    })
}

fn events(workers: usize) -> Result<Events, ErrorBody> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("the system gives no event loop: {error}"))
    })
}

/// Ready when somebody wants the server to end.
fn told_to_end(console: &Console) -> Result<impl Future<Output = ()>, ErrorBody> {
    let terminate = terminate().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("the system gives no signals: {error}"))
    })?;
    Ok(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminate => {}
        }
        console.note("ending; streams have their time to end too");
    })
}

/// Ready at SIGTERM.
#[cfg(unix)]
fn terminate() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signal = signal(SignalKind::terminate())?;
    Ok(async move {
        signal.recv().await;
    })
}

/// Where there is no SIGTERM, it never comes.
#[cfg(not(unix))]
fn terminate() -> io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
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
