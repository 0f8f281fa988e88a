//! The handle of a session for the caller that started it.

use std::sync::Arc;

use super::{
    shared::Shared,
    subscriber::{After, Subscriber},
};

/// A started run and its log.
///
/// When it is dropped before any reader [follows](Session::follow) it, its run is cancelled, unless it is
/// detached.
pub struct Session(Arc<Shared>);

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Returns the session's id: `sess_` and 128 random bits in hexadecimal (SPEC 11.2).
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns a reader of the log from this position. Dropping the last reader cancels the run, unless it is
    /// detached.
    pub fn follow(&self, after: After) -> Subscriber {
        Subscriber::new(Arc::clone(&self.0), after)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.cancel_if_unread();
    }
}
