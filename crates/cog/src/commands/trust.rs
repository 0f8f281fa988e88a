//! `cog trust`: lets the modules of a directory call tools.

use std::path::Path;

use cog_host::{
    TrustError, TrustStore,
    settings::{Environment, Flags, Settings},
};

use crate::{args::TrustArgs, error::CliError, exit::Exit, output::Console};

/// Trusts a directory, stops trusting it, or lists the trusted ones.
pub(crate) fn trust(args: &TrustArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let store = TrustStore::new(&settings).ok_or_else(|| CliError::Usage {
        message: "trust needs a home directory".to_owned(),
        suggestion: Some("Set HOME, or use --trust for one command.".to_owned()),
    })?;
    if args.list {
        let directories = store.directories().map_err(|error| failed(&error))?;
        let directories: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
        if args.format.is_json() {
            console.print_json(&directories)?;
        } else {
            console.print(&directories.join("\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    if args.remove {
        if store.remove(path).map_err(|error| failed(&error))? {
            console.note(&format!("{} is no longer trusted", path.display()));
            return Ok(Exit::Ok);
        }
        return Err(CliError::Usage {
            message: format!("`{}` is not trusted", path.display()),
            suggestion: Some("`cog trust --list` shows the trusted directories.".to_owned()),
        });
    }
    let directory = store.add(path).map_err(|error| failed(&error))?;
    console.note(&format!("modules in {} may call tools", directory.display()));
    Ok(Exit::Ok)
}

fn failed(error: &TrustError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion()) }
}
