//! A session as its caller sees it.

use std::sync::Arc;

use super::{
    shared::Shared,
    subscriber::{After, Subscriber},
};

/// A run that has begun, and its log.
///
/// One that is dropped before anybody [follows](Session::follow) it stops its run, unless that is detached.
pub struct Session(Arc<Shared>);

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The session's id: `sess_` and 128 random bits in hexadecimal (SPEC 11.2).
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// A reader of the log from this place on. The last reader that is dropped stops a run that is not detached.
    pub fn follow(&self, after: After) -> Subscriber {
        Subscriber::new(Arc::clone(&self.0), after)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.leave_unread();
    }
}
