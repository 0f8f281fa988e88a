//! JSON to stdout, or into a file.

use std::path::Path;

use cog_json::ToJson;
use cog_module::files;

use crate::{args::OutputArgs, fault::Fault, output::Console};

/// Writes a value where the arguments say; on stdout with line breaks for a person, on one line for a
/// program.
pub(crate) fn json(
    value: &(impl ToJson + ?Sized),
    args: &OutputArgs,
    console: &Console,
) -> Result<(), Fault> {
    match &args.output {
        Some(path) => file(path, &text(value, args.pretty), console),
        None => Ok(console.print(&text(value, args.pretty || console.out().is_terminal))?),
    }
}

/// Writes a file, whole or not at all.
pub(crate) fn file(path: &Path, text: &str, console: &Console) -> Result<(), Fault> {
    let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    files::write_atomic(path, &text).map_err(|source| Fault::File {
        what: "the file cannot be written",
        path: path.to_owned(),
        source,
    })?;
    if console.err().is_terminal {
        console.note(&format!("written to {}", path.display()));
    }
    Ok(())
}

fn text(value: &(impl ToJson + ?Sized), pretty: bool) -> String {
    if pretty { value.to_json_pretty() } else { value.to_json() }
}
