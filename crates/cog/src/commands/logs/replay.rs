//! `cog logs replay`: runs a module again with the input of a logged run.

use cog_host::{
    run_log::{Contents, Entries, Entry},
    settings::{Environment, Flags, Settings},
};

use crate::{
    args::{HandoffToArgs, InputArgs, LogsReplayArgs, MediaFlags, RequestArgs, RunArgs, ToolArgs},
    commands::run::{self, Start},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the module of a logged run again.
pub(super) fn replay(
    args: LogsReplayArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment.clone())?;
    let entry = Entries::read(&settings)?.find(args.id.as_deref())?;
    let contents = entry.stored_contents()?;
    let start = Start::Input(contents.run_input());
    run::run_with(&run_args(args, &entry, contents), start, environment, console)
}

/// Returns the arguments of a run that is equal to the logged one, except where the given ones differ.
fn run_args(mut args: LogsReplayArgs, entry: &Entry, contents: &Contents) -> RunArgs {
    args.model.select_former(entry);
    let input = InputArgs {
        module: Some(entry.target().to_owned()),
        input: None,
        args: contents.args.clone(),
        input_json: contents.input.as_ref().map(ToString::to_string),
        media: MediaFlags::default(),
    };
    RunArgs {
        request: RequestArgs { input, output: args.output, model: args.model, generation: args.generation },
        continue_last: false,
        stream: args.stream,
        check: args.check,
        tools: ToolArgs::default(),
        state_dir: None,
        handoff: HandoffToArgs::default(),
        cache: None,
        record: None,
        trace: None,
        media_dir: None,
        replay: None,
    }
}
