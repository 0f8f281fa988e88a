//! `cog logs replay`: runs a module again with the input of a logged run.

use cog_spec::{Code, ErrorBody};

use crate::{
    args::{HandoffToArgs, InputArgs, LogsReplayArgs, MediaFlags, ModelArgs, RequestArgs, RunArgs, ToolArgs},
    commands::{
        run,
        run_log::{Contents, Entry},
    },
    error::CliError,
    exit::Exit,
    output::Console,
    settings::{Environment, Flags, Settings},
};

/// Runs the module of a logged run again.
pub(super) fn replay(
    args: LogsReplayArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment.clone())?;
    let entry = super::entries(&settings)?.find(args.id.as_deref())?;
    let contents = entry.contents.as_ref().ok_or_else(|| not_stored(&entry))?;
    let input = contents.run_input();
    run::run_with(&run_args(args, &entry, contents), Some(input), environment, console)
}

fn not_stored(entry: &Entry) -> ErrorBody {
    let message = format!("the input of the run `{}` is not stored", entry.id);
    let advice = "Set COG_LOGS_CONTENTS=true, or `contents = true` in [logs] of ~/.config/cog/config.toml, to store \
                  the inputs of later runs up to 1 MiB.";
    ErrorBody::new(Code::InvalidReference, message).suggest(advice)
}

/// Returns the arguments of a run that is equal to the logged one, except where the given ones differ.
fn run_args(args: LogsReplayArgs, entry: &Entry, contents: &Contents) -> RunArgs {
    let input = InputArgs {
        module: Some(entry.directory.clone().unwrap_or_else(|| entry.module.clone())),
        input: None,
        args: contents.args.clone(),
        input_json: contents.input.as_ref().map(ToString::to_string),
        media: MediaFlags::default(),
    };
    RunArgs {
        request: RequestArgs {
            input,
            output: args.output,
            model: with_logged_model(args.model, entry),
            generation: args.generation,
        },
        stream: args.stream,
        check: args.check,
        tools: ToolArgs::default(),
        state_dir: None,
        handoff: HandoffToArgs::default(),
        record: None,
        trace: None,
        media_dir: None,
        replay: None,
    }
}

/// Adds the provider and the model of the logged run, unless a provider is given; a given model replaces that one.
fn with_logged_model(given: ModelArgs, entry: &Entry) -> ModelArgs {
    if !given.provider.is_empty() {
        return given;
    }
    let model = given.model.or_else(|| entry.requested_model.clone());
    ModelArgs { provider: entry.providers(), model, ..given }
}
