//! `cog cache`: shows or clears the cache of answers.

use std::{io, path::Path, time::Duration};

use cog_host::settings::{Environment, Flags, Settings, show_duration};
use cog_json::{ToJson, Writer};
use cog_run::{AnswerCache, CacheStats};

use crate::{
    args::{CacheArgs, CacheClearArgs, CacheCommand, CacheStatsArgs},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the subcommand.
pub(crate) fn cache(args: &CacheArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match &args.command {
        CacheCommand::Stats(args) => stats(args, environment, console),
        CacheCommand::Clear(args) => clear(args, environment, console),
    }
}

fn stats(args: &CacheStatsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let stats = open(args.directory.as_deref(), environment)?.stats();
    let stats = stats.map_err(|error| unusable("read", &error))?;
    if args.format.is_json() {
        console.print_json(&StatsJson(&stats))?;
        return Ok(Exit::Ok);
    }
    let oldest = stats.oldest.map(|age| format!(", the oldest {} old", show_duration(whole_seconds(age))));
    let oldest = oldest.unwrap_or_default();
    console.print(&format!("{}, {} bytes{oldest}\n", answers(stats.answers), stats.bytes))?;
    Ok(Exit::Ok)
}

fn clear(args: &CacheClearArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let cache = open(args.directory.as_deref(), environment)?;
    let removed = cache.clear().map_err(|error| unusable("clear", &error))?;
    console.print(&format!("removed {}\n", answers(removed)))?;
    Ok(Exit::Ok)
}

/// Returns the cache in a directory, otherwise the one of the settings.
fn open(directory: Option<&Path>, environment: Environment) -> Result<AnswerCache, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    settings.cache.cache(directory).ok_or_else(|| CliError::Usage {
        message: "no cache is configured".to_owned(),
        suggestion: Some("Name its directory, or set `cache.directory` (COG_CACHE_DIRECTORY).".to_owned()),
    })
}

fn unusable(verb: &str, error: &io::Error) -> CliError {
    CliError::Usage {
        message: format!("cannot {verb} the cache: {error}"),
        suggestion: Some("Check that it is a directory, and that you own it.".to_owned()),
    }
}

fn answers(count: usize) -> String {
    if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

struct StatsJson<'a>(&'a CacheStats);

/// Written by hand: the age is written in seconds.
impl ToJson for StatsJson<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let CacheStats { answers, bytes, oldest, .. } = self.0;
        w.object(|w| {
            w.field("answers", &(*answers as u64));
            w.field("bytes", bytes);
            w.optional("oldest_s", &oldest.map(|age| age.as_secs()));
        });
    }
}
