//! `cog import`: a module from an Agent Skill.

use std::path::{Path, PathBuf};

use cog_host::settings::Environment;
use cog_module::import;

use super::targets::default_finder;
use crate::{args::ImportArgs, error::CliError, exit::Exit, output::Console};

/// Writes the module, prints its directory, and lists what to review.
pub(crate) fn import(
    args: &ImportArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let found_by_name = finder.roots().first().filter(|root| root.is_dir());
    let parent = args.output.as_deref().or(found_by_name.map(PathBuf::as_path)).unwrap_or(Path::new("."));
    let draft = import::skill(&args.skill)?;
    let directory = draft.write(parent)?;
    let shown = directory.strip_prefix(".").unwrap_or(&directory).display().to_string();
    console.print(&shown)?;
    for note in &draft.notes {
        console.note(note);
    }
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    console.note(&format!("next: review {path}, then `cog validate {path}`"));
    Ok(Exit::Ok)
}
