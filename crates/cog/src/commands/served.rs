//! The runtime of modules that others call: the jobs of a queue, the tools of a client.

use std::path::PathBuf;

use cog_host::{context_store, mcp, settings::Settings};
use cog_media::Access;
use cog_run::{Providers, Runtime};

use super::{runtime::note_served, settings::note_telemetry, targets};
use crate::{error::CliError, output::Console};

/// Returns the runtime. Its callers name modules and open media as requests to a server do.
pub(super) fn runtime(
    paths: &[PathBuf],
    settings: &Settings,
    providers: Providers,
    console: &Console,
) -> Result<Runtime, CliError> {
    note_telemetry(settings, console);
    let finder = settings.finder();
    let here = targets::module_here(&finder).map(|_| PathBuf::from(".")).filter(|_| paths.is_empty());
    // Nobody named the working directory: its module is served, and calls tools only if it is trusted.
    let finder = finder.with_paths(paths.iter().cloned())?.with_found_paths(here)?;
    note_served(&finder, console);
    let builder = settings.runtime_builder(providers).context_store(context_store(None));
    let builder = settings.add_cache(builder, None);
    let access = Access {
        fetcher: settings.media.fetcher(),
        by_url: settings.media.by_url.value,
        strip_metadata: settings.media.strip_metadata.value,
        files: settings.media.files([]),
        tool: Some(settings.media.tool()),
        ..Access::default()
    };
    let builder = mcp::add_tools(builder, settings, mcp::Needed::ByAny, |note| console.note(note))?;
    Ok(builder.finder(finder).media(access).build()?)
}
