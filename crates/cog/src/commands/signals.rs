//! Signals: Ctrl-C and SIGTERM end the program; SIGHUP makes a server read its tokens again.

use cog_spec::ErrorBody;

/// The signals that end the program, from now on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Starts listening. Must be called within an async runtime.
    ///
    /// # Errors
    /// E4000 where the system refuses.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        use tokio::signal::unix::SignalKind;
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    /// None.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// The signal to read files again (SIGHUP), from now on.
pub(super) struct ReloadSignal {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ReloadSignal {
    /// Starts listening, so that the signal no longer ends the program. Must be called within an async runtime.
    ///
    /// # Errors
    /// E4000 where the system refuses.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        Ok(Self { hangup: listen(tokio::signal::unix::SignalKind::hangup())? })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        self.hangup.recv().await;
    }
}

#[cfg(not(unix))]
impl ReloadSignal {
    /// Does nothing: this system has no such signal.
    ///
    /// # Errors
    /// None.
    pub(super) fn new() -> Result<Self, ErrorBody> {
        Ok(Self {})
    }

    /// Never returns.
    pub(super) async fn next(&mut self) {
        std::future::pending().await
    }
}

#[cfg(unix)]
fn listen(kind: tokio::signal::unix::SignalKind) -> Result<tokio::signal::unix::Signal, ErrorBody> {
    tokio::signal::unix::signal(kind).map_err(|error| {
        ErrorBody::new(cog_spec::Code::InternalError, format!("cannot listen for signals: {error}"))
    })
}
