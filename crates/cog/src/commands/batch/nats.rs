//! `--nats`: the rows are jobs of a NATS queue, which workers run.

use std::sync::Arc;

use cog_batch::{Batch, Jobs, JournalPaths, Rows, Summary};
use cog_host::settings::Settings;
use cog_nats::{NatsRows, Queue};
use cog_run::RunOptions;

use super::{Invocation, files, output::Output};
use crate::{
    args::BatchArgs,
    commands::{emit, nats, runtime},
    error::CliError,
};

/// The maximum of `--max-attempts` in the options of a job.
const MAX_ATTEMPTS: u32 = 10;

/// Rejects the options that a job cannot have.
///
/// # Errors
/// A usage error with what to do instead.
pub(super) fn check(args: &BatchArgs) -> Result<(), CliError> {
    if args.nats().is_none() {
        return Ok(());
    }
    let limits = &args.limits;
    let generation = args.generation.generation();
    let vendor = "A job is run by a worker of yours, or by a vendor: use one of them.";
    let worker = "The workers call the provider: limit them with the --concurrency of `cog worker`.";
    let module = "Set it in the manifest of the module, which the workers read.";
    let refused = [
        ("--via", args.via.via.is_some(), vendor),
        ("--max-cost", limits.max_cost.is_some(), "Limit the rows with --sample."),
        ("--rpm", limits.rpm.is_some(), worker),
        ("--tpm", limits.tpm.is_some(), worker),
        ("--cache", args.cache.is_some(), "Set COG_CACHE_DIRECTORY for the workers."),
        ("--temperature", generation.temperature.is_some(), module),
        ("--max-tokens", generation.max_tokens.is_some(), module),
        ("--seed", generation.seed.is_some(), module),
        ("--max-attempts", args.check.max_attempts.is_some_and(|it| it > MAX_ATTEMPTS), "Use 10 or fewer."),
    ];
    match refused.iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((option, _, suggestion)) => Err(CliError::Usage {
            message: format!("{option} cannot be used with --nats"),
            suggestion: Some((*suggestion).to_owned()),
        }),
    }
}

/// Adds the rows as jobs, and writes their results. Connects before it creates any file.
pub(super) fn run(
    url: &str,
    mut batch: Batch,
    rows: Rows,
    invocation: Invocation<'_>,
) -> Result<Summary, CliError> {
    let Invocation { args, settings, console } = invocation;
    let is_stored = !emit::is_stdout(&args.output);
    batch.warms_cache = false;
    let module = Arc::clone(&batch.module);
    let options = options(&batch.options, args);
    let (summary, jobs) = runtime::block_on(async {
        let queue = open(url, settings).await?;
        let output = Output::open(args, &batch, settings)?;
        let mut jobs = Jobs::open(&args.output, "nats")?;
        if is_stored {
            jobs.begin(files::command())?;
        }
        let runner = NatsRows::new(queue, jobs.name(), &module.manifest, options, batch.retries_failed);
        batch.runner = Some(Arc::new(runner));
        let summary = output.run(&batch, rows, args, console).await?;
        Ok::<_, CliError>((summary, jobs))
    })??;
    // The journal stays if the same command has more to do.
    if is_stored && !JournalPaths::beside(&args.output).journal.exists() {
        jobs.remove();
    }
    Ok(summary)
}

async fn open(url: &str, settings: &Settings) -> Result<Queue, CliError> {
    let options = nats::options(Some(url), settings)?;
    nats::open_queue(&options, settings).await.map_err(|error| nats::error(&error))
}

/// Returns how many jobs of a batch are in the queue.
pub(super) fn count(url: &str, batch: &str, settings: &Settings) -> Result<usize, CliError> {
    runtime::block_on(async {
        open(url, settings).await?.count_of(batch).await.map_err(|error| nats::error(&error))
    })?
}

/// Removes the jobs of a batch from the queue, and returns their number.
pub(super) fn cancel(url: &str, batch: &str, settings: &Settings) -> Result<u64, CliError> {
    runtime::block_on(async {
        open(url, settings).await?.cancel(batch).await.map_err(|error| nats::error(&error))
    })?
}

/// Returns the options of the jobs. The workers choose the provider and the model, unless the command names them.
fn options(options: &RunOptions, args: &BatchArgs) -> RunOptions {
    let mut options = options.clone();
    options.model.clone_from(&args.model.model);
    options.provider = Some(args.model.provider.join(",")).filter(|names| !names.is_empty());
    options
}
