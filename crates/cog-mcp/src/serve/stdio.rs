//! Messages as lines: of standard input and output, or of any other pair of streams.

use std::pin::pin;

use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{ModuleServer, opening::Opening};

/// The maximum length of a message, in bytes. A longer one is dropped, and the connection stays open.
const MAX_MESSAGE: usize = 32 << 20;

impl ModuleServer {
    /// Serves the client at standard input and output, until it closes them or `shutdown` is ready. Nothing else may write
    /// to standard output.
    ///
    /// # Errors
    /// The client does not follow the protocol, or is gone.
    pub async fn serve_stdio(self, shutdown: impl Future<Output = ()>) -> Result<(), String> {
        let (input, output) = stdio_pipes();
        self.serve_streams(input, output, shutdown).await
    }

    /// Serves the client at these streams.
    ///
    /// # Errors
    /// The client does not follow the protocol, or is gone.
    pub async fn serve_streams(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), String> {
        let stop = CancellationToken::new();
        let mut serving = pin!(self.serve_until(input, output, stop.clone()));
        tokio::select! {
            served = &mut serving => return served,
            () = shutdown => stop.cancel(),
        }
        serving.await
    }

    async fn serve_until(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), String> {
        let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
        match serve_server_with_ct(self, Opening::new(transport), stop).await {
            Ok(service) => service.waiting().await.map(drop).map_err(|error| error.to_string()),
            // The client closed the connection before its first request.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
