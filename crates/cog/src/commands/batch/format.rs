//! The formats of the input and the output of a batch.

use std::path::Path;

use cog_batch::Format;

use crate::{args::BatchArgs, commands::emit, error::CliError};

/// The extensions of the formats that need the feature `arrow`.
#[cfg(not(feature = "arrow"))]
const TABLES: &[&str] = &["arrow", "arrows", "feather", "ipc", "parquet", "pq"];
#[cfg(feature = "arrow")]
const TABLES: &[&str] = &[];

/// Returns the format of the input.
///
/// # Errors
/// It has no name, and the extension of the file is none of a format.
pub(super) fn input(args: &BatchArgs) -> Result<Format, CliError> {
    named(args.rows.format, &args.input, "--format")
}

/// Returns the format of the output.
///
/// # Errors
/// As [`input`]; a table cannot be written to stdout.
pub(super) fn output(args: &BatchArgs) -> Result<Format, CliError> {
    let format = args.results.output_format;
    if !emit::is_stdout(&args.output) {
        return named(format, &args.output, "--output-format");
    }
    match format {
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
        suggestion: Some(match is_table(path) {
            true => "Parquet and Arrow need a program with the feature `arrow`: cargo install cogn --features arrow".to_owned(),
            false => format!("Name it with {flag}: {}.", Format::NAMES.join(", ")),
        }),
    })
}

fn is_table(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    TABLES.contains(&extension.to_ascii_lowercase().as_str())
}
