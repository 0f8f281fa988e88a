//! What is checked before a batch: its files, their formats, and that a row has one call; and what a batch is, so that another
//! one does not continue it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_batch::{Batch, ColumnMap, Compression, Description, Format, Jobs, JournalPaths, digest_of_files};
use cog_host::settings::Settings;
use cog_module::{Module, Origin, files};
use cog_spec::Generation;

use crate::{args::BatchArgs, commands::emit, error::CliError};

/// The maximum of links that are followed to a file that does not exist yet.
const MAX_LINKS: usize = 16;

/// Checks that no file that is written is the input, and that the summary replaces no file of the results.
///
/// # Errors
/// A usage error if two names mean one file.
pub(super) fn check(args: &BatchArgs) -> Result<(), CliError> {
    let summary = args.results.summary.as_deref();
    let input = resolve(&args.input);
    let is_input = |path: &Path| input.is_some() && resolve(path) == input;
    if results(&args.output).iter().any(|path| is_input(path)) {
        return Err(replaced("-o", &args.input, "the input", "the results"));
    }
    let Some(summary) = summary else { return Ok(()) };
    if emit::is_stdout(summary) {
        return Err(CliError::Usage {
            message: "--summary: the summary is not written to stdout, only to a file".to_owned(),
            suggestion: Some("Name a file, such as --summary summary.json.".to_owned()),
        });
    }
    if is_input(summary) {
        return Err(replaced("--summary", summary, "the input", "the summary"));
    }
    match is_of_results(summary, &args.output) {
        true => Err(replaced("--summary", summary, "a file of the results", "the summary")),
        false => Ok(()),
    }
}

fn replaced(option: &str, path: &Path, file: &str, other: &str) -> CliError {
    CliError::Usage {
        message: format!("{option}: {} is {file}, which would be replaced", path.display()),
        suggestion: Some(format!("Choose another file for {other}.")),
    }
}

/// Returns whether a file is the output, or has its results or jobs while the batch runs.
fn is_of_results(path: &Path, output: &Path) -> bool {
    let Some(file) = resolve(path) else { return false };
    let jobs = resolve(&Jobs::path_beside(output)).filter(|_| !emit::is_stdout(output));
    let is_of_job = jobs.is_some_and(|jobs| {
        let rest = file.as_os_str().as_encoded_bytes().strip_prefix(jobs.as_os_str().as_encoded_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"-"))
    });
    is_of_job || results(output).iter().any(|path| resolve(path).as_ref() == Some(&file))
}

/// Returns the output and the files next to it.
fn results(output: &Path) -> Vec<PathBuf> {
    if emit::is_stdout(output) {
        return Vec::new();
    }
    let JournalPaths { journal, results } = JournalPaths::beside(output);
    vec![output.to_owned(), journal, results, Jobs::path_beside(output)]
}

/// Returns the file of a path without links, also if it does not exist yet. None for stdin, pipes and devices.
fn resolve(path: &Path) -> Option<PathBuf> {
    if emit::is_stdout(path) || fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return None;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = directory(&path).join(target);
    }
    if let Ok(path) = fs::canonicalize(&path) {
        return Some(path);
    }
    Some(fs::canonicalize(directory(&path)).ok()?.join(path.file_name()?))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The extensions of the formats that need the feature `arrow`.
#[cfg(not(feature = "arrow"))]
const TABLES: &[&str] = &["arrow", "arrows", "feather", "ipc", "parquet", "pq"];
#[cfg(feature = "arrow")]
const TABLES: &[&str] = &[];
/// The extensions of spreadsheets, which are not read.
const SPREADSHEETS: &[&str] = &["ods", "xls", "xlsm", "xlsx"];
/// The extensions of compressions and archives that are not read.
const ARCHIVES: &[&str] = &["7z", "br", "bz2", "lz", "lz4", "lzma", "rar", "tar", "tgz", "xz", "z", "zip"];

/// Returns the format of the input.
///
/// # Errors
/// It has no name, and the extension of the file is none of a format.
pub(super) fn input_format(args: &BatchArgs) -> Result<Format, CliError> {
    named(args.rows.format, Compression::strip(&args.input), "--format")
}

