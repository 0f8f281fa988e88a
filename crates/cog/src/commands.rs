//! One file for each command: from its arguments to what it prints.

mod capabilities;
mod completions;
mod config;
mod emit;
mod errors;
mod info;
mod list;
mod man;
mod migrate;
mod new;
mod schema;
mod targets;
mod validate;

use crate::{
    args::{Cli, Command},
    exit::Exit,
    fault::Fault,
    output::Console,
    settings::Environment,
};

/// Does what was typed.
pub(crate) fn dispatch(cli: Cli, environment: Environment, console: &Console) -> Result<Exit, Fault> {
    match cli.command {
        Command::Config(format) => config::config(format, environment, console),
        Command::Capabilities(args) => capabilities::capabilities(&args, console),
        Command::Schema(args) => schema::schema(&args, console),
        Command::Errors(args) => errors::errors(&args, console),
        Command::Completions(args) => completions::completions(&args, console),
        Command::Man(args) => man::man(&args, console),
        Command::List(args) => list::list(&args, environment, console),
        Command::Info(args) => info::info(&args, environment, console),
        Command::Validate(args) => validate::validate(&args, environment, console),
        Command::New(args) => new::new(&args, environment, console),
        Command::Migrate(args) => migrate::migrate(&args, environment, console),
    }
}

/// The name by which the program was called: `cog` or `cogn` (supplement R1).
fn program() -> &'static str {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    match path.as_deref().and_then(std::path::Path::file_stem) {
        Some(stem) if stem == "cogn" => "cogn",
        _ => "cog",
    }
}
