//! The connection to NATS that the settings describe, `cog worker`, which runs the jobs of a queue, and `cog jobs`, which shows
//! those that could not be run.

use std::{sync::Arc, time::Duration};

use cog_host::{
    Hosted, Use,
    settings::{Environment, Flags, Settings},
};
use cog_nats::{
    FailedJob, Names, NatsError, NatsOptions, NatsSessions, Queue, QueueSettings, Stop, Worker, WorkerReport,
    connect,
};
use cog_run::sessions::{SessionSettings, Sessions};
use cog_spec::{Code, ErrorBody};

use super::{
    runtime::{block_on, load_run_settings},
    serve::{events, served_runtime},
};
use crate::{
    args::{FailedArgs, FailedListArgs, QueueArgs, QueueCommand, WorkerArgs},
    error::{CliError, Exit},
    output::{Console, Table},
    system::Signals,
};

/// Returns the connection to the servers of a flag, otherwise of the settings.
///
/// # Errors
/// A usage error where neither names a server.
pub(super) fn options(flag: Option<&str>, settings: &Settings) -> Result<NatsOptions, CliError> {
    let nats = &settings.nats;
    let Some(url) = flag.or(nats.url.value.as_deref()) else {
        return Err(CliError::Usage {
            message: "no NATS server is set".to_owned(),
            suggestion: Some("Use --nats URL, or set COG_NATS_URL.".to_owned()),
        });
    };
    let mut options = NatsOptions::default();
    url.clone_into(&mut options.url);
    options.credentials.clone_from(&nats.credentials.value);
    options.user.clone_from(&nats.user.value);
    options.password.clone_from(&nats.password.value);
    options.ca.clone_from(&nats.ca.value);
    Ok(options)
}

/// Returns the settings of the streams.
pub(super) fn queue(settings: &Settings) -> QueueSettings {
    let mut queue = QueueSettings::default();
    queue.replicas = settings.nats.replicas.value;
    queue.ack_wait = settings.nats.ack_wait.value;
    queue.module_wait = settings.nats.module_wait.value;
    queue.max_age = settings.nats.max_age.value;
    queue
}

/// The minimum time for which the chunks of a session are stored, longer than a run may take.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);

/// Opens the sessions that several servers share.
///
/// # Errors
/// See [`NatsError`].
pub(super) async fn shared_sessions(
    url: &str,
    stored: SessionSettings,
    settings: &Settings,
) -> Result<Sessions, CliError> {
    let options = options(Some(url), settings)?;
    let names = Names::new(&settings.nats.name.value).map_err(|problem| error(&problem))?;
    let age = (stored.ttl * 2).max(MIN_AGE);
    let client = connect(&options).await.map_err(|problem| error(&problem))?;
    let log = NatsSessions::open(client, names, settings.nats.replicas.value, age).await;
    let log = log.map_err(|problem| error(&problem))?;
    Sessions::open_shared(stored, Arc::new(log))
        .map_err(|problem| ErrorBody::new(Code::InternalError, problem.to_string()).into())
}

/// Returns the error of a command.
pub(super) fn error(error: &NatsError) -> CliError {
    match error {
        NatsError::Url { .. } | NatsError::Name { .. } => {
            CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion().to_owned()) }
        }
        _ => ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion()).into(),
    }
}

/// The time between two attempts to reach a server at the start.
const CONNECT_AGAIN: Duration = Duration::from_secs(2);

