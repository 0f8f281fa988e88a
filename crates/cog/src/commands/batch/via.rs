//! Batches over the batch interface of a vendor: `--via`.

use std::{sync::Arc, time::Instant};

use cog_batch::{Batch, Description, Finished, Job, Jobs, Source, Summary, VendorBatch, VendorBatchProvider};
use cog_host::{
    providers::{ProviderPosition, Selected, provider_settings},
    settings::Settings,
};
use cog_provider::{HttpProvider, Provider as _, vendors::Vendor};
use cog_run::Providers;
use cog_spec::ErrorBody;

use super::{
    About, Invocation, Output, close,
    files::{self, check_module, describe},
    unreadable,
};
use crate::{
    args::BatchArgs,
    commands::{emit, runtime},
    error::{CliError, Exit},
    output::Console,
    system::Signals,
};

/// How far a command takes a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// To its end.
    Complete,
    /// From its jobs, which were sent before, to its end.
    Fetch,
}

/// A batch that is ready.
pub(super) struct ReadyBatch<'a> {
    pub(super) batch: &'a Batch,
    pub(super) output: Output,
    pub(super) source: &'a Source,
    pub(super) about: &'a About,
}

/// Creates the provider for `--via`.
pub(super) fn provider(
    args: &BatchArgs,
    settings: &Settings,
) -> Result<Option<Arc<VendorBatchProvider>>, CliError> {
    let Some(vendor) = args.via.via.as_deref().and_then(Vendor::by_name) else { return Ok(None) };
    if emit::is_stdout(&args.output) || emit::is_stdout(&args.input) {
        return Err(CliError::Usage {
            message: "--via needs files: the batch continues later, in another process".to_owned(),
            suggestion: Some("Name a file for INPUT and for -o.".to_owned()),
        });
    }
    let inner = HttpProvider::new(vendor, provider_settings(settings, vendor, ProviderPosition::First));
    let inner = inner.map_err(|error| ErrorBody::from(&error))?;
    Ok(Some(Arc::new(VendorBatchProvider::new(inner, args.via.retry.is_some()))))
}

/// Returns the providers of the batch: this one.
pub(super) fn selected(provider: &Arc<VendorBatchProvider>) -> Selected {
    let info = provider.info();
    let note = format!("sending batch jobs to {}, model {}", info.name, info.model);
    Selected::new(Providers::single(Arc::clone(provider) as _), note)
}

/// Sends the rows, waits for their jobs, and runs each row with its answer.
pub(super) fn run(
    provider: &Arc<VendorBatchProvider>,
    ready: ReadyBatch<'_>,
    mode: Mode,
    invocation: Invocation<'_>,
) -> Result<Exit, CliError> {
    let Invocation { args, settings, console } = invocation;
    let ReadyBatch { batch, output, source, about } = ready;
    let started = Instant::now();
    check_module("--via", &batch.module)?;
    let mut via = open(provider, args)?;
    via.describe(&describe_jobs(args, batch, settings)?, files::command())?;
    let ended = runtime::block_on(async {
        let mut signals = Signals::new()?;
        let finished = Finished::default();
        let finished = output.finished().unwrap_or(&finished);
        let early = tokio::select! {
            biased;
            () = signals.next() => Some(Exit::Interrupted),
            done = answers(&mut via, batch, source, finished, mode, invocation) => done?,
        };
        if let Some(exit) = early {
            return Ok(BatchEnd::Later(exit));
        }
        drop(signals);
        // The rows are read again: each is now run with its stored answer.
        let rows = source.open(&batch.module.contract).map_err(|error| unreadable(&error))?;
        let mut summary = output.run(batch, rows, args, console).await?;
        // The batch took as long as its jobs, not as long as reading their answers.
        summary.elapsed = started.elapsed();
        Ok::<_, CliError>(BatchEnd::Done(Box::new(summary)))
    })??;
    match ended {
        BatchEnd::Later(exit) => {
            note_later(args, console);
            Ok(exit)
        }
        BatchEnd::Done(summary) => {
            let is_done = summary.stopped.is_none();
            let exit = close(*summary, about, args, console);
            if is_done {
                delete_files(&via, console)?;
                via.remove();
            }
            exit
        }
    }
}

