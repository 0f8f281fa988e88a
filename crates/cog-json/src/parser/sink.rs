//! Who is told.

use crate::event::Event;

/// MediaCapabilities events, or, when nobody listens, makes the work for them vanish.
pub(super) trait Sink {
    const LIVE: bool;

    fn tell(&mut self, event: Event<'_>);
}

/// A listener.
pub(super) struct Live<'f>(pub(super) &'f mut dyn FnMut(Event<'_>));

impl Sink for Live<'_> {
    const LIVE: bool = true;

    fn tell(&mut self, event: Event<'_>) {
        (self.0)(event);
    }
}

/// Nobody.
pub(super) struct Silent;

impl Sink for Silent {
    const LIVE: bool = false;

    fn tell(&mut self, _: Event<'_>) {}
}
