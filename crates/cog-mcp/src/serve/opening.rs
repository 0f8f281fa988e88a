//! The first messages of a client.

use std::borrow::Cow;

use rmcp::{
    RoleServer,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// A transport that drops what a client sends before its first request: notifications and responses that belong to
/// nothing, which would end the connection.
pub(super) struct Opening<T> {
    transport: T,
    is_open: bool,
}

impl<T> Opening<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, is_open: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opening<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.transport.receive().await?;
            self.is_open |= matches!(message, JsonRpcMessage::Request(_));
            if self.is_open {
                return Some(message);
            }
            tracing::warn!("ignored a message before the first request");
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
