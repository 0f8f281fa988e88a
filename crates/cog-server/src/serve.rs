//! From a listener to connections, and from connections to the router. HTTP/1.1: without TLS no browser speaks anything
//! else.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo, http::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use tower::Service as _;

use crate::{guard::Stall, state::App};
use cog_run::StopReason;

/// How long to wait where the system gives no connection, such as for want of file handles.
const BREATH: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is ready, then lets what is under way end.
pub(crate) async fn serve(
    router: Router,
    app: App,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let connections = Connections::new(router, &app);
    let mut tasks = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let permit = Arc::clone(&connections.places).acquire_owned();
        tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, permit) => match accepted {
                Ok((stream, peer, permit)) => {
                    tasks.spawn(connections.serve(stream, peer, permit));
                }
                Err(error) if is_fatal(&error) => return Err(error),
                Err(_) => sleep(BREATH).await,
            },
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
    connections.drain(&app).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    permit: impl Future<Output = Result<OwnedSemaphorePermit, tokio::sync::AcquireError>>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = permit.await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// Whether there will be no connection any more.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected)
}

/// How a connection is served, and those that are.
struct Connections {
    router: Router,
    protocol: Builder<TokioExecutor>,
    places: Arc<Semaphore>,
    slow_reader: Duration,
    open: GracefulShutdown,
}

impl Connections {
    fn new(router: Router, app: &App) -> Self {
        let settings = &app.settings;
        let mut protocol = Builder::new(TokioExecutor::new()).http1_only();
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(settings.header_timeout)
            .max_buf_size(settings.max_header_bytes)
            .pipeline_flush(true);
        Self {
            router,
            protocol,
            places: Arc::new(Semaphore::new(settings.max_connections)),
            slow_reader: settings.slow_reader,
            open: GracefulShutdown::new(),
        }
    }

    /// One connection, until its end.
    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + Send + 'static {
        // Chunks are small, and each is to leave when it is there.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Stall::new(stream, self.slow_reader, || {}));
        let router = self.router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().call(request)
        });
        let connection = self.protocol.serve_connection_with_upgrades(io, service).into_owned();
        let watched = self.open.watch(connection);
        async move {
            // A connection that breaks off concerns nobody else.
            let _ = watched.await;
            drop(permit);
        }
    }

    /// Waits for what is under way: until a part of the time is left for runs to end by themselves, then they are
    /// stopped and have the rest of it to say so.
    async fn drain(self, app: &App) {
        let whole = app.settings.drain;
        let last = (whole / 4).min(Duration::from_secs(2));
        let ended = async {
            tokio::join!(self.open.shutdown(), app.sessions.idle());
        };
        let mut ended = std::pin::pin!(ended);
        if timeout(whole.saturating_sub(last), &mut ended).await.is_err() {
            app.sessions.stop_all(StopReason::Shutdown);
            let _ = timeout(last, ended).await;
        }
    }
}
