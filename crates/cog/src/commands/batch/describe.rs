//! What a batch is, so that another one does not continue it.

use std::{path::Path, sync::Arc};

use cog_batch::{Batch, Description, digest_of_files};
use cog_host::settings::Settings;
use cog_module::{Module, Origin, files};
use cog_spec::Generation;

use crate::{args::BatchArgs, commands::emit, error::CliError};

/// Describes a batch by all that determines its answers.
pub(super) fn describe(
    args: &BatchArgs,
    batch: &Batch,
    settings: &Settings,
) -> Result<Description, CliError> {
    let manifest = &batch.module.manifest;
    let mut description = Description::default()
        .with("module", format!("{} {}", manifest.name, manifest.version))
        .with("module files", digest(&batch.module)?)
        .with("model", model(args, batch))
        .with("input", input(&args.input));
    let check = &args.check;
    let parameters = parameters(&args.generation.generation().or(&settings.generation.preferred()));
    let options = [
        ("parts", parts(batch)?),
        ("parameters", Some(parameters).filter(|text| !text.is_empty())),
        ("strict", settings.strict.value.then(|| "true".to_owned())),
        ("on-violation", check.on_violation.map(|action| action.as_str().to_owned())),
        ("max-attempts", check.max_attempts.map(|number| number.to_string())),
        ("where", args.rows.filter.clone()),
        ("map", Some(map(args)).filter(|map| !map.is_empty())),
    ];
    for (name, value) in options {
        if let Some(value) = value {
            description = description.with(name, value);
        }
    }
    Ok(description)
}

/// Returns the directory and the arguments of this process.
pub(super) fn command() -> Vec<String> {
    let directory = std::env::current_dir().unwrap_or_default().display().to_string();
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(directory).chain(arguments).collect()
}

/// Returns the parameters that are set: `temperature 0.5, seed 1`.
fn parameters(generation: &Generation) -> String {
    let Generation { temperature, max_tokens, seed, stop, effort, verbosity, service_tier } = generation;
    let parts = [
        temperature.map(|it| format!("temperature {it}")),
        max_tokens.map(|it| format!("max-tokens {it}")),
        seed.map(|it| format!("seed {it}")),
        (!stop.is_empty()).then(|| format!("stop {stop:?}")),
        effort.map(|it| format!("effort {}", it.as_str())),
        verbosity.map(|it| format!("verbosity {}", it.as_str())),
        service_tier.map(|it| format!("service-tier {}", it.as_str())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns a digest of the files of a module, except its tests.
fn digest(module: &Module) -> Result<String, CliError> {
    let Origin::Directory(directory) = &module.origin else {
        return Ok(format!("built in {}", env!("CARGO_PKG_VERSION")));
    };
    let read = files::read_directory(directory);
    let mut files = read.map_err(|source| CliError::File {
        what: "cannot read the module",
        path: directory.clone(),
        source,
    })?;
    files.retain(|(name, _)| !name.starts_with("tests/"));
    Ok(digest_of_files(&files))
}

/// Returns the modules that this one calls, directly or not, each with a digest of its files. None if it calls none.
fn parts(batch: &Batch) -> Result<Option<String>, CliError> {
    let checked = cog_flow::check(Arc::clone(&batch.module), batch.runtime.finder());
    let part = |module: &Module| {
        let manifest = &module.manifest;
        Ok(format!("{} {} {}", manifest.name, manifest.version, digest(module)?))
    };
    let parts = checked.flow().plans().skip(1).map(|(_, plan)| part(&plan.module));
    let mut parts = parts.collect::<Result<Vec<_>, CliError>>()?;
    parts.sort();
    Ok(Some(parts.join(", ")).filter(|parts| !parts.is_empty()))
}

/// Returns the providers that are called, and the model of the first.
fn model(args: &BatchArgs, batch: &Batch) -> String {
    if args.nats().is_some() {
        let model = args.model.model.as_deref().unwrap_or("of their provider");
        let providers = args.model.provider.join(",");
        return format!("workers/{providers}{}{model}", if providers.is_empty() { "" } else { "/" });
    }
    let order = batch.runtime.providers().default_order();
    let names = order.iter().map(|provider| {
        let info = provider.info();
        format!("{}/{}", info.name, info.model)
    });
    let names: Vec<_> = names.collect();
    if names.is_empty() { cog_provider::OFFLINE.to_owned() } else { names.join(", ") }
}

/// Returns the length of the input. Its path does not count: a batch continues from another directory too, and the hashes of the rows
/// say whether they are the same.
fn input(path: &Path) -> String {
    if emit::is_stdout(path) {
        return "stdin".to_owned();
    }
    match std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file) {
        Some(facts) => format!("{} bytes", facts.len()),
        None => "a pipe".to_owned(),
    }
}

fn map(args: &BatchArgs) -> String {
    let mut map: Vec<_> = args.rows.map.iter().map(|(field, column)| format!("{field}={column}")).collect();
    map.sort();
    map.join(", ")
}
