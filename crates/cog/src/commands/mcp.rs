//! `cog mcp`: modules as tools of MCP, and the tools of the servers in the settings.

use std::{io::IsTerminal as _, pin::pin, sync::Arc};

use cog_host::{
    Hosted, Use,
    settings::{Environment, Flags, Settings},
};
use cog_json::{ToJson, Writer};
use cog_mcp::{CallSettings, McpError, McpServer, ModuleServer, Revocation, SignedOut};
use cog_run::{
    provider::TokenCounter,
    tools::{Tool, ToolInfo, ToolSource as _, call_once, matches},
};
use cog_spec::{Code, Dialect, ErrorBody};

use super::{
    person,
    runtime::load_run_settings,
    serve::{self, Listening, events, served_runtime},
};
use crate::{
    args::{McpArgs, McpCallArgs, McpCommand, McpLoginArgs, McpLogoutArgs, McpServeArgs, McpToolsArgs},
    error::{CliError, Exit},
    output::{Console, Table},
    system::Signals,
};

/// Runs the subcommand.
pub(crate) fn mcp(args: &McpArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let args = match &args.command {
        McpCommand::Serve(args) => args,
        McpCommand::Tools(args) => return tools(args, environment, console),
        McpCommand::Call(args) => return call(args, environment, console),
        McpCommand::Login(args) => return login(args, environment, console),
        McpCommand::Logout(args) => return logout(args, environment, console),
    };
    if args.http.is_none() {
        return stdio(args, environment, console);
    }
    let listening = Listening {
        offered: &args.offered,
        model: &args.model,
        flag: &|name| args.server_flag(name),
        only_mcp: true,
        workbench: None,
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

// The tools of servers in the settings.

/// A server that was started.
struct Started {
    tools: Vec<Arc<dyn Tool>>,
    /// A sentence for each tool that cannot be called.
    notes: Vec<String>,
}

/// Starts a server.
///
/// # Errors
/// The settings have no such server, or it cannot be started.
fn start(settings: &Settings, name: &str) -> Result<Started, ErrorBody> {
    let server = server(settings, name)?;
    let (tools, started) = server.start_blocking().map_err(|error| disconnected(&error.to_string()))?;
    started.map_err(error_body)?;
    let skipped = tools.skipped().into_iter();
    let notes = skipped.map(|(tool, reason)| format!("`{tool}` cannot be called: {reason}")).collect();
    let tools = tools.tools().map_err(|reason| ErrorBody::new(Code::ProviderUnavailable, reason))?;
    Ok(Started { tools, notes })
}

/// Returns a server of the settings.
fn server<'a>(settings: &'a Settings, name: &str) -> Result<&'a McpServer, ErrorBody> {
    settings.mcp.iter().find(|server| server.name == name).ok_or_else(|| {
        let known = settings.mcp.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!("there is no MCP server `{name}` in the settings");
        ErrorBody::new(Code::InvalidReference, message).suggest(format!("The settings name these: {known}."))
    })
}

fn error_body(error: McpError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

/// Starts servers at the same time.
fn start_all(settings: &Settings, names: &[String]) -> Vec<Result<Started, ErrorBody>> {
    std::thread::scope(|scope| {
        let starts: Vec<_> = names.iter().map(|name| scope.spawn(|| start(settings, name))).collect();
        let ended = |_| Err(ErrorBody::new(Code::InternalError, "starting an MCP server failed"));
        starts.into_iter().map(|start| start.join().unwrap_or_else(ended)).collect()
    })
}

fn tools(args: &McpToolsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = load_run_settings(Flags::default(), environment, console)?;
    let all = settings.mcp.iter().map(|server| server.name.clone());
    let servers: Vec<String> = args.server.clone().map_or_else(|| all.collect(), |name| vec![name]);
    let mut listed = Vec::new();
    let mut exit = Exit::Ok;
    for started in start_all(&settings, &servers) {
        let started = match started {
            // One that is down does not hide the tools of the others.
            Err(error) if servers.len() > 1 => {
                console.note(&error.message);
                exit = Exit::Failed;
                continue;
            }
            started => started?,
        };
        started.notes.iter().for_each(|note| console.note(note));
        for tool in started.tools {
            let info = tool.info();
            let name = info.name.clone();
            let confirmed = settings.tools.confirm.value.iter().any(|pattern| matches(pattern, &name));
            listed.push(ListedTool { confirmed: confirmed || info.needs_confirmation, info: info.clone() });
        }
    }
    if console.prints_json(args.format) {
        console.print_json(&cog_json::Array(&listed))?;
        return Ok(exit);
    }
    let mut table = Table::new(["tool", "may", "confirmed", "tokens"]);
    for tool in &listed {
        let confirmed = if tool.confirmed { "yes" } else { "no" };
        let tokens = tool.tokens().to_string();
        table.row([tool.info.name.clone(), tool.effects().join(", "), confirmed.to_owned(), tokens]);
    }
    console.print(&table.render(console.out().palette, console.out_columns()))?;
    Ok(exit)
}

/// A tool in the list.
struct ListedTool {
    info: ToolInfo,
    confirmed: bool,
}

impl ListedTool {
    /// Returns what a call may do.
    fn effects(&self) -> Vec<&'static str> {
        let effects = self.info.effects;
        let all = [
            (effects.network, "network"),
            (effects.filesystem_write, "filesystem_write"),
            (effects.side_effects, "side_effects"),
            (effects.code_execution, "code_execution"),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
    }

    /// Returns the tokens of the definition in a request.
    fn tokens(&self) -> u64 {
        TokenCounter::new("gpt-4o").definition(&self.info.definition_for(Dialect::JsonSchema))
    }
}

impl ToJson for ListedTool {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.info.name).field("description", &self.info.description);
            w.field("effects", &self.effects()).field("confirmed", &self.confirmed);
            w.field("tokens", &self.tokens());
            w.key("schemas").object(|w| {
                for dialect in [
                    Dialect::OpenAiStrict,
                    Dialect::Anthropic,
                    Dialect::Gemini,
                    Dialect::LlamaCpp,
                    Dialect::JsonSchema,
                ] {
                    let definition = self.info.definition_for(dialect);
                    w.key(&dialect.to_string()).object(|w| {
                        w.field("strict", &definition.strict).field("schema", &definition.parameters);
                    });
                }
            });
        });
    }
}

