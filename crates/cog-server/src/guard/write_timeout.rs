use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};

/// A connection whose writes fail once the peer has read nothing for too long.
///
/// It wraps the socket, below every transport, so that a client that does not read cannot hold a stream, a response or a
/// WebSocket for longer.
pub(crate) struct WriteTimeout<IO> {
    io: IO,
    limit: Duration,
    /// The timer of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Called once when a write times out.
    on_timeout: Option<Box<dyn FnOnce() + Send>>,
    /// The permit of the connection, held through an upgrade until it closes.
    _permit: Option<OwnedSemaphorePermit>,
}

impl<IO: AsyncWrite + Unpin> WriteTimeout<IO> {
    /// Wraps a connection. `on_timeout` is called when a write waits for longer than `limit`.
    pub(crate) fn new(io: IO, limit: Duration, on_timeout: impl FnOnce() + Send + 'static) -> Self {
        Self { io, limit, waiting: None, on_timeout: Some(Box::new(on_timeout)), _permit: None }
    }

    /// Holds this permit until the connection closes.
    pub(crate) fn with_permit(self, permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Some(permit), ..self }
    }

    /// Writes, and fails when the write has waited for too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut IO>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = write(Pin::new(&mut self.io), context) {
            self.waiting = None;
            return Poll::Ready(done);
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        if waiting.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        if let Some(on_timeout) = self.on_timeout.take() {
            on_timeout();
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "write timeout: the client does not read")))
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for WriteTimeout<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |io, context| io.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |io, context| io.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, |io, context| io.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, |io, context| io.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        time::advance,
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn stalling() -> (WriteTimeout<DuplexStream>, DuplexStream, Arc<AtomicUsize>) {
        let (server, client) = duplex(4);
        let timeouts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&timeouts);
        let count = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (WriteTimeout::new(server, LIMIT, count), client, timeouts)
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_nothing_times_out() {
        let (mut server, _client, timeouts) = stalling();
        let error = server.write_all(b"12345").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(timeouts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_slowly_stays_connected() {
        let (mut server, mut client, timeouts) = stalling();
        let writing = async {
            server.write_all(b"123456789012").await.unwrap();
            drop(server);
        };
        let reading = async {
            let mut read = Vec::new();
            for _ in 0..3 {
                advance(LIMIT - Duration::from_millis(1)).await;
                let mut chunk = [0; 4];
                client.read_exact(&mut chunk).await.unwrap();
                read.extend(chunk);
            }
            read
        };
        let (read, ()) = tokio::join!(reading, writing);
        assert_eq!(read, b"123456789012");
        assert_eq!(timeouts.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_does_not_time_out() {
        let (mut server, mut client, _) = stalling();
        server.write_all(b"1234").await.unwrap();
        advance(LIMIT * 10).await;
        client.read_exact(&mut [0; 4]).await.unwrap();
        server.write_all(b"5678").await.unwrap();
    }
}
