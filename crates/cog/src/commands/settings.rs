//! What each command does first and last: it reads settings, and starts and ends telemetry.

use cog_host::settings::{Environment, Flags, Settings, SettingsError};

use crate::output::Console;

/// Reads the settings of a command that calls models, and notes what a project's file makes dearer.
///
/// # Errors
/// As [`Settings::read`].
pub(super) fn load_run_settings(
    flags: Flags,
    environment: Environment,
    console: &Console,
) -> Result<Settings, SettingsError> {
    let settings = Settings::read(flags, environment)?;
    settings.costly_notes().iter().for_each(|note| console.note(note));
    Ok(settings)
}

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
