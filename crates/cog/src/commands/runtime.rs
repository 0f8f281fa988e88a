//! What `run`, `render` and `test` share: loading modules, and waiting.

use std::{future::Future, sync::Arc};

use cog_host::settings::Settings;
use cog_module::{Finder, Module, load_manifest};
use cog_run::Runtime;
use cog_spec::{Code, Envelope, ErrorBody};

use super::signals::Signals;
use crate::{exit::Exit, output::Console};

/// Loads a module, and prints its warnings or errors to stderr.
pub(super) fn load(
    runtime: &Runtime,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    diagnosed(runtime.load(name), name, settings, console)
}

/// Loads a module like [`load`], where the command found the path itself: only trust lets it call tools.
pub(super) fn load_found(
    runtime: &Runtime,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    diagnosed(runtime.load_found(name), name, settings, console)
}

/// Notes about the modules that a server offers: which get no tools.
pub(super) fn note_served(finder: &Finder, console: &Console) {
    for (_, origin) in finder.origins() {
        let trust = finder.trust(&origin);
        if !trust.allows_tools()
            && let Ok(manifest) = load_manifest(&origin)
            && let Some(warning) = trust.warning(&manifest)
        {
            console.note(&warning);
        }
    }
}

fn diagnosed(
    loaded: Result<Arc<Module>, ErrorBody>,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    match &loaded {
        Ok(module) => console.diagnose(&module.warnings),
        Err(error) if error.code == Code::ModuleInvalid.into() => {
            // The envelope contains the findings; stderr also shows where they are.
            let origin = settings.finder().find(name).ok();
            if let Some(Err(error)) = origin.map(|origin| cog_module::load(&origin)) {
                console.diagnose(&error.diagnostics);
            }
        }
        Err(_) => {}
    }
    loaded
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
