use std::collections::BTreeSet;

use clap::{Args, Command, CommandFactory as _};

use super::{GROUPS, command};
use crate::args::{
    Cli, GenerationArgs, HandoffToArgs, MediaFlags, ModelArgs, OutputArgs, ToolArgs,
    batch::{LimitArgs, ResultArgs, RowArgs, ViaArgs},
    run::{CheckArgs, StreamArgs},
    serve::ServerFlags,
};

/// Commands that a build without a feature does not have.
const OPTIONAL: [&str; 2] = ["mcp", "worker"];

/// Options whose own `help_heading` names the group of a struct, with their commands.
const PLACED: [(&str, &str, &str); 6] = [
    ("run", "continue_last", "Continuation"),
    ("run", "trace", "Output"),
    ("run", "media_dir", "Output"),
    ("render", "prefix", "Output"),
    ("batch", "output", "Output"),
    ("batch", "nats", "Batch jobs"),
];

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

/// Adds the heading and the name of each option of a struct that has its own heading.
fn add<T: Args>(own: &mut BTreeSet<(String, String)>) {
    for arg in T::augment_args(Command::new("group")).get_arguments() {
        let heading = arg.get_help_heading().expect("a struct with a heading");
        own.insert((heading.to_owned(), arg.get_id().to_string()));
    }
}

/// A derived struct passes its heading on to every option that is declared after it.
#[test]
fn options_stand_under_the_heading_of_their_struct() {
    let mut own = BTreeSet::new();
    add::<MediaFlags>(&mut own);
    add::<OutputArgs>(&mut own);
    add::<StreamArgs>(&mut own);
    add::<CheckArgs>(&mut own);
    add::<ToolArgs>(&mut own);
    add::<HandoffToArgs>(&mut own);
    add::<ModelArgs>(&mut own);
    add::<GenerationArgs>(&mut own);
    add::<ViaArgs>(&mut own);
    add::<RowArgs>(&mut own);
    add::<LimitArgs>(&mut own);
    add::<ResultArgs>(&mut own);
    add::<ServerFlags>(&mut own);
    let headings: BTreeSet<String> = own.iter().map(|(heading, _)| heading.clone()).collect();

    let mut astray = Vec::new();
    visit(&Cli::command(), "cog", &mut |path, arg| {
        let Some(heading) = arg.get_help_heading().filter(|heading| headings.contains(*heading)) else {
            return;
        };
        let id = arg.get_id().to_string();
        let is_placed = PLACED.iter().any(|(command, placed, under)| {
            path == format!("cog {command}") && *placed == id && *under == heading
        });
        if !is_placed && !own.contains(&(heading.to_owned(), id.clone())) {
            astray.push(format!("{path}: {id} under {heading}"));
        }
    });
    assert_eq!(astray, Vec::<String>::new());
}

fn visit(command: &Command, path: &str, found: &mut impl FnMut(&str, &clap::Arg)) {
    for arg in command.get_arguments() {
        found(path, arg);
    }
    for below in command.get_subcommands() {
        visit(below, &format!("{path} {}", below.get_name()), found);
    }
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
