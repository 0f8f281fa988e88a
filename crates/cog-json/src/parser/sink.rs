//! The receivers of events.

use crate::event::Event;

/// Receives events. With [`Silent`] the compiler removes the work for them.
pub(super) trait Sink {
    const LIVE: bool;

    fn emit(&mut self, event: Event<'_>);
}

/// Passes events to a function.
pub(super) struct Live<'f>(pub(super) &'f mut dyn FnMut(Event<'_>));

impl Sink for Live<'_> {
    const LIVE: bool = true;

    fn emit(&mut self, event: Event<'_>) {
        (self.0)(event);
    }
}

/// Drops events.
pub(super) struct Silent;

impl Sink for Silent {
    const LIVE: bool = false;

    fn emit(&mut self, _: Event<'_>) {}
}
