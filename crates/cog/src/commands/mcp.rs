//! `cog mcp serve`: modules as tools of MCP.

use std::pin::pin;

use cog_host::{Hosted, Use, settings::Environment};
use cog_mcp::{CallSettings, ModuleServer};
use cog_spec::{Code, ErrorBody};

use super::{
    runtime::load_run_settings,
    serve::{self, Listening, events, served_runtime},
};
use crate::{
    args::{McpArgs, McpCommand, McpServeArgs},
    error::{CliError, Exit},
    output::Console,
    system::Signals,
};

/// Runs the subcommand.
pub(crate) fn mcp(args: &McpArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let McpCommand::Serve(args) = &args.command;
    if args.http.is_none() {
        return stdio(args, environment, console);
    }
    let listening = Listening {
        offered: &args.offered,
        model: &args.model,
        flag: &|name| args.server_flag(name),
        only_mcp: true,
    };
    serve::listen(&listening, environment, console)
}

/// Serves standard input and output until the client closes them, or Ctrl-C or SIGTERM.
fn stdio(args: &McpServeArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = load_run_settings(args.model.flags(), environment, console)?;
    let Hosted { runtime, note, .. } = served_runtime(Use::Serve, &args.offered, &settings, console)?;
    console.note(&note);
    let events = events(0)?;
    let served = events.block_on(async {
        let mut signals = Signals::new()?;
        let stopped = pin!(signals.next());
        let server = ModuleServer::new(runtime, |_| Ok(CallSettings::default())).with_skills();
        server.serve_stdio(stopped).await.map_err(|reason| disconnected(&reason))
    });
    // A read of standard input that waits cannot be cancelled.
    events.shutdown_background();
    Ok(served.map(|()| Exit::Ok)?)
}

fn disconnected(reason: &str) -> ErrorBody {
    ErrorBody::new(Code::StreamInterrupted, format!("the connection to the MCP client ended: {reason}"))
        .suggest("Check the log of the client.")
}
