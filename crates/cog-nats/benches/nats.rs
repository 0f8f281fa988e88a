//! The rate of workers of a NATS queue, next to the same runs without one.
//!
//! `cargo bench -p cog-nats --bench nats` prints jobs per second of one worker and of two, each on one thread, and
//! their ratio to runs on one thread of this process. The provider answers at once, so what counts is the cost of a job.
//! It needs `nats-server`: beside the interpreter that `COG_TEST_PYTHON` names, or in `PATH`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark starts its own server, prints its table and stops when it cannot run"
)]

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use cog_json::Value;
use cog_module::Module;
use cog_nats::{Job, JobId, Names, NatsOptions, Queue, QueueSettings, Stop, Worker, connect};
use cog_run::{RunInput, RunOptions, Runtime};
use futures_util::{StreamExt as _, stream};

/// The jobs of a measurement.
const JOBS: usize = 5_000;
/// The jobs that run at the same time in a worker, and in this process.
const CONCURRENCY: usize = 64;
/// The measurements; the best counts.
const ROUNDS: usize = 3;
const MODULE: &str = "task-prioritizer";

fn main() {
    let Some(server) = Server::start() else {
        println!("skipped: no nats-server; set COG_TEST_PYTHON, or put nats-server into PATH");
        return;
    };
    let runtime = Runtime::offline();
    let module = runtime.load(MODULE).unwrap();
    let direct = best(|| direct(&runtime, &module));
    println!("{direct:8.0} runs/s   in one process");
    let mut round = 0;
    for workers in [1, 2] {
        let rate = best(|| {
            round += 1;
            queued(&server, &format!("bench-{round}"), &module, workers)
        });
        println!(
            "{rate:8.0} jobs/s   {workers} worker(s), {:.2} times the rate in one process",
            rate / direct
        );
    }
}

/// Returns the highest rate per second.
fn best(mut measure: impl FnMut() -> Duration) -> f64 {
    let least = (0..ROUNDS).map(|_| measure()).min().unwrap();
    u32::try_from(JOBS).map(f64::from).unwrap() / least.as_secs_f64()
}

fn input(module: &Module) -> Value {
    module.contract.sample_input(1).unwrap()
}

fn events() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs the module in this process.
fn direct(runtime: &Runtime, module: &Arc<Module>) -> Duration {
    let input = input(module);
    let run = async |_| {
        runtime.run(module, RunInput::Json(input.clone()), RunOptions::default()).await;
    };
    let began = Instant::now();
    events().block_on(stream::iter(0..JOBS).map(run).buffer_unordered(CONCURRENCY).collect::<()>());
    began.elapsed()
}

/// Adds the jobs, and runs them with so many workers.
fn queued(server: &Server, name: &str, module: &Module, workers: usize) -> Duration {
    let client = events();
    let queue = client.block_on(async {
        let queue = open(server, name).await;
        let job = Job::new(MODULE, input(module));
        let add = async |number: usize| {
            let id = JobId::new(format!("{name}.{number}")).unwrap();
            queue.add(&id, "bench", &job).await.unwrap();
        };
        stream::iter(0..JOBS).map(add).buffer_unordered(CONCURRENCY).collect::<()>().await;
        queue
    });
    let began = Instant::now();
    let stop = Stop::default();
    let threads: Vec<_> = (0..workers).map(|_| work(server, name, &stop)).collect();
    client.block_on(async {
        while queue.waiting().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let elapsed = began.elapsed();
    stop.drain();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    elapsed
}

/// Starts a worker in a thread of its own.
fn work(server: &Server, name: &str, stop: &Stop) -> thread::JoinHandle<()> {
    let (url, name, stop) = (server.url(), name.to_owned(), stop.clone());
    thread::spawn(move || {
        events().block_on(async {
            let queue = open_at(url, &name).await;
            let runtime = Runtime::offline();
            let worker = Worker::open(queue, runtime, CONCURRENCY, 10, &stop).await.unwrap();
            worker.run(&stop).await;
        });
    })
}

async fn open(server: &Server, name: &str) -> Queue {
    open_at(server.url(), name).await
}

async fn open_at(url: String, name: &str) -> Queue {
    let mut options = NatsOptions::default();
    options.url = url;
    let client = connect(&options).await.unwrap();
    Queue::open(client, Names::new(name).unwrap(), QueueSettings::default()).await.unwrap()
}

/// A nats-server with its data in a temporary directory.
struct Server {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Server {
    /// None without a program.
    fn start() -> Option<Self> {
        let beside = std::env::var("COG_TEST_PYTHON")
            .ok()
            .map(|path| PathBuf::from(path).with_file_name("nats-server"));
        let program = beside.unwrap_or_else(|| PathBuf::from("nats-server"));
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(directory.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        Some(Self { child, port, _directory: directory })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
