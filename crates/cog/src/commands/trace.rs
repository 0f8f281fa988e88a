//! `cog trace`: the messages of a run as a timeline.

mod entry;
mod html;
mod text;

use std::path::Path;

use cog_harmony::{Conversation, timeline::Timeline};
use cog_json::ToJson as _;
use cog_spec::Code;

use super::{emit, messages};
use crate::{
    args::{TraceArgs, TraceCommand, TraceFormat, TraceShowArgs},
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// Runs the subcommand.
pub(crate) fn trace(args: &TraceArgs, console: &Console) -> Result<Exit, CliError> {
    match &args.command {
        TraceCommand::Show(args) => show(args, console),
    }
}

/// Draws the timeline of a trace.
fn show(args: &TraceShowArgs, console: &Console) -> Result<Exit, CliError> {
    emit::check(args.output.as_deref())?;
    let conversation = read(&args.file)?;
    let timeline = Timeline::new(&conversation);
    let file = args.output.as_deref().filter(|path| !emit::is_stdout(path));
    let out = console.out();
    let text = match args.format {
        TraceFormat::Text if file.is_some() => text::draw(&timeline, Palette::new(false), console.width()),
        TraceFormat::Text => text::draw(&timeline, out.palette, console.width()),
        TraceFormat::Json if file.is_none() && out.is_terminal => timeline.to_json_pretty(),
        TraceFormat::Json => timeline.to_json(),
        TraceFormat::Html => html::page(&timeline, &args.file),
    };
    messages::write(&text, file, console)?;
    Ok(Exit::Ok)
}

fn read(file: &Path) -> Result<Conversation, CliError> {
    let document = messages::read(file).map_err(advised)?;
    document.messages().map_err(|problem| advised(messages::unreadable(file, &problem)))?;
    messages::conversation(&document, file)
}

/// Adds how a trace is written to the error of a file that contains no messages.
fn advised(error: CliError) -> CliError {
    match error {
        CliError::Body(body) if body.code == Code::ParseError.into() => {
            CliError::from(body.suggest("Write a trace with `cog run MODULE --trace FILE`."))
        }
        error => error,
    }
}
