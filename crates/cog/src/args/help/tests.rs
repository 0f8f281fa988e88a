use std::collections::BTreeSet;

use clap::{Command, CommandFactory as _};

use super::{GROUPS, command};
use crate::args::Cli;

/// Commands that a build without a feature does not have.
const OPTIONAL: [&str; 2] = ["mcp", "worker"];

fn help(path: &[&str], flag: &str) -> String {
    let mut words = vec!["cog"];
    words.extend(path);
    words.push(flag);
    command().try_get_matches_from(words).unwrap_err().to_string()
}

#[test]
fn every_command_is_in_one_group_of_the_overview() {
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), distinct.len(), "a command is listed twice");

    let cog = Cli::command();
    let commands: BTreeSet<&str> =
        cog.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
    assert_eq!(commands.difference(&distinct).collect::<Vec<_>>(), Vec::<&&str>::new(), "in no group");
    let unknown = distinct.difference(&commands).filter(|name| !OPTIONAL.contains(name));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new(), "no such command");

    let overview = help(&[], "--help");
    for name in commands {
        assert!(overview.contains(&format!("\n  {name} ")), "{name}");
    }
    assert!(overview.contains("[alias: init]"));
}

#[test]
fn global_options_take_one_line_below_the_overview() {
    for path in [&["run"][..], &["media", "probe"], &["logs"], &["batch", "status"]] {
        for flag in ["-h", "--help"] {
            let page = help(path, flag);
            assert!(
                page.contains("\n\nGlobal options: -v, --log-format, --color (see `cog help`)\n"),
                "{page}"
            );
            assert!(!page.contains("--verbose") && !page.contains("--color <WHEN>"), "{page}");
        }
    }
    let overview = help(&[], "--help");
    for option in ["-v, --verbose", "--log-format <FORMAT>", "--color <WHEN>"] {
        assert!(overview.contains(option), "{option}");
    }
}

#[test]
fn global_options_are_accepted_before_and_after_a_command() {
    for words in [
        ["cog", "-v", "--color", "never", "media", "probe", "a.png"],
        ["cog", "media", "-v", "--color", "never", "probe", "a.png"],
        ["cog", "media", "probe", "a.png", "-v", "--color", "never"],
    ] {
        let matches = command().try_get_matches_from(words).unwrap();
        assert_eq!(matches.get_count("verbose"), 1, "{words:?}");
        assert_eq!(matches.get_one("color"), Some(&crate::args::ColorChoice::Never), "{words:?}");
    }
}