/// Runs jobs until Ctrl-C or SIGTERM. A second one cancels the jobs that run.
pub(crate) fn worker(
    args: &WorkerArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = load_run_settings(args.model.flags(), environment, console)?;
    let options = options(args.nats.as_deref(), &settings)?;
    let names = Names::new(&settings.nats.name.value).map_err(|problem| error(&problem))?;
    let Hosted { runtime, note, .. } = served_runtime(Use::Worker, &args.offered, &settings, console)?;
    console.note(&note);
    events(0)?.block_on(async {
        let mut signals = Signals::new()?;
        let opened = tokio::select! {
            opened = open(&options, names, &settings, console) => opened.map_err(|problem| error(&problem))?,
            () = signals.next() => return Ok(Exit::Interrupted),
        };
        let stop = Stop::default();
        let deliveries = settings.nats.max_deliveries.value;
        let worker = Worker::open(opened, runtime, args.concurrency as usize, deliveries, &stop).await;
        let worker = worker.map_err(|problem| error(&problem))?;
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
            Ok(client) => Queue::open(client, names.clone(), queue(settings)).await,
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

/// Lists, retries or removes the jobs that could not be run.
pub(crate) fn jobs(args: &QueueArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let options = options(args.nats.as_deref(), &settings)?;
    block_on(async {
        let queue = open_queue(&options, &settings).await.map_err(|problem| error(&problem))?;
        match &args.command {
            QueueCommand::List(list) => {
                let jobs = queue.failed_jobs(list.limit as usize).await.map_err(|problem| error(&problem))?;
                print_failed(&jobs, list, console)?;
                Ok(Exit::Ok)
            }
            QueueCommand::Retry(chosen) => {
                let jobs = failed_jobs(&queue, chosen).await?;
                retry(&queue, &jobs, console).await
            }
            QueueCommand::Purge(chosen) => {
                let jobs = failed_jobs(&queue, chosen).await?;
                for job in &jobs {
                    queue.remove_failed(job).await.map_err(|problem| error(&problem))?;
                }
                console.note(&format!("removed {} failed jobs", jobs.len()));
                Ok(Exit::Ok)
            }
        }
    })?
}

/// Connects once, and opens the queue.
///
/// # Errors
/// The server cannot be reached, or JetStream fails.
pub(super) async fn open_queue(options: &NatsOptions, settings: &Settings) -> Result<Queue, NatsError> {
    let names = Names::new(&settings.nats.name.value)?;
    Queue::open(connect(options).await?, names, queue(settings)).await
}

async fn retry(queue: &Queue, jobs: &[FailedJob], console: &Console) -> Result<Exit, CliError> {
    let mut exit = Exit::Ok;
    for job in jobs {
        match queue.retry(job).await.map_err(|problem| error(&problem))? {
            Some(id) => console.print(&format!("{id}\n"))?,
            None => {
                console.note(&format!("{}: too large to be stored, so it cannot be retried", job.number));
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

/// Returns the failed jobs that were chosen.
async fn failed_jobs(queue: &Queue, chosen: &FailedArgs) -> Result<Vec<FailedJob>, CliError> {
    let mut jobs = queue.failed_jobs(usize::MAX).await.map_err(|problem| error(&problem))?;
    if let Some(missing) = chosen.numbers.iter().find(|number| !jobs.iter().any(|job| job.number == **number))
    {
        return Err(CliError::Usage {
            message: format!("there is no failed job {missing}"),
            suggestion: Some("See `cog jobs list`.".to_owned()),
        });
    }
    jobs.retain(|job| chosen.all || chosen.numbers.contains(&job.number));
    Ok(jobs)
}

fn print_failed(jobs: &[FailedJob], args: &FailedListArgs, console: &Console) -> Result<(), CliError> {
    if args.format.is_json() {
        return Ok(console.print_json(jobs)?);
    }
    if jobs.is_empty() {
        console.note("there are no failed jobs");
        return Ok(());
    }
    let mut table = Table::new(["number", "id", "module", "code", "deliveries", "time"]);
    for job in jobs {
        let deliveries = job.deliveries.map(|count| count.to_string());
        table.row([
            job.number.to_string(),
            or_dash(job.id.clone()),
            or_dash(job.module.clone()),
            or_dash(job.code.clone()),
            or_dash(deliveries),
            job.time.clone(),
        ]);
    }
    Ok(console.print(&table.render(console.out().palette, console.out_columns()))?)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
