//! Arguments of `serve`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::Error};
use cog_host::settings::{SERVER_SETTINGS, ServeSettings, ServerSetting};

use super::ModelArgs;

/// `cog serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each server option has an environment variable, COG_SERVE_NAME, and a key under [server] in \
~/.config/cog/config.toml. ./cog.toml can set limits. After Ctrl-C or SIGTERM, open streams may finish within \
--shutdown-timeout.

Examples:
  cog serve
  cog serve ./my-module
  cog serve --port 0 --provider openai,anthropic
  cog serve --state-dir ~/.local/state/cog --max-streams-per-client 4
  curl localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -d '{\"input\": {\"code\": \"eval(input())\"}}'
  curl -N localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -H 'Accept: text/event-stream' -d '{\"input\": {\"code\": \"eval(input())\"}}'")]
pub(crate) struct ServeArgs {
    /// Directories of additional modules, or directories that contain modules
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: ServerFlags,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The flags of the server's settings, without dashes, with their values.
#[derive(Debug, Default)]
pub(crate) struct ServerFlags(Vec<(&'static str, String)>);

impl ServerFlags {
    /// Returns the value of a flag, if it was given.
    pub(crate) fn get(&self, flag: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| *name == flag).map(|(_, value)| value.clone())
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value =
            |setting: &ServerSetting| Some((setting.flag, matches.get_one::<String>(setting.flag)?.clone()));
        Ok(Self(SERVER_SETTINGS.iter().filter_map(value).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        let mut defaults = ServeSettings::default();
        command.args(SERVER_SETTINGS.iter().map(|setting| arg(setting, &mut defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(setting: &ServerSetting, defaults: &mut ServeSettings) -> Arg {
    let default = setting.show(defaults).to_string();
    let help = match default.as_str() {
        "-" | "false" => setting.help.to_owned(),
        default => format!("{} [default: {default}]", setting.help),
    };
    let arg =
        Arg::new(setting.flag).long(setting.flag).value_name(setting.value).help(help).help_heading("Server");
    if setting.is_switch() {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.allow_hyphen_values(true)
    }
}
