//! Connections: accepting them, their limits, and how they end.

use std::{error::Error, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tower::Service as _;

use crate::{
    ServerSettings,
    guard::{Guard, WriteTimeout},
};

/// How long the last chunks and answers have to reach their clients once everything was stopped.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait where the system gives no more connections.
const PAUSE: Duration = Duration::from_millis(100);

/// The least that hyper takes as the room for a head, in bytes.
const LEAST_HEADER_BYTES: usize = 8 * 1024;

/// Serves HTTP/1.1 until `shutdown`; then takes no connection more, lets what is under way end by itself for as long
/// as the settings say, has `stop` end the rest, and waits until the clients have been told.
///
/// HTTP/2 is not spoken: without TLS no browser does, a proxy speaks HTTP/1.1 to what is behind it, and a stream of
/// HTTP/2 that stands still cannot be seen at its socket.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    guard: Guard,
    settings: &ServerSettings,
    shutdown: impl Future<Output = ()>,
    stop: impl FnOnce(),
) {
    let mut connections = Connections::new(router, guard.clone(), settings);
    tokio::select! {
        () = connections.accept_from(&listener) => {}
        () = shutdown => {}
    }
    drop(listener);
    guard.drain.begin();
    let _ = timeout(settings.drain, guard.drain.idle()).await;
    guard.drain.stop();
    stop();
    let _ = timeout(FAREWELL, guard.drain.idle()).await;
    connections.close().await;
}

/// The connections of a server, and what each is made with.
struct Connections {
    router: Router,
    guard: Guard,
    http: http1::Builder,
    slow_reader: Duration,
    places: Arc<Semaphore>,
    /// True once no connection is to answer more than it is answering.
    closing: watch::Sender<bool>,
    open: JoinSet<()>,
}

impl Connections {
    fn new(router: Router, guard: Guard, settings: &ServerSettings) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(settings.header_timeout)
            .max_buf_size(settings.max_header_bytes.max(LEAST_HEADER_BYTES));
        Self {
            router,
            guard,
            http,
            slow_reader: settings.slow_reader,
            places: Arc::new(Semaphore::new(settings.max_connections.clamp(1, Semaphore::MAX_PERMITS))),
            closing: watch::Sender::new(false),
            open: JoinSet::new(),
        }
    }

    /// Accepts connections, no more than there are places for: further ones wait in the system's queue.
    async fn accept_from(&mut self, listener: &TcpListener) {
        loop {
            tokio::select! {
                accepted = accept(listener, &self.places) => match accepted {
                    Ok((stream, peer, place)) => self.open(stream, peer, place),
                    Err(error) => {
                        tracing::warn!(%error, "no connection could be accepted");
                        sleep(PAUSE).await;
                    }
                },
                Some(_) = self.open.join_next() => {}
            }
        }
    }

    fn open(&mut self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        // Chunks are small and are to leave at once.
        let _ = stream.set_nodelay(true);
        let metrics = self.guard.metrics.clone();
        let stream =
            WriteTimeout::new(stream, self.slow_reader, move || metrics.http.slow_reader()).in_place(place);
        let (http, router) = (self.http.clone(), self.router.clone());
        self.open.spawn(connection(http, stream, router, peer, self.closing.subscribe()));
    }

    /// Closes those that are idle, lets answers under way end, and then closes the rest.
    async fn close(mut self) {
        self.closing.send_replace(true);
        let all = async { while self.open.join_next().await.is_some() {} };
        let _ = timeout(FAREWELL, all).await;
        self.open.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

async fn connection(
    http: http1::Builder,
    stream: WriteTimeout<TcpStream>,
    router: Router,
    peer: SocketAddr,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error = &error as &dyn Error, "a connection broke off");
    }
}

async fn told(closing: &mut watch::Receiver<bool>) {
    // The sender is gone only when the server is.
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}

#[cfg(test)]
mod tests;
