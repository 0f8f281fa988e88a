//! Modules whose files cannot be loaded.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cog_run::{Code, ErrorBody, Module, ModuleRef, Runtime};
use tokio::sync::Mutex;

use crate::offload;

/// A module whose files cannot be loaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrokenModule {
    /// Its name.
    pub name: String,
    /// Why its files cannot be loaded.
    pub error: ErrorBody,
    /// The earlier version that is still in use, if it was loaded before.
    pub served: Option<Arc<Module>>,
}

/// Loads every module that the runtime offers, and returns the broken ones, sorted by name. Reads files.
pub fn broken_modules(runtime: &Runtime) -> Vec<BrokenModule> {
    let mut names: Vec<String> = runtime.finder().offered().into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.into_iter().filter_map(|name| check(runtime, name)).collect()
}

fn check(runtime: &Runtime, name: String) -> Option<BrokenModule> {
    match runtime.load(ModuleRef::Name(&name)) {
        Ok(served) => {
            let error = runtime.load_failure(ModuleRef::Name(&name))?;
            Some(BrokenModule { name, error, served: Some(served) })
        }
        // It was removed in the meantime.
        Err(error) if error.code == Code::ModuleNotFound.into() => None,
        Err(error) => Some(BrokenModule { name, error, served: None }),
    }
}

/// The time after which the modules are checked again.
const MAX_AGE: Duration = Duration::from_secs(2);

/// The broken modules at the last check, for probes: these need no token, and must not read files each time.
#[derive(Default)]
pub(crate) struct ModuleChecks(Mutex<Option<(Instant, Arc<[String]>)>>);

impl ModuleChecks {
    /// Returns the names of the broken modules.
    pub(crate) async fn broken(&self, runtime: &Runtime) -> Arc<[String]> {
        // Locked during the check, so that probes which arrive meanwhile wait for the same one.
        let mut last = self.0.lock().await;
        if let Some((at, names)) = &*last
            && at.elapsed() < MAX_AGE
        {
            return Arc::clone(names);
        }
        let runtime = runtime.clone();
        let names: Arc<[String]> = offload::blocking(move || {
            broken_modules(&runtime).into_iter().map(|broken| broken.name).collect()
        })
        .await;
        *last = Some((Instant::now(), Arc::clone(&names)));
        names
    }
}