fn call(args: &McpCallArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let mut settings = load_run_settings(Flags::default(), environment, console)?;
    person::offer(&mut settings, console);
    let Started { tools, notes } = start(&settings, &args.server)?;
    notes.iter().for_each(|note| console.note(note));
    let name = format!("{}__{}", args.server, args.tool);
    let tool = tools.iter().find(|tool| tool.info().name == name).ok_or_else(|| {
        let message = format!("`{}` has no tool `{}`", args.server, args.tool);
        ErrorBody::new(Code::InvalidReference, message).suggest("`cog mcp tools` lists the tools.")
    })?;
    let events = events(0)?;
    let limits = settings.tools.limits();
    let (content, is_success) = events.block_on(call_once(tool.as_ref(), &args.arguments, &limits));
    for part in &content {
        match part.as_text() {
            Some(text) => console.print(text)?,
            None => console.note(&format!("and media of {} bytes", part.content_len())),
        }
    }
    Ok(if is_success { Exit::Ok } else { Exit::Failed })
}

// Signing in to servers.

fn login(args: &McpLoginArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = load_run_settings(Flags::default(), environment, console)?;
    let server = server(&settings, &args.server)?;
    let events = events(0)?;
    let show = |address: &str| console.note(&format!("open this address in a browser: {address}"));
    let signed_in = events.block_on(server.login(show, pasted()));
    // A read of standard input that waits cannot be cancelled.
    events.shutdown_background();
    signed_in.map_err(error_body)?;
    console.note(&format!("signed in to `{}`", args.server));
    Ok(Exit::Ok)
}

/// Returns the address that a person pastes; never without a terminal.
async fn pasted() -> String {
    let read = || -> Option<String> {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).ok().filter(|_| !line.trim().is_empty())?;
        Some(line)
    };
    let line = match std::io::stdin().is_terminal() {
        true => tokio::task::spawn_blocking(read).await.ok().flatten(),
        false => None,
    };
    match line {
        Some(line) => line,
        None => std::future::pending().await,
    }
}

fn logout(args: &McpLogoutArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = load_run_settings(Flags::default(), environment, console)?;
    let server = server(&settings, &args.server)?;
    let SignedOut { had_tokens, revocation } = events(0)?.block_on(server.logout()).map_err(error_body)?;
    let name = &args.server;
    match &revocation {
        Revocation::Failed(why) => {
            console.caution(&format!(
                "the tokens of `{name}` were not revoked, and stay valid until they expire: {why}"
            ));
        }
        Revocation::NotOffered => console.note(&format!(
            "the tokens of `{name}` stay valid until they expire: its authorization server cannot revoke them"
        )),
        Revocation::Done | Revocation::Nothing => {}
    }
    console.note(&match (had_tokens, revocation) {
        (true, Revocation::Done) => {
            format!("removed the tokens of `{name}` from this machine, and revoked them")
        }
        (true, _) => format!("removed the tokens of `{name}` from this machine"),
        (false, _) => format!("there are no tokens of `{name}`"),
    });
    Ok(Exit::Ok)
}

fn disconnected(reason: &str) -> ErrorBody {
    ErrorBody::new(Code::StreamInterrupted, format!("the connection to the MCP client ended: {reason}"))
        .suggest("Check the log of the client.")
}
