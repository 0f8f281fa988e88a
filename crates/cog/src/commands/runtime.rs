//! What the commands share: finding and loading modules, waiting for futures, and what each does first and last with its settings.

use std::{collections::HashSet, future::Future, sync::Arc};

use cog_flow::called_modules;
use cog_host::settings::{Environment, Flags, Settings, SettingsError};
use cog_module::{Finder, Module, Origin, Rule, load_manifest};
use cog_run::{ModuleRef, Runtime};
use cog_spec::{Code, Envelope, ErrorBody};

use crate::{
    error::{CliError, Exit},
    output::Console,
    system::Signals,
};

/// Loads a module, and prints its warnings or errors to stderr.
pub(super) fn load(
    runtime: &Runtime,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    let loaded = diagnosed(runtime.load(name), name, settings, console);
    if let Ok(module) = &loaded {
        note_shadowing(runtime.finder(), name, &module.origin, console);
        note_parts(runtime, module, console);
    }
    loaded
}

/// Loads a module like [`load`], where the command found the path itself: only trust lets it call tools.
pub(super) fn load_found(
    runtime: &Runtime,
    name: &str,
    settings: &Settings,
    console: &Console,
) -> Result<Arc<Module>, ErrorBody> {
    diagnosed(runtime.load(ModuleRef::Found(name)), name, settings, console)
}

/// Notes that a name means a module of the working directory, not the one that it means elsewhere.
pub(super) fn note_shadowing(finder: &Finder, name: &str, origin: &Origin, console: &Console) {
    if let Some(shadowing) = finder.shadowing(name, origin) {
        console.note(&shadowing.to_string());
    }
}

/// Notes the same about the modules that a module calls, itself or through others: its parts and its tools.
fn note_parts(runtime: &Runtime, module: &Arc<Module>, console: &Console) {
    // Modules may call each other in a circle, which the run reports; here each is visited once.
    let mut found = HashSet::new();
    let mut waiting = vec![Arc::clone(module)];
    while let Some(module) = waiting.pop() {
        let tools = module.manifest.tools.allowed.iter().filter(|_| module.trust.allows_tools());
        let names = called_modules(&module).into_iter().chain(tools.cloned());
        for name in names {
            if found.insert(name.clone())
                && let Ok(called) = runtime.load(ModuleRef::Name(&name))
            {
                note_shadowing(runtime.finder(), &name, &called.origin, console);
                waiting.push(called);
            }
        }
    }
}

/// Notes about the modules that a server offers: what the working directory changed, and which get no tools.
pub(super) fn note_served(finder: &Finder, console: &Console) {
    for (name, origin) in finder.offered() {
        note_shadowing(finder, &name, &origin, console);
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
    // One run waits for one provider: a pool of threads would only make the program start later.
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("cannot start the async runtime: {error}"))
    })?;
    Ok(events.block_on(work))
}

/// Returns the exit code of a run.
pub(super) fn exit(envelope: &Envelope) -> Exit {
    match envelope.error() {
        None if envelope.meta.runtime.wants_review() => Exit::Review,
        None => Exit::Ok,
        Some(error) if error.has_failed_with(Code::ModuleInvalid) => Exit::Invalid,
        Some(_) => Exit::Failed,
    }
}

/// Reads the settings of a command that calls models, warns of those that will not work, and notes what a project's file makes
/// dearer.
///
/// # Errors
/// As [`Settings::read`].
pub(super) fn load_run_settings(
    flags: Flags,
    environment: Environment,
    console: &Console,
) -> Result<Settings, SettingsError> {
    let settings = Settings::read(flags, environment)?;
    settings.warnings().iter().for_each(|warning| console.caution(warning));
    settings.costly_notes().iter().for_each(|note| console.note(note));
    Ok(settings)
}

/// Notes the variables of telemetry that are not supported, before runs.
pub(super) fn note_telemetry(settings: &Settings, console: &Console) {
    settings.telemetry_notes().iter().for_each(|note| console.note(note));
}

/// Exports what is left of spans and metrics, and reports what was lost.
pub(super) fn close_telemetry(settings: &Settings, console: &Console) {
    if let Some(note) = settings.close_telemetry() {
        console.note(&note);
    }
}

/// A module, with its name as given.
pub(super) type Target = (String, Origin);

/// Creates the module finder for a command without flags for settings.
pub(super) fn default_finder(environment: Environment) -> Result<Finder, CliError> {
    Ok(Settings::read(Flags::default(), environment)?.finder())
}

/// Returns the given modules, all that are not built in, or the one in the working directory.
pub(super) fn targets(finder: &Finder, named: &[String], all: bool) -> Result<Vec<Target>, CliError> {
    if all {
        let found = own(finder);
        return if found.is_empty() { Err(no_own_module()) } else { Ok(found) };
    }
    if named.is_empty() {
        return match module_here(finder) {
            Some(origin) => Ok(vec![(".".to_owned(), origin)]),
            None => Err(CliError::Usage {
                message: "no module is named, and the working directory is not a module".to_owned(),
                suggestion: Some("Name a module, or use --all for every module of `cog list`.".to_owned()),
            }),
        };
    }
    named.iter().map(|name| Ok((name.clone(), finder.find(name)?))).collect()
}

fn no_own_module() -> CliError {
    CliError::Usage {
        message: "no module was found".to_owned(),
        suggestion: Some(
            "--all skips built-in modules; `cog list` lists all, and `cog config` where they are searched."
                .to_owned(),
        ),
    }
}

/// Returns the modules that are not built in, sorted by name.
pub(super) fn own(finder: &Finder) -> Vec<Target> {
    let mut found = finder.origins();
    found.retain(|(_, origin)| matches!(origin, Origin::Directory(_)));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the module in the working directory, if it contains a manifest.
pub(super) fn module_here(finder: &Finder) -> Option<Origin> {
    let origin = finder.find(".").ok()?;
    let is_missing = load_manifest(&origin)
        .is_err_and(|error| error.diagnostics.iter().any(|one| one.rule == Rule::ManifestMissing));
    (!is_missing).then_some(origin)
}

/// Returns the location of a module: its directory, or `built in`.
pub(super) fn location(origin: &Origin) -> String {
    match origin {
        Origin::Directory(directory) => directory.display().to_string(),
        _ => "built in".to_owned(),
    }
}
