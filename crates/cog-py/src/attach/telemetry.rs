//! The end of telemetry: what is left of spans and metrics is exported when the interpreter ends.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cog_host::settings::Settings;

/// The settings of every runtime, until it is freed.
static OPEN: Mutex<Vec<Weak<Settings>>> = Mutex::new(Vec::new());

/// Exports what is left when the interpreter ends, if telemetry is on.
pub(crate) fn close_at_exit(settings: &Arc<Settings>) {
    if settings.telemetry_target().is_some() {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|settings| settings.strong_count() > 0);
        open.push(Arc::downgrade(settings));
    }
}

/// Exports what is left of all runtimes.
pub(crate) fn close_all() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for settings in open.iter().filter_map(Weak::upgrade) {
        // There is no reader of a note at the end of the interpreter.
        let _ = settings.close_telemetry();
    }
}
