//! The runtime of modules that others call: the jobs of a queue, the tools of a client.

use std::path::PathBuf;

use cog_host::{Host, Hosted, Use, settings::Settings};

use super::runtime::{self, note_served, note_telemetry};
use crate::{error::CliError, output::Console};

/// Returns the runtime. Its callers name modules and open media as requests to a server do.
pub(super) fn runtime(
    used: Use<'_>,
    paths: &[PathBuf],
    settings: &Settings,
    console: &Console,
) -> Result<Hosted, CliError> {
    note_telemetry(settings, console);
    let finder = settings.finder();
    let here = runtime::module_here(&finder).map(|_| PathBuf::from(".")).filter(|_| paths.is_empty());
    // Nobody named the working directory: its module is served, and calls tools only if it is trusted.
    let finder = finder.with_paths(paths.iter().cloned())?.with_found_paths(here)?;
    note_served(&finder, console);
    let hosted = Host { finder: Some(finder), ..Host::new(settings) }.runtime(used)?;
    hosted.skipped_tools.iter().for_each(|sentence| console.note(sentence));
    Ok(hosted)
}
