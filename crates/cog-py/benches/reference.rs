//! The Rust side of `bench.py`: runs a module with the settings of the operator, as the Python package does.
//!
//! Reads lines from standard input, such as `execute 200`, and prints the seconds that so many calls took, sequentially
//! for `execute` and `stream`, all at once for `gather`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its times and stops when it cannot run"
)]

use std::{io::stdin, sync::Arc, time::Instant};

use cog_host::{
    Host, Use,
    settings::{Environment, Flags, Settings},
};
use cog_module::Module;
use cog_run::{RunInput, RunOptions, Runtime};
use futures_util::{StreamExt as _, future::join_all};

fn main() {
    let events = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let flags =
        Flags { provider: Some("openai".to_owned()), model: Some("mock-1".to_owned()), ..Flags::default() };
    let settings = Settings::read(flags, Environment::from_process()).unwrap();
    let runtime = Host::new(&settings).runtime(Use::Python).unwrap().runtime;
    let module = runtime.load("code-reviewer").unwrap();
    for line in stdin().lines() {
        let line = line.unwrap();
        let (name, count) = line.split_once(' ').unwrap();
        let count = count.parse().unwrap();
        let start = Instant::now();
        match name {
            "gather" => events.block_on(gather(&runtime, &module, count)),
            "stream" => (0..count).for_each(|_| events.block_on(stream(&runtime, &module))),
            _ => (0..count).for_each(|_| events.block_on(execute(runtime.clone(), Arc::clone(&module)))),
        }
        println!("{}", start.elapsed().as_secs_f64());
    }
}

fn input() -> RunInput {
    RunInput::text("fn main() {}")
}

async fn execute(runtime: Runtime, module: Arc<Module>) {
    let envelope = runtime.run(&module, input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
}

async fn stream(runtime: &Runtime, module: &Arc<Module>) {
    let chunks = runtime.stream(module, input(), RunOptions::default());
    let Ok(chunks) = chunks else { unreachable!("the run is refused") };
    assert!(chunks.count().await > 2);
}

async fn gather(runtime: &Runtime, module: &Arc<Module>, count: u32) {
    let runs = (0..count).map(|_| tokio::task::spawn(execute(runtime.clone(), Arc::clone(module))));
    assert!(join_all(runs).await.into_iter().all(|run| run.is_ok()));
}
