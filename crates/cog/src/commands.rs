//! The commands, one file per command or for commands of one subject.

mod about;
mod batch;
mod calibrate;
mod conformance;
mod diff;
mod docs;
mod doctor;
mod emit;
mod export;
mod handoff;
mod info;
mod input;
mod insights;
mod logs;
#[cfg(feature = "lsp")]
mod lsp;
#[cfg(feature = "mcp")]
mod mcp;
mod media;
mod messages;
#[cfg(feature = "nats")]
mod nats;
mod new;
mod open;
mod optimize;
#[cfg(feature = "mcp")]
mod person;
mod portability;
mod render;
mod review;
mod revision;
mod run;
mod runtime;
mod serve;
mod stream;
mod test;
mod trace;
mod validate;
mod verify;
mod workbench;

use cog_host::settings::Environment;

use crate::{
    args::{Cli, Command},
    error::{CliError, Exit},
    output::Console,
};

pub(crate) use self::about::complete;

/// Runs the command of the arguments.
pub(crate) fn dispatch(cli: Cli, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match cli.command {
        Command::Run(args) => run::run(*args, environment, console),
        Command::Batch(args) => batch::batch(&args, environment, console),
        Command::Render(args) => render::render(&args, environment, console),
        Command::Serve(args) => serve::serve(&args, environment, console),
        Command::Open(args) => open::open(&args, environment, console),
        Command::Healthcheck(args) => serve::healthcheck(&args, environment),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::mcp(&args, environment, console),
        #[cfg(feature = "nats")]
        Command::Worker(args) => nats::worker(&args, environment, console),
        #[cfg(feature = "nats")]
        Command::Jobs(args) => nats::jobs(&args, environment, console),
        Command::Test(args) => test::test(&args, environment, console),
        Command::Calibrate(args) => calibrate::calibrate(&args, environment, console),
        Command::Logs(args) => logs::logs(args, environment, console),
        Command::Review(args) => review::review(&args, environment, console),
        Command::Trace(args) => trace::trace(&args, console),
        Command::Cache(args) => logs::cache(&args, environment, console),
        Command::Trust(args) => about::trust(&args, environment, console),
        #[cfg(feature = "lsp")]
        Command::Lsp(_) => lsp::lsp(environment),
        Command::Doctor(args) => doctor::doctor(&args, environment, console),
        Command::Config(args) => about::config(&args, environment, console),
        Command::Capabilities(args) => about::capabilities(&args, console),
        Command::Conformance(args) => conformance::conformance(&args, console),
        Command::Schema(args) => about::schema(&args, console),
        Command::Errors(args) => about::errors(&args, console),
        Command::Docs(args) => docs::docs(&args, &environment, console),
        Command::Completions(args) => about::completions(&args, console),
        Command::Man(args) => about::man(&args, console),
        Command::Media(args) => media::media(args, environment, console),
        Command::Messages(args) => messages::messages(&args, environment, console),
        Command::Verify(args) => verify::verify(&args, environment, console),
        Command::Handoff(args) => handoff::handoff(args, environment, console),
        Command::Cite(args) => verify::cite(args, environment, console),
        Command::List(args) => info::list(&args, environment, console),
        Command::Info(args) => info::info(&args, environment, console),
        Command::Portability(args) => portability::portability(&args, environment, console),
        Command::Validate(args) => validate::validate(&args, environment, console),
        Command::Diff(args) => diff::diff(&args, environment, console),
        Command::Insights(args) => insights::insights(&args, environment, console),
        Command::Optimize(args) => optimize::optimize(&args, environment, console),
        Command::Graph(args) => info::graph(&args, environment, console),
        Command::Types(args) => export::types(&args, environment, console),
        Command::Export(args) => export::export(&args, environment, console),
        Command::Import(args) => export::import(&args, environment, console),
        Command::New(args) => new::new(&args, environment, console),
        Command::Migrate(args) => new::migrate(&args, environment, console),
    }
}
