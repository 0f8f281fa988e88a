//! The commands about a batch that was started before: its state, and its jobs at a vendor or in NATS.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use cog_batch::{Job, Jobs, Journal, JournalPaths, VendorBatch};
use cog_host::settings::Environment;
#[cfg(feature = "nats")]
use cog_host::settings::Settings;
use serde::Serialize;

use super::{
    files,
    via::{self, Mode},
};
use crate::{
    args::{BatchArgs, BatchCommand, Cli, Command, JobsArgs, JobsCommand, StatusArgs},
    commands::runtime::{self, load_run_settings},
    error::{CliError, Exit},
    output::{Console, Table},
};

/// How far a batch is.
#[derive(Debug, Serialize)]
struct BatchStatus {
    output: PathBuf,
    /// Where the rows run: `live`, `nats` or a vendor.
    runs: String,
    state: State,
    /// The rows with a result; none if the batch is complete and its journal is gone, and for rows of jobs at a vendor until their
    /// answers are read.
    rows: Option<RowStatus>,
    /// The jobs in the queue of NATS.
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<usize>,
    /// The jobs at a vendor.
    jobs: Vec<Job>,
}

#[derive(Debug, Serialize)]
struct RowStatus {
    done: u64,
    failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The output is complete.
    Complete,
    /// A program runs the batch.
    Running,
    /// No program runs it, but its jobs at the vendor are not ended or not read.
    Jobs,
    /// No program runs it: the same command continues.
    Stopped,
}

/// Runs a command about a batch. It uses the settings of the command that started it.
pub(super) fn command(
    command: &JobsCommand,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match command {
        JobsCommand::Status(args) => status(args, environment, console),
        JobsCommand::Wait(args) => {
            let mut jobs = vendor_jobs(args, environment, console)?;
            if !runtime::block_on(via::wait(&mut jobs, console))?? {
                console
                    .note("the vendor has refused a job; the command that started the batch sends it again");
            }
            console.print(&table(jobs.jobs().list(), console))?;
            Ok(Exit::Ok)
        }
        JobsCommand::Fetch(args) => {
            let started = started(args)?;
            let started = in_its_directory(args, started)?;
            super::run(&started, Mode::Fetch, environment, console)
        }
        JobsCommand::Cancel(args) => cancel(args, environment, console),
    }
}

fn status(args: &StatusArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let output = &args.jobs.output;
    let journal = Journal::status(&JournalPaths::beside(output))?;
    let mut status = BatchStatus {
        output: output.clone(),
        runs: "live".to_owned(),
        state: State::Complete,
        rows: None,
        queued: None,
        jobs: Vec::new(),
    };
    if let Some(journal) = &journal {
        status.state = match (journal.is_in_use, journal.is_complete) {
            (true, _) => State::Running,
            (false, true) => State::Complete,
            (false, false) => State::Stopped,
        };
        status.rows = Some(RowStatus { done: journal.rows, failed: journal.failed });
    }
    match Jobs::find(output)? {
        None if journal.is_none() && !output.is_file() => return Err(no_batch(output)),
        None => {}
        Some(jobs) => {
            status.runs = jobs.vendor().to_owned();
            if jobs.vendor() == "nats" {
                status.queued = queued(&args.jobs, &jobs, environment, console)?;
            } else {
                let mut vendor = vendor_jobs(&args.jobs, environment, console)?;
                runtime::block_on(vendor.refresh())??;
                status.jobs = vendor.jobs().list().to_vec();
                if status.state != State::Running {
                    status.state = State::Jobs;
                }
            }
        }
    }
    match args.format.is_json() {
        true => console.print_json(&status)?,
        false => print(&status, console)?,
    }
    Ok(Exit::Ok)
}

fn print(status: &BatchStatus, console: &Console) -> Result<(), CliError> {
    if !status.jobs.is_empty() {
        return Ok(console.print(&table(&status.jobs, console))?);
    }
    let state = match status.state {
        State::Complete => "complete",
        State::Running => "running",
        State::Jobs => "its jobs run at the vendor",
        State::Stopped => "stopped; the same command continues",
    };
    let mut lines = format!("state   {state}\n");
    if let Some(rows) = &status.rows {
        lines += &format!("rows    {} done, {} of them failed\n", rows.done, rows.failed);
    }
    if let Some(queued) = status.queued {
        lines += &format!("queue   {queued} jobs\n");
    }
    Ok(console.print(&lines)?)
}

fn table(jobs: &[Job], console: &Console) -> String {
    let mut table = Table::new(["job", "state", "rows", "answered", "failed"]);
    for job in jobs {
        let id = job.id.clone().unwrap_or_else(|| job.name.clone());
        let requests = job.requests.to_string();
        table.row([id, job.state.clone(), requests, known(job.succeeded), known(job.failed)]);
    }
    table.render(console.out().palette, console.out_columns())
}

fn known(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| count.to_string())
}

fn no_batch(output: &Path) -> CliError {
    CliError::Usage {
        message: format!("no batch has the output {}", output.display()),
        suggestion: Some("Name the file of -o in the command that started the batch.".to_owned()),
    }
}

fn cancel(args: &JobsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    if let Some(jobs) = Jobs::find(&args.output)?.filter(|jobs| jobs.vendor() == "nats") {
        return cancel_in_nats(args, &jobs, environment, console);
    }
    let mut jobs = vendor_jobs(args, environment, console)?;
    runtime::block_on(jobs.cancel())??;
    console.print(&table(jobs.jobs().list(), console))?;
    Ok(Exit::Ok)
}