/// Returns the format of the output.
///
/// # Errors
/// As [`input_format`]; a table cannot be written to stdout.
pub(super) fn output_format(args: &BatchArgs) -> Result<Format, CliError> {
    let format = args.results.output_format;
    if Compression::from_path(&args.output).is_some() {
        return Err(CliError::Usage {
            message: format!("{}: results are not compressed", args.output.display()),
            suggestion: Some(
                "Name a file such as results.jsonl, and compress it when it is complete.".to_owned(),
            ),
        });
    }
    let format = match emit::is_stdout(&args.output) {
        true => format,
        false => Some(named(format, &args.output, "--output-format")?),
    };
    if args.results.escape_formulas && format != Some(Format::Csv) {
        return Err(CliError::usage("--escape-formulas is for results in CSV"));
    }
    match format {
        Some(format) if !emit::is_stdout(&args.output) => Ok(format),
        None | Some(Format::JsonLines) => Ok(Format::JsonLines),
        Some(_) => {
            Err(CliError::usage("only JSON Lines can be written to stdout; name a file with --output"))
        }
    }
}

fn named(name: Option<Format>, path: &Path, flag: &str) -> Result<Format, CliError> {
    let format = name.or_else(|| Format::from_path(path));
    format.ok_or_else(|| CliError::Usage {
        message: match emit::is_stdout(path) {
            true => "the format of stdin is unknown".to_owned(),
            false => format!("the format of {} is unknown", path.display()),
        },
        suggestion: Some(match has_extension(path, TABLES) {
            true => "Parquet and Arrow need a program with the feature `arrow`: cargo install cogn --features arrow".to_owned(),
            false if has_extension(path, SPREADSHEETS) => "Save the spreadsheet as CSV.".to_owned(),
            false if has_extension(path, ARCHIVES) => {
                "Decompress it first, or compress the rows as .gz or .zst.".to_owned()
            }
            false => format!("Name it with {flag}: {}.", Format::NAMES.join(", ")),
        }),
    })
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    extensions.contains(&extension.to_ascii_lowercase().as_str())
}

/// Returns what becomes of the columns of the input.
pub(super) fn columns(args: &BatchArgs) -> ColumnMap {
    let rows = &args.rows;
    let mut keep: Vec<String> = Vec::new();
    for name in &rows.keep {
        if !keep.contains(name) {
            keep.push(name.clone());
        }
    }
    ColumnMap {
        fields: rows.map.clone(),
        ignore_unknown: rows.ignore_unknown,
        id: rows.id.clone(),
        keep,
        nulls: rows.null.clone(),
    }
}

/// Checks that a row of the module has one call.
pub(super) fn check_module(flag: &str, module: &Module) -> Result<(), CliError> {
    let manifest = &module.manifest;
    let reason = match () {
        () if manifest.composition.is_some() => "it calls other modules",
        () if manifest.policies.tools_allowed => "it calls tools",
        () => return Ok(()),
    };
    Err(CliError::Usage {
        message: format!("{flag}: the module {} needs several calls for each row: {reason}", manifest.name),
        suggestion: Some(format!("Run the batch without {flag}.")),
    })
}

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
        ("accept", check.accept.map(|share| share.to_string())),
        ("escalate", check.escalate.then(|| "true".to_owned())),
        ("on-violation", check.on_violation.map(|action| action.as_str().to_owned())),
        ("max-attempts", check.max_attempts.map(|number| number.to_string())),
        ("where", args.rows.filter.clone()),
        ("map", Some(map(args)).filter(|map| !map.is_empty())),
        ("id", args.rows.id.clone()),
        ("keep", Some(columns(args).keep.join(", ")).filter(|names| !names.is_empty())),
        ("null", Some(args.rows.null.join(", ")).filter(|words| !words.is_empty())),
        ("delimiter", args.rows.delimiter.map(|byte| char::from(byte).to_string())),
        ("encoding", args.rows.encoding.map(|encoding| encoding.name().to_owned())),
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
    let Generation { temperature, max_tokens, seed, stop, effort, verbosity, service_tier, ask } = generation;
    let parts = [
        temperature.map(|it| format!("temperature {it}")),
        max_tokens.map(|it| format!("max-tokens {it}")),
        seed.map(|it| format!("seed {it}")),
        (!stop.is_empty()).then(|| format!("stop {stop:?}")),
        effort.map(|it| format!("effort {}", it.as_str())),
        verbosity.map(|it| format!("verbosity {}", it.as_str())),
        service_tier.map(|it| format!("service-tier {}", it.as_str())),
        ask.map(|it| format!("ask {it}")),
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
    let mut parts = Vec::new();
    for (_, plan) in checked.flow().plans().skip(1) {
        let manifest = &plan.module.manifest;
        parts.push(format!("{} {} {}", manifest.name, manifest.version, digest(&plan.module)?));
    }
    parts.sort();
    Ok(Some(parts.join(", ")).filter(|parts| !parts.is_empty()))
}

/// Returns the providers that are called, and the model of the first.
pub(super) fn model(args: &BatchArgs, batch: &Batch) -> String {
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
