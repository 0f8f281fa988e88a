//! What each command does first and last: it starts and ends telemetry.

use cog_host::settings::Settings;

use crate::output::Console;

/// Notes the variables of telemetry that are not supported, before runs.
pub(super) fn note_telemetry(settings: &Settings, console: &Console) {
    settings.telemetry_notes().iter().for_each(|note| console.note(note));
}

/// Exports what is left of spans and metrics, and reports what was lost.
pub(super) fn close_telemetry(settings: &Settings, console: &Console) {
    if let Some(note) = settings.close_telemetry() {
        console.note(&note);
    }
}
