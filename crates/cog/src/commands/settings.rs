//! What each command does first: it reads the settings.

use cog_host::settings::{Environment, Flags, Settings, SettingsError};

use crate::output::Console;

/// Reads the settings, and warns about deprecated names.
///
/// # Errors
/// As [`Settings::read`].
pub(super) fn load_settings(
    flags: Flags,
    environment: Environment,
    console: &Console,
) -> Result<Settings, SettingsError> {
    let settings = Settings::read(flags, environment)?;
    settings.deprecated.iter().for_each(|name| console.deprecated(name));
    Ok(settings)
}
