//! The first messages to a server that starts slowly.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{ClientRequest, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// A transport that drops a late reply to `server/discover`.
///
/// The client sends `initialize` if there is no reply within 10 seconds, as an older server gives none. A server that
/// is still starting, such as one that is downloaded first, replies to both later, and the client would take the first reply
/// for that to `initialize`. A server of the current revision then refuses `initialize`: its transport is returned for another
/// `server/discover`.
pub(crate) struct Startup<T> {
    transport: Option<T>,
    returned: Returned<T>,
    discover: Option<RequestId>,
    /// The request whose reply is not wanted any more.
    late: Option<RequestId>,
    /// Whether that reply arrived.
    is_slow: bool,
}

/// The transport to a server that replied late, once its [`Startup`] is dropped.
pub(crate) struct Returned<T>(Arc<Mutex<Option<T>>>);

impl<T> Returned<T> {
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Startup<T> {
    pub(crate) fn new(transport: T) -> (Self, Returned<T>) {
        let returned = Arc::new(Mutex::new(None));
        let startup = Self {
            transport: Some(transport),
            returned: Returned(Arc::clone(&returned)),
            discover: None,
            late: None,
            is_slow: false,
        };
        (startup, Returned(returned))
    }

    fn note(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        match request.request {
            ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
            ClientRequest::InitializeRequest(_) => self.late = self.discover.take(),
            _ => {}
        }
    }

    fn is_late(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.is_some() && id == self.late.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Startup<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        let sent = self.transport.as_mut().map(|transport| transport.send(message));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.as_mut()?.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
            self.late = None;
            self.is_slow = true;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match self.transport.take() {
            Some(mut transport) => transport.close().await,
            None => Ok(()),
        }
    }
}

impl<T> Drop for Startup<T> {
    fn drop(&mut self) {
        if self.is_slow {
            *self.returned.0.lock().unwrap_or_else(PoisonError::into_inner) = self.transport.take();
        }
    }
}