#[cfg(feature = "nats")]
fn cancel_in_nats(
    args: &JobsArgs,
    jobs: &Jobs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let (url, settings) = nats_server(args, environment, console)?;
    let removed = super::nats::cancel(&url, jobs.name(), &settings)?;
    console.note(&format!("removed {removed} jobs from the queue; workers finish those that they run"));
    Ok(Exit::Ok)
}

#[cfg(not(feature = "nats"))]
fn cancel_in_nats(_: &JobsArgs, _: &Jobs, _: Environment, _: &Console) -> Result<Exit, CliError> {
    Err(without_nats())
}

#[cfg(feature = "nats")]
fn queued(
    args: &JobsArgs,
    jobs: &Jobs,
    environment: Environment,
    console: &Console,
) -> Result<Option<usize>, CliError> {
    let (url, settings) = nats_server(args, environment, console)?;
    super::nats::count(&url, jobs.name(), &settings).map(Some)
}

#[cfg(not(feature = "nats"))]
fn queued(_: &JobsArgs, _: &Jobs, _: Environment, _: &Console) -> Result<Option<usize>, CliError> {
    Err(without_nats())
}

#[cfg(not(feature = "nats"))]
fn without_nats() -> CliError {
    CliError::Usage {
        message: "the jobs of the batch are in NATS, and this program has no `--nats`".to_owned(),
        suggestion: Some("Install a program with the feature `nats`.".to_owned()),
    }
}

/// Returns the URL of the servers, and the settings of the connection.
#[cfg(feature = "nats")]
fn nats_server(
    args: &JobsArgs,
    environment: Environment,
    console: &Console,
) -> Result<(String, Settings), CliError> {
    let started = started(args)?;
    let settings = load_run_settings(started.model.flags(), environment, console)?;
    match started.nats() {
        Some(url) => Ok((url.to_owned(), settings)),
        None => Err(CliError::usage("the command that started the batch has no --nats")),
    }
}

/// Opens the jobs of a batch at a vendor. Their file says which they are, so that any directory and any machine will do.
fn vendor_jobs(
    args: &JobsArgs,
    environment: Environment,
    console: &Console,
) -> Result<VendorBatch, CliError> {
    let mut started = started(args)?;
    started.output.clone_from(&args.output);
    let settings = load_run_settings(started.model.flags(), environment, console)?;
    let provider = via::provider(&started, &settings)?.ok_or_else(|| CliError::Usage {
        message: "the batch was started without --via".to_owned(),
        suggestion: Some("Run the command that started it again: it continues.".to_owned()),
    })?;
    via::open(&provider, &started)
}

/// Returns the arguments of the command that started the batch of an output.
fn started(args: &JobsArgs) -> Result<Box<BatchArgs>, CliError> {
    let command = Jobs::command(&args.output)?;
    let run = match Cli::try_parse_from(command.get(1..).unwrap_or_default()).ok().map(|cli| cli.command) {
        Some(Command::Batch(BatchCommand::Run(run))) => Some(run),
        _ => None,
    };
    run.ok_or_else(|| CliError::usage("the command that started the batch is not valid in this version"))
}

/// Enters the directory in which the batch was started, or the one that has its files now: the paths of the input and of the
/// module may be relative to it.
fn in_its_directory(args: &JobsArgs, started: Box<BatchArgs>) -> Result<Box<BatchArgs>, CliError> {
    let command = Jobs::command(&args.output)?;
    let has_absolute_paths = started.output.is_absolute() && started.input.is_absolute();
    if has_absolute_paths || command.first() == files::command().first() {
        return Ok(started);
    }
    let found = std::fs::canonicalize(&args.output).or_else(|_| {
        let jobs = std::fs::canonicalize(Jobs::path_beside(&args.output))?;
        Ok::<_, std::io::Error>(jobs.with_extension(""))
    });
    let directory = found.ok().and_then(|found| without_end(&found, &started.output));
    let entered = directory.filter(|directory| std::env::set_current_dir(directory).is_ok());
    match entered.is_some() && started.input.is_file() {
        true => Ok(started),
        false => Err(CliError::Usage {
            message: format!("the input {} is not next to the output as it was", started.input.display()),
            suggestion: command.first().map(|directory| {
                format!("Run the command in {directory}, or where the input, the module and the output lie as they did there.")
            }),
        }),
    }
}

/// Returns the directory from which a relative path leads to a file.
fn without_end(file: &Path, end: &Path) -> Option<PathBuf> {
    let mut directory = file.to_owned();
    let parts = end.components().filter(|part| !matches!(part, std::path::Component::CurDir));
    for part in parts.collect::<Vec<_>>().into_iter().rev() {
        if directory.file_name() != Some(part.as_os_str()) {
            return None;
        }
        directory.pop();
    }
    Some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_a_batch_is_found_by_its_output() {
        for (file, output, directory) in [
            ("/b/out.jsonl", "out.jsonl", Some("/b")),
            ("/b/c/out.jsonl", "./c/out.jsonl", Some("/b")),
            ("/b/c/out.jsonl", "d/out.jsonl", None),
            ("/b/out.jsonl", "../out.jsonl", None),
            ("/b/out.jsonl", "/a/out.jsonl", None),
        ] {
            assert_eq!(
                without_end(Path::new(file), Path::new(output)).as_deref(),
                directory.map(Path::new),
                "{output}"
            );
        }
    }
}
