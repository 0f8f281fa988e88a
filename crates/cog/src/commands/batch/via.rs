//! Batches over the batch interface of a vendor: `--via`, and the commands about its jobs.

use std::sync::Arc;

use clap::Parser as _;
use cog_batch::{
    Batch, Description, Finished, Job, Jobs, Rows, Source, Summary, VendorBatch, VendorBatchProvider,
};
use cog_host::{
    providers::{ProviderPosition, Selected, provider_settings},
    settings::{Environment, Settings},
};
use cog_provider::{HttpProvider, Provider as _, vendors::Vendor};
use cog_run::Providers;
use cog_spec::ErrorBody;

use super::{
    Invocation, Output, close,
    files::{self, check_module, describe},
    unreadable,
};
use crate::{
    args::{BatchArgs, BatchCommand, Cli, Command, JobsArgs, JobsCommand},
    commands::{
        emit,
        runtime::{self, load_run_settings},
    },
    error::{CliError, Exit},
    output::{Console, Table},
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
    pub(super) rows: Rows,
    pub(super) output: Output,
    pub(super) source: &'a Source,
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
    Selected { providers: Providers::single(Arc::clone(provider) as _), note }
}

/// Sends the rows, waits for their jobs, and runs each row with its answer.
pub(super) fn run(
    provider: &Arc<VendorBatchProvider>,
    ready: ReadyBatch<'_>,
    mode: Mode,
    invocation: Invocation<'_>,
) -> Result<Exit, CliError> {
    let Invocation { args, settings, console } = invocation;
    let ReadyBatch { batch, rows, output, source } = ready;
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
            done = answers(&mut via, batch, rows, finished, mode, invocation) => done?,
        };
        if let Some(exit) = early {
            return Ok(BatchEnd::Later(exit));
        }
        drop(signals);
        // The rows are read again: each is now run with its stored answer.
        let rows = source.open(&batch.module.contract).map_err(|error| unreadable(&error))?;
        Ok::<_, CliError>(BatchEnd::Done(Box::new(output.run(batch, rows, args, console).await?)))
    })??;
    match ended {
        BatchEnd::Later(exit) => {
            note_later(args, console);
            Ok(exit)
        }
        BatchEnd::Done(summary) => {
            let is_done = summary.stopped.is_none();
            let exit = close(*summary, args, console);
            if is_done {
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

/// Sends the rows and waits for the answers of their jobs. Returns the exit code if the batch continues later, none once the answers
/// are stored.
async fn answers(
    via: &mut VendorBatch,
    batch: &Batch,
    rows: Rows,
    finished: &Finished,
    mode: Mode,
    invocation: Invocation<'_>,
) -> Result<Option<Exit>, CliError> {
    let Invocation { args, console, .. } = invocation;
    if mode == Mode::Complete {
        via.send(batch, rows, finished, |job| console.note(&sent(job))).await?;
    }
    if args.via.no_wait && mode == Mode::Complete {
        return Ok(Some(Exit::Ok));
    }
    wait(via, console).await?;
    let strange = via.fetch().await?;
    if strange > 0 {
        console.note(&format!("{strange} results of the jobs belong to no row, and are ignored"));
    }
    Ok(None)
}

/// Waits until the jobs have ended, and shows each change.
async fn wait(via: &mut VendorBatch, console: &Console) -> Result<(), CliError> {
    let mut last = String::new();
    via.wait(|jobs| {
        let now = states(jobs);
        if now != last {
            console.note(&now);
            last = now;
        }
    })
    .await?;
    Ok(())
}

/// Runs a command about the jobs of a batch. It uses the settings of the command that started it.
pub(super) fn jobs(
    command: &JobsCommand,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let (JobsCommand::Status(args)
    | JobsCommand::Wait(args)
    | JobsCommand::Fetch(args)
    | JobsCommand::Cancel(args)) = command;
    let began = began(args)?;
    if matches!(command, JobsCommand::Fetch(_)) {
        return super::run(&began, Mode::Fetch, environment, console);
    }
    let settings = load_run_settings(began.model.flags(), environment, console)?;
    let provider = provider(&began, &settings)?.ok_or_else(|| CliError::Usage {
        message: "the batch was started without --via".to_owned(),
        suggestion: Some("Run the command that started it again: it continues.".to_owned()),
    })?;
    let mut via = open(&provider, &began)?;
    runtime::block_on(async {
        match command {
            JobsCommand::Wait(_) => wait(&mut via, console).await?,
            JobsCommand::Cancel(_) => via.cancel().await?,
            JobsCommand::Status(_) | JobsCommand::Fetch(_) => via.refresh().await?,
        }
        Ok::<_, CliError>(())
    })??;
    console.print(&table(via.jobs(), console))?;
    Ok(Exit::Ok)
}

/// Returns the arguments of the command that started the batch of an output.
fn began(args: &JobsArgs) -> Result<Box<BatchArgs>, CliError> {
    let mut command = Jobs::command(&args.output)?;
    if command.first() != files::command().first() {
        return Err(CliError::Usage {
            message: "the batch was started in another directory".to_owned(),
            suggestion: command.first().map(|directory| format!("Run the command in {directory}.")),
        });
    }
    command.drain(..1);
    let run = match Cli::try_parse_from(command).ok().map(|cli| cli.command) {
        Some(Command::Batch(BatchCommand::Run(run))) => Some(run),
        _ => None,
    };
    run.ok_or_else(|| CliError::usage("the command that started the batch is not valid in this version"))
}

fn open(provider: &Arc<VendorBatchProvider>, args: &BatchArgs) -> Result<VendorBatch, CliError> {
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
    let answered: u64 = jobs.list().iter().filter_map(|job| job.succeeded).sum();
    let requests: u64 = jobs.list().iter().map(|job| job.requests).sum();
    format!("{ended} of {all} jobs have ended; {answered} of {requests} rows are answered")
}

fn table(jobs: &Jobs, console: &Console) -> String {
    let mut table = Table::new(["job", "state", "rows", "answered", "failed"]);
    for job in jobs.list() {
        let id = job.id.clone().unwrap_or_else(|| job.name.clone());
        let requests = job.requests.to_string();
        table.row([id, job.state.clone(), requests, known(job.succeeded), known(job.failed)]);
    }
    table.render(console.out().palette, console.out_columns())
}

fn known(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| count.to_string())
}
