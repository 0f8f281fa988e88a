//! Those who want the program to end: Ctrl-C, and SIGTERM where there is such a thing.

use cog_spec::{Code, ErrorBody};

/// The signals from now on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen; only within an event loop.
    ///
    /// # Errors
    /// E4000 where the system gives no signals.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                ErrorBody::new(Code::InternalError, format!("the system gives no signals: {error}"))
            })
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to listen; only within an event loop.
    ///
    /// # Errors
    /// None here.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        Ok(Self {})
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
