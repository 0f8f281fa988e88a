//! Plain HTTP/1.1 to this machine, with each connection read in the task of its call.
//!
//! The client for all other URLs runs one task per connection, which passes on each body chunk separately. That costs
//! two wakeups per event of a reply; this client has none. Local servers need neither TLS, HTTP/2 nor a proxy.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

use super::error::root_cause;
use crate::transport::TransportError;

/// How long an idle connection is retained.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);
/// The maximum number of idle connections.
const MAX_IDLE: usize = 512;
/// The number of chunks read to find the end of a body that is no longer needed.
const MAX_DRAINED: usize = 16;

/// A client for one server on this machine.
pub(super) struct Direct {
    host: String,
    port: u16,
    connect_timeout: Duration,
    pool: Arc<Pool>,
}

/// The idle connections, most recently used last.
#[derive(Default)]
struct Pool(Mutex<VecDeque<(Instant, Connection)>>);

/// A connection. It makes progress only while it is polled.
struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
    is_open: bool,
}

/// The body of a reply. Its connection returns to the pool after the end of the body, and is closed if dropped
/// earlier.
pub(super) struct Body {
    body: Incoming,
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl Direct {
    pub(super) fn new(host: &str, port: u16, connect_timeout: Duration) -> Self {
        let host = host.trim_matches(['[', ']']).to_owned();
        Self { host, port, connect_timeout, pool: Arc::default() }
    }

    /// Sends a request, over a new connection if none is idle or the server has just closed it.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, TransportError> {
        loop {
            let pooled = self.pool.take();
            let is_new = pooled.is_none();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => self.open().await?,
            };
            match connection.send(request).await {
                Ok(reply) => {
                    let pool = Arc::clone(&self.pool);
                    return Ok(reply.map(|body| Body { body, connection: Some(connection), pool }));
                }
                // A server closes an idle connection at any time. A request that was not written can be sent again; one
                // that was may have been executed.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(TransportError::Broken(root_cause(error.error()))),
                },
            }
        }
    }

    async fn open(&self) -> Result<Connection, TransportError> {
        let connected =
            timeout(self.connect_timeout, TcpStream::connect((self.host.as_str(), self.port))).await;
        let stream =
            connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(connect_error)?;
        // Without it the last packet of a request waits for the acknowledgement of the one before, up to 40 ms.
        stream.set_nodelay(true).map_err(connect_error)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| TransportError::Broken(root_cause(&error)))?;
        Ok(Connection { sender, driver: Box::pin(driver), is_open: true })
    }
}

fn connect_error(error: io::Error) -> TransportError {
    TransportError::Connect { message: error.to_string(), kind: None }
}

impl Pool {
    /// Takes an idle connection that is still open.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        while let Some((since, mut connection)) = idle.pop_back() {
            if since.elapsed() < MAX_IDLE_TIME && connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Returns a connection to the pool.
    fn put(&self, mut connection: Connection) {
        if !connection.is_idle() {
            return;
        }
        let mut idle = self.lock();
        while idle.len() >= MAX_IDLE || idle.front().is_some_and(|(since, _)| since.elapsed() > MAX_IDLE_TIME)
        {
            idle.pop_front();
        }
        idle.push_back((Instant::now(), connection));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Connection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::client::conn::TrySendError<Request<Full<Bytes>>>> {
        let mut reply = pin!(self.sender.try_send_request(request));
        let driver = &mut self.driver;
        let is_open = &mut self.is_open;
        // The driver first: it writes the request and reads the reply that the second future waits for.
        poll_fn(|context| {
            *is_open = *is_open && driver.as_mut().poll(context).is_pending();
            reply.as_mut().poll(context)
        })
        .await
    }

    /// Performs the reads and writes that are possible now.
    fn drive(&mut self, context: &mut Context<'_>) {
        self.is_open = self.is_open && self.driver.as_mut().poll(context).is_pending();
    }

    /// Returns whether the connection is ready for a request.
    fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.is_open && self.sender.is_ready()
    }
}

impl Body {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let mut has_driven = false;
        loop {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Some(Ok(data))),
                    Err(_trailers) => {}
                },
                Poll::Ready(Some(Err(error))) => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => {
                    self.connection.take().into_iter().for_each(|connection| self.pool.put(connection));
                    return Poll::Ready(None);
                }
                // Driving the connection may have filled the body, so it is polled once more before this task waits.
                Poll::Pending if has_driven => return Poll::Pending,
                Poll::Pending => {
                    connection.drive(context);
                    has_driven = true;
                }
            }
        }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let data = self.poll_data(context);
        data.map(|data| data.map(|data| data.map_err(|error| TransportError::Broken(root_cause(&error)))))
    }
}

impl Drop for Body {
    /// Drains the body. After the last event usually only the end of the body is missing, and it has already arrived.
    fn drop(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MAX_DRAINED {
            if !matches!(self.poll_data(&mut context), Poll::Ready(Some(Ok(_)))) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