/// How far a batch came.
enum BatchEnd {
    /// Its jobs run on, and another command continues.
    Later(Exit),
    /// Its rows ran with the answers of their jobs.
    Done(Box<Summary>),
}

/// Deletes the inputs and results at the vendor: they are in the output, and may be personal data.
fn delete_files(via: &VendorBatch, console: &Console) -> Result<(), CliError> {
    if let Err(error) = runtime::block_on(via.delete_files())? {
        console.note(&format!("files of the jobs remain at the vendor: {error}"));
    }
    Ok(())
}

/// Sends the rows and waits for the answers of their jobs. Returns the exit code if the batch continues later, none once the answers
/// are stored.
async fn answers(
    via: &mut VendorBatch,
    batch: &Batch,
    source: &Source,
    finished: &Finished,
    mode: Mode,
    invocation: Invocation<'_>,
) -> Result<Option<Exit>, CliError> {
    let Invocation { args, console, .. } = invocation;
    let waits = !args.via.no_wait || mode == Mode::Fetch;
    let mut sends = mode == Mode::Complete;
    loop {
        if sends {
            let open = || source.open(&batch.module.contract);
            via.send(batch, open, finished, waits, |job| console.note(&sent(job))).await?;
        }
        if !waits {
            note_waiting(via.jobs(), console);
            return Ok(Some(Exit::Ok));
        }
        if wait(via, console).await? {
            break;
        }
        // The vendor has refused a job, whose rows are sent again once its queue has room.
        sends = true;
    }
    let strange = via.fetch().await?;
    if strange > 0 {
        console.note(&format!("{strange} results of the jobs belong to no row, and are ignored"));
    }
    Ok(None)
}

fn note_waiting(jobs: &Jobs, console: &Console) {
    let waiting = jobs.list().iter().filter(|job| job.is_waiting).count();
    if waiting > 0 {
        console.note(&format!(
            "{waiting} jobs wait until the vendor's queue has room; the same command sends them"
        ));
    }
}

/// Waits until the jobs have ended, and shows each change. Returns false if one is still to be sent.
pub(super) async fn wait(via: &mut VendorBatch, console: &Console) -> Result<bool, CliError> {
    let mut last = String::new();
    let ended = via.wait(|jobs| {
        let now = states(jobs);
        if now != last {
            console.note(&now);
            last = now;
        }
    });
    Ok(ended.await?)
}

pub(super) fn open(provider: &Arc<VendorBatchProvider>, args: &BatchArgs) -> Result<VendorBatch, CliError> {
    let via = VendorBatch::open(provider, &args.output, args.via.poll)?;
    Ok(via.max_requests(args.via.job_rows.and_then(|rows| usize::try_from(rows).ok())))
}

/// Describes the batch, and which of its rows are sent.
fn describe_jobs(args: &BatchArgs, batch: &Batch, settings: &Settings) -> Result<Description, CliError> {
    let description = describe(args, batch, settings)?;
    Ok(if batch.dedupes { description.with("dedupe", "true") } else { description })
}

fn note_later(args: &BatchArgs, console: &Console) {
    let out = args.output.display();
    console.note(&format!(
        "the jobs continue at the vendor; `cog batch status {out}` shows them, and the same command or `cog batch fetch {out}` continues"
    ));
}

fn sent(job: &Job) -> String {
    let Job { requests, first, last, .. } = job;
    format!("sent {requests} rows ({first} to {last}) as {}", job.id.as_deref().unwrap_or("a job"))
}

fn states(jobs: &Jobs) -> String {
    let all = jobs.list().len();
    let ended = jobs.list().iter().filter(|job| job.is_ended).count();
    let waiting = match jobs.list().iter().filter(|job| job.is_waiting).count() {
        0 => String::new(),
        jobs => format!(", {jobs} wait for room in the vendor's queue"),
    };
    let answered: u64 = jobs.list().iter().filter_map(|job| job.succeeded).sum();
    let requests: u64 = jobs.list().iter().map(|job| job.requests).sum();
    format!("{ended} of {all} jobs have ended{waiting}; {answered} of {requests} rows are answered")
}
