//! `serve`.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::Error};

use super::ModelArgs;
use crate::settings::{KNOBS, Serving};

/// `cog serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every option can also be set as COG_SERVE_NAME or under [server] in ~/.config/cog/config.toml (limits also in \
./cog.toml). Ctrl-C and SIGTERM let streams end, for as long as --drain says.

Examples:
  cog serve
  cog serve --port 0 --provider openai,anthropic
  cog serve --state-dir ~/.local/state/cog --max-streams-per-client 4
  curl localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -d '{\"input\": {\"code\": \"eval(input())\"}}'
  curl -N localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -H 'Accept: text/event-stream' -d '{\"input\": {\"code\": \"eval(input())\"}}'")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) knobs: ServerKnobs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// What was typed of the server's settings: flag without its dashes, and value.
#[derive(Debug, Default)]
pub(crate) struct ServerKnobs(Vec<(&'static str, String)>);

impl ServerKnobs {
    /// What was typed for this flag.
    pub(crate) fn get(&self, flag: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| *name == flag).map(|(_, value)| value.clone())
    }
}

impl FromArgMatches for ServerKnobs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed =
            |knob: &crate::settings::Knob| Some((knob.flag, matches.get_one::<String>(knob.flag)?.clone()));
        Ok(Self(KNOBS.iter().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ServerKnobs {
    fn augment_args(command: Command) -> Command {
        let mut defaults = Serving::default();
        let args = KNOBS.iter().map(|knob| {
            let default = knob.show(&mut defaults).to_string();
            let help = match default.as_str() {
                "-" | "false" => knob.help.to_owned(),
                default => format!("{} [default: {default}]", knob.help),
            };
            let arg =
                Arg::new(knob.flag).long(knob.flag).value_name(knob.value).help(help).help_heading("Server");
            if knob.is_switch() {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true")
            } else {
                arg.allow_hyphen_values(true)
            }
        });
        command.args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
