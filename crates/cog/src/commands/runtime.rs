//! What `run`, `render` and `test` share: the runtime, loading modules, and waiting.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_flow::Flows;
use cog_media::Access;
use cog_module::{Module, Origin};
use cog_run::{ContextStore, Providers, Runtime, RuntimeBuilder};
use cog_spec::{Code, Envelope, ErrorBody};

use super::{input, signals::Signals, targets};
use crate::{args::MediaFlags, exit::Exit, output::Console, settings::Settings};

/// Creates a runtime from the settings.
pub(super) fn runtime(settings: &Settings, providers: Providers) -> Runtime {
    builder(settings, providers).build()
}

/// Creates the builder of a runtime from the settings.
pub(super) fn builder(settings: &Settings, providers: Providers) -> RuntimeBuilder {
    let finder = targets::finder(settings);
    Runtime::builder()
        .finder(finder)
        .composer(Arc::new(Flows::new()))
        .timeout(settings.timeout.value)
        .generation(settings.generation.preferred())
        .budget(settings.budget.limits())
        .tool_limits(settings.tools.limits())
        .confirmed_tools(settings.tools.confirm.value.iter().cloned())
        .halted_runs(settings.tools.halted_runs())
        .providers(providers)
}

/// Returns the store of context for later runs: in the directory if there is one, otherwise in memory.
pub(super) fn context_store(state_dir: Option<&Path>) -> ContextStore {
    match state_dir {
        Some(directory) => ContextStore::in_directory(directory.join("context")),
        None => ContextStore::in_memory(),
    }
}

/// Sets the cache of answers: in a directory, otherwise in that of the settings, if there is one.
pub(super) fn caching(
    builder: RuntimeBuilder,
    settings: &Settings,
    directory: Option<&Path>,
) -> RuntimeBuilder {
    match settings.cache.cache(directory) {
        Some(cache) => builder.cache(cache),
        None => builder,
    }
}

/// Loads a module, and prints its warnings or errors to stderr.
pub(super) fn load(
    runtime: &Runtime,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    let loaded = runtime.load(name);
    match &loaded {
        Ok(module) => console.diagnose(&module.warnings),
        Err(error) if error.code == Code::ModuleInvalid.into() => {
            // The envelope contains the findings; stderr also shows where they are.
            let origin = targets::finder(settings).find(name).ok();
            if let Some(Err(error)) = origin.map(|origin| cog_module::load(&origin)) {
                console.diagnose(&error.diagnostics);
            }
        }
        Err(_) => {}
    }
    loaded
}

/// Returns what a run of this module may open: files in its directory, the working directory and the operator's roots,
/// files of the flags, and the URLs that the operator allows (docs/spec/media.md).
pub(super) fn access(module: &Module, settings: &Settings, flags: &MediaFlags) -> Access {
    let directory = match &module.origin {
        Origin::Directory(directory) => directory.canonicalize().ok(),
        _ => None,
    };
    let roots = [Some(PathBuf::from(".")), directory.clone()];
    Access {
        directory,
        fetcher: settings.media.fetcher(),
        by_url: settings.media.by_url.value,
        strip_metadata: settings.media.strip_metadata.value,
        files: settings.media.files(roots.into_iter().flatten().chain(input::media_files(flags))),
        tool: Some(settings.media.tool()),
        ..Access::default()
    }
}

/// Runs a future until it is done. Returns none if a signal came first, which cancels the future.
///
/// # Errors
/// E4000 if the async runtime or the signal handlers cannot be started.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> Result<Option<T>, ErrorBody> {
    block_on(async {
        let mut signals = Signals::new()?;
        Ok(tokio::select! {
            done = work => Some(done),
            () = signals.next() => None,
        })
    })?
}

/// Runs a future that handles signals itself.
///
/// # Errors
/// E4000 if the async runtime cannot be started.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ErrorBody> {
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("cannot start the async runtime: {error}"))
    })?;
    Ok(events.block_on(work))
}

/// Returns the exit code of a run.
pub(super) fn exit(envelope: &Envelope) -> Exit {
    match envelope.error() {
        None => Exit::Ok,
        Some(error) if error.code == Code::ModuleInvalid.into() => Exit::Invalid,
        Some(_) => Exit::Failed,
    }
}
