//! The help pages: the overview lists the commands in groups and explains the global options, which take one line on
//! every other page.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// The commands by what a person wants to do, in the order of the overview.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Run modules",
        &["run", "batch", "render", "list", "info", "media", "messages", "logs", "review", "trace"],
    ),
    ("Write modules", &["new", "open", "import", "migrate", "graph", "lsp"]),
    (
        "Check",
        &[
            "validate",
            "diff",
            "test",
            "calibrate",
            "insights",
            "optimize",
            "portability",
            "verify",
            "cite",
            "conformance",
        ],
    ),
    ("Share", &["export", "types", "handoff"]),
    (
        "Operate",
        &[
            "serve",
            "healthcheck",
            "mcp",
            "worker",
            "jobs",
            "trust",
            "doctor",
            "config",
            "cache",
            "capabilities",
            "schema",
            "errors",
            "docs",
            "completions",
            "man",
        ],
    ),
];

/// Returns the command line with its help pages.
///
/// Completion and manual pages take `Cli::command()` instead: they offer the global options of every command.
pub(crate) fn command() -> Command {
    let cog = Cli::command();
    let globals: Vec<Arg> = cog.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let overview = overview(&cog);
    let page = page(&cog, &globals);
    let hidden: Vec<Arg> = globals.into_iter().map(|arg| arg.hide(true)).collect();
    cog.help_template(overview).mut_subcommands(|command| with_page(command, &page, &hidden))
}

/// Clap passes a global option on to the commands below, but not to a command that has an option of that name: these
/// are the same options, hidden.
fn with_page(command: Command, page: &str, hidden: &[Arg]) -> Command {
    let command = command.args(hidden).help_template(page.to_owned());
    command.mut_subcommands(|command| with_page(command, page, hidden))
}

/// Clap can list commands under one heading only.
fn overview(cog: &Command) -> String {
    let header = cog.get_styles().get_header();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        let _ = write!(template, "\n{header}{heading}:{header:#}\n");
        names.iter().filter_map(|name| cog.find_subcommand(name)).for_each(|command| {
            template.push_str(&listed(command, cog));
        });
    }
    let _ = write!(template, "\n{header}Global options:{header:#}\n{{options}}{{after-help}}");
    template
}

/// Returns the line of a command in the overview.
fn listed(command: &Command, cog: &Command) -> String {
    let literal = cog.get_styles().get_literal();
    let width = cog.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let name = command.get_name();
    let padding = width.saturating_sub(name.len());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases = command.get_visible_aliases().map(|alias| format!(" [alias: {alias}]")).collect::<String>();
    format!("  {literal}{name}{literal:#}{:padding$}  {about}{aliases}\n", "")
}

/// The template of every page below the overview.
fn page(cog: &Command, globals: &[Arg]) -> String {
    let header = cog.get_styles().get_header();
    let names = globals.iter().filter_map(|arg| match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => Some(format!("-{short}")),
        (None, long) => long.map(|long| format!("--{long}")),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}\n\n\
         {header}Global options:{header:#} {names} (see `cog help`){{after-help}}"
    )
}
