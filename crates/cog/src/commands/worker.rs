//! `cog worker`: runs the jobs of a NATS queue.

use std::time::Duration;

use cog_host::{
    Hosted, Use,
    settings::{Environment, Settings},
};
use cog_nats::{Names, NatsError, NatsOptions, Queue, Stop, Worker, WorkerReport, connect};

use super::{nats, serve::events, served, settings::load_run_settings, signals::Signals};
use crate::{args::WorkerArgs, error::CliError, exit::Exit, output::Console};

/// The time between two attempts to reach a server at the start.
const CONNECT_AGAIN: Duration = Duration::from_secs(2);

/// Runs jobs until Ctrl-C or SIGTERM. A second one cancels the jobs that run.
pub(crate) fn worker(
    args: &WorkerArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = load_run_settings(args.model.flags(), environment, console)?;
    let options = nats::options(args.nats.as_deref(), &settings)?;
    let names = Names::new(&settings.nats.name.value).map_err(|error| nats::error(&error))?;
    let Hosted { runtime, note, .. } = served::runtime(Use::Worker, &args.paths, &settings, console)?;
    console.note(&note);
    events(0)?.block_on(async {
        let mut signals = Signals::new()?;
        let opened = tokio::select! {
            opened = open(&options, names, &settings, console) => opened.map_err(|error| nats::error(&error))?,
            () = signals.next() => return Ok(Exit::Interrupted),
        };
        let stop = Stop::default();
        let deliveries = settings.nats.max_deliveries.value;
        let worker = Worker::open(opened, runtime, args.concurrency as usize, deliveries, &stop).await;
        let worker = worker.map_err(|error| nats::error(&error))?;
        console.note(&format!("waiting for jobs, at most {} at once (Ctrl-C ends it)", worker.concurrency()));
        run(worker, &stop, signals, args.shutdown_timeout, console).await
    })
}

/// Connects, and opens the queue. A server that cannot be reached yet is waited for.
async fn open(
    options: &NatsOptions,
    names: Names,
    settings: &Settings,
    console: &Console,
) -> Result<Queue, NatsError> {
    loop {
        let opened = match connect(options).await {
            Ok(client) => Queue::open(client, names.clone(), nats::queue(settings)).await,
            Err(error) => Err(error),
        };
        match opened {
            Err(error) if error.is_temporary() => {
                let help = error.suggestion();
                console.note(&format!("{error}; trying again every {} s. {help}", CONNECT_AGAIN.as_secs()));
                tokio::time::sleep(CONNECT_AGAIN).await;
            }
            opened => return opened,
        }
    }
}

/// Runs the worker until a signal, and then until its jobs have finished, the time is over or a second signal arrives.
async fn run(
    worker: Worker,
    stop: &Stop,
    mut signals: Signals,
    limit: Duration,
    console: &Console,
) -> Result<Exit, CliError> {
    let mut working = std::pin::pin!(worker.run(stop));
    tokio::select! {
        report = &mut working => return Ok(end(&report, Exit::Ok, console)),
        () = signals.next() => stop.drain(),
    }
    console.note("shutting down; waiting for running jobs (Ctrl-C again cancels them)");
    let exit = tokio::select! {
        report = &mut working => return Ok(end(&report, Exit::Ok, console)),
        () = tokio::time::sleep(limit) => Exit::Ok,
        () = signals.next() => Exit::Interrupted,
    };
    stop.abort();
    Ok(end(&working.await, exit, console))
}

fn end(report: &WorkerReport, exit: Exit, console: &Console) -> Exit {
    let WorkerReport { succeeded, failed, dead_letters, repeated, .. } = report;
    let jobs = if *succeeded == 1 { "job" } else { "jobs" };
    console.note(&format!(
        "{succeeded} {jobs} succeeded, {failed} failed, {dead_letters} dead-lettered, {repeated} had a result already"
    ));
    exit
}
