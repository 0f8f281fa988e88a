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

/// A connection whose writes fail once the peer has taken nothing for too long.
///
/// It stands at the socket, under every transport: a client that does not read cannot hold a stream, an answer or
/// a WebSocket for longer than this.
pub(crate) struct WriteTimeout<IO> {
    io: IO,
    limit: Duration,
    /// Runs while a write waits for the peer.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Is told once when the peer was too slow.
    told: Option<Box<dyn FnOnce() + Send>>,
    /// The connection's place among those that are served: kept through an upgrade, free when it closes.
    _place: Option<OwnedSemaphorePermit>,
}

impl<IO: AsyncWrite + Unpin> WriteTimeout<IO> {
    /// The connection, the longest that a write may wait, and who is told when one has waited longer.
    pub(crate) fn new(io: IO, limit: Duration, told: impl FnOnce() + Send + 'static) -> Self {
        Self { io, limit, waiting: None, told: Some(Box::new(told)), _place: None }
    }

    /// The same, in this place until it closes.
    pub(crate) fn in_place(self, place: OwnedSemaphorePermit) -> Self {
        Self { _place: Some(place), ..self }
    }

    /// Writes, and keeps the time that writes wait.
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
        if let Some(tell) = self.told.take() {
            tell();
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read what it asked for",
        )))
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
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let count = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (WriteTimeout::new(server, LIMIT, count), client, told)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut server, _client, told) = stalling();
        let error = server.write_all(b"12345").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(told.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_little_in_time_goes_on() {
        let (mut server, mut client, told) = stalling();
        let writing = async {
            server.write_all(b"123456789012").await.unwrap();
            drop(server);
        };
        let reading = async {
            let mut read = Vec::new();
            for _ in 0..3 {
                advance(LIMIT - Duration::from_millis(1)).await;
                let mut piece = [0; 4];
                client.read_exact(&mut piece).await.unwrap();
                read.extend(piece);
            }
            read
        };
        let (read, ()) = tokio::join!(reading, writing);
        assert_eq!(read, b"123456789012");
        assert_eq!(told.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_only_quiet_stays() {
        let (mut server, mut client, _) = stalling();
        server.write_all(b"1234").await.unwrap();
        advance(LIMIT * 10).await;
        client.read_exact(&mut [0; 4]).await.unwrap();
        server.write_all(b"5678").await.unwrap();
    }
}
