//! Completion and manual pages: a shell calls the program for each tab, and gets the names of modules too.

use std::ffi::OsStr;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _},
    env::Shells,
};
use cog_host::{
    run_log::{Entries, Entry},
    settings::{Environment, Flags, Settings},
};
use cog_module::ListedModule;

use crate::{
    args::{Cli, CompletionsArgs, ManArgs},
    error::CliError,
    exit::Exit,
    output::Console,
    parse::program,
};

/// The variable that the scripts of `cog completions` set to the name of the shell.
const VARIABLE: &str = "COG_COMPLETE";

/// Prints the candidates if a shell calls for them; otherwise returns none.
pub(crate) fn complete() -> Option<Exit> {
    let directory = std::env::current_dir().ok();
    let shell = CompleteEnv::with_factory(command).var(VARIABLE);
    match shell.try_complete(std::env::args_os(), directory.as_deref()) {
        Ok(true) => Some(Exit::Ok),
        Ok(false) => None,
        Err(error) => {
            let _ = error.print();
            Some(Exit::Usage)
        }
    }
}

/// Returns the script that makes a shell call this program.
fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(shell) {
        completer.write_registration(VARIABLE, program(), program(), program(), &mut script)?;
    }
    Ok(script)
}

/// The commands, with the modules and the logged runs as candidates of each argument that names one.
fn command() -> Command {
    with_candidates(Cli::command().name(program()))
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(with_completer).mut_subcommands(with_candidates)
}

fn with_completer(arg: Arg) -> Arg {
    match arg.get_value_names() {
        Some([name]) if name == "MODULE" => arg.add(ArgValueCompleter::new(modules)),
        Some([name]) if name == "ID" => arg.add(ArgValueCompleter::new(runs)),
        _ => arg,
    }
}

/// Returns the logged runs whose IDs begin with `current`, the newest first.
fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    const MAX_RUNS: usize = 100;
    let text = current.to_string_lossy();
    let settings = Settings::read(Flags::default(), Environment::from_process()).ok();
    let Some(entries) = settings.and_then(|settings| Entries::read(&settings).ok()) else {
        return Vec::new();
    };
    let found = entries.newest_first().filter(|run| run.id.starts_with(&*text)).take(MAX_RUNS);
    found.map(run_candidate).collect()
}

fn run_candidate(run: Entry) -> CompletionCandidate {
    let help = format!("{} {} {}", run.time, run.module, run.result());
    CompletionCandidate::new(run.id).help(Some(help.into()))
}

/// Returns the modules whose names begin with `current`, or directories if it is a path.
fn modules(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    if text.contains('/') || text.starts_with('.') {
        return PathCompleter::dir().complete(current);
    }
    // A shell shows no errors of a completion.
    let Ok(settings) = Settings::read(Flags::default(), Environment::from_process()) else {
        return Vec::new();
    };
    let listed = settings.finder().list().into_iter().filter(|module| module.name.starts_with(&*text));
    listed.map(module_candidate).collect()
}

fn module_candidate(module: ListedModule) -> CompletionCandidate {
    let purpose = module.manifest.ok().map(|manifest| manifest.responsibility.into());
    CompletionCandidate::new(module.name).help(purpose)
}

/// Prints the script for a shell and for the name of this program.
pub(crate) fn completions(args: &CompletionsArgs, console: &Console) -> Result<Exit, CliError> {
    let script = script(&args.shell.to_string())?;
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// Prints the overview, or the page of one command, as roff.
pub(crate) fn man(args: &ManArgs, console: &Console) -> Result<Exit, CliError> {
    let mut cog = Cli::command().name(program());
    cog.build();
    let mut page = &cog;
    for wanted in &args.command {
        page = page.find_subcommand(wanted).ok_or_else(|| unknown(wanted))?;
    }
    let mut roff = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut roff)?;
    console.print(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Ok)
}

fn unknown(name: &str) -> CliError {
    CliError::Usage {
        message: format!("unknown command `{name}`"),
        suggestion: Some("`cog help` lists the commands.".to_owned()),
    }
}
