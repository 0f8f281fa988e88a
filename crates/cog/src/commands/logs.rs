//! `cog logs`: lists, shows and repeats logged runs. `cog cache`: shows or clears the cache of answers.

pub(super) mod label;

use std::{io, path::Path, time::Duration};

use cog_host::{
    run_log::{Contents, Entries, Entry, Label, Labels, LoggedCall},
    settings::{Environment, Flags, Settings, show_duration},
};
use cog_json::{ToJson, Value, Writer};
use cog_run::{AnswerCache, CacheStats};
use cog_spec::ErrorBody;

use crate::{
    args::{
        CacheArgs, CacheClearArgs, CacheCommand, CacheStatsArgs, HandoffToArgs, InputArgs, LabelFilter,
        LogsArgs, LogsCommand, LogsListArgs, LogsReplayArgs, LogsShowArgs, MediaFlags, RequestArgs, RunArgs,
        ToolArgs,
    },
    commands::run::{self, Start},
    error::{CliError, Exit},
    output::{Console, Layout, Table, printable, wrap},
};

/// Lists the runs, or runs the subcommand.
pub(crate) fn logs(args: LogsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        None => list(&args.list, environment, console),
        Some(LogsCommand::Show(args)) => show(&args, environment, console),
        Some(LogsCommand::Replay(args)) => replay(*args, environment, console),
        Some(LogsCommand::Label(args)) => label::label(&args, environment, console),
        Some(LogsCommand::Clear(args)) => label::clear(&args, environment, console),
    }
}

/// Lists the newest runs.
fn list(args: &LogsListArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let listed = newest(&settings, args.module.as_deref(), args.label, args.limit as usize)?;
    if args.format.is_json() {
        console.print_json(&listed)?;
        return Ok(Exit::Ok);
    }
    if listed.is_empty() {
        console.note(if args.label.is_some() { "no run has this label" } else { "the log contains no runs" });
        return Ok(Exit::Ok);
    }
    let mut heading = vec!["id", "time (utc)", "module", "result", "took", "tokens", "cost", "model"];
    // Most people never label a run; their table stays narrow.
    let has_labels = listed.iter().any(|entry| !entry.labels.is_empty());
    if has_labels {
        heading.insert(4, "label");
    }
    let mut table = Table::new(heading);
    for entry in &listed {
        let mut row = cells(entry).to_vec();
        if has_labels {
            row.insert(4, or_dash(entry.labels.last().map(|last| last.label.as_str().to_owned())));
        }
        table.row(row);
    }
    console.print(&table.render(console.out().palette, console.out_columns()))?;
    Ok(Exit::Ok)
}

/// Returns the newest runs with their labels: of one module or of all, with a last label or with any.
pub(super) fn newest(
    settings: &Settings,
    module: Option<&str>,
    label: Option<LabelFilter>,
    limit: usize,
) -> Result<Vec<Entry>, ErrorBody> {
    let entries = Entries::read(settings)?;
    let labels = Labels::new(settings)?;
    let of_module = entries.newest_first().filter(|entry| module.is_none_or(|name| entry.module == name));
    match label {
        None => Entry::with_labels(of_module.take(limit).collect(), &labels),
        Some(filter) => {
            let last = labels.last()?;
            let wanted = of_module.filter(|entry| filter.accepts(last.get(&entry.id).copied()));
            Entry::with_labels(wanted.take(limit).collect(), &labels)
        }
    }
}

fn cells(entry: &Entry) -> [String; 8] {
    let usage = entry.usage.as_ref();
    [
        entry.id.clone(),
        entry.time.replace('T', " ").trim_end_matches('Z').to_owned(),
        entry.module.clone(),
        entry.result().to_owned(),
        or_dash(entry.time_ms.map(|time| format!("{time} ms"))),
        or_dash(usage.map(|usage| format!("{}+{}", usage.input_tokens, usage.output_tokens))),
        or_dash(usage.and_then(|usage| usage.cost).map(|cost| cost.to_string())),
        or_dash(entry.model.clone()),
    ]
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Shows one run.
fn show(args: &LogsShowArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let entry = Entries::read(&settings)?.find(args.id.as_deref())?;
    let mut labels = Labels::new(&settings)?.of_runs(|run| run == entry.id)?;
    let entry = Entry { labels: labels.remove(&entry.id).unwrap_or_default(), ..entry };
    if args.format.is_json() {
        console.print_json(&entry)?;
        return Ok(Exit::Ok);
    }
    console.print(&describe(&entry, console))?;
    if entry.contents.is_none() {
        console.note("the input and the answer are not stored; logs.contents turns it on for later runs");
    }
    Ok(Exit::Ok)
}

fn describe(entry: &Entry, console: &Console) -> String {
    let palette = console.out().palette;
    let head = format!("{} {}", palette.bold(&entry.module), palette.dim(&entry.module_version));
    let facts = facts(entry).into_iter();
    let facts = facts.map(|(name, value)| format!("  {}  {value}\n", palette.dim(format_args!("{name:<9}"))));
    let mut text = format!("{head}\n\n{}", facts.collect::<String>());
    let layout = Layout { palette, width: console.width() };
    if !entry.labels.is_empty() {
        text += &format!("\n{}\n", palette.bold("Labels"));
        let lines = entry.labels.iter().map(describe_label);
        text.extend(lines.map(|line| format!("  {line}\n")));
    }
    if let Some(data) = entry.labels.last().and_then(|last| last.data.as_ref()) {
        text += &format!("\n{}\n{}", palette.bold("Corrected answer"), layout.tree(data.node(), 2));
    }
    if !entry.calls.is_empty() {
        text += &format!("\n{}\n", palette.bold("Tool calls"));
        let lines = entry.calls.iter().map(describe_call);
        text.extend(lines.map(|line| format!("  {line}\n")));
    }
    if let Some(args) = entry.contents.as_ref().and_then(|contents| contents.args.as_ref()) {
        let lines = wrap(args, layout.width.saturating_sub(2));
        text += &format!("\n{}\n  {}\n", palette.bold("Text"), lines.join("\n  "));
    }
    for (title, value) in entry.contents.as_ref().map(sections).unwrap_or_default() {
        text += &format!("\n{}\n{}", palette.bold(title), layout.tree(value.node(), 2));
    }
    text
}

/// Returns the line of a label: when, what, by which client, and why.
fn describe_label(label: &Label) -> String {
    let Label { time, label, note, client, .. } = label;
    let client = client.as_ref().map(|client| format!("  by {client}")).unwrap_or_default();
    let note = note.as_ref().map(|note| format!("  {}", printable(note))).unwrap_or_default();
    format!("{time}  {}{client}{note}", label.as_str())
}

/// Returns the line of a call: when, which tool, the result, the decision, and the arguments or their hash.
fn describe_call(call: &LoggedCall) -> String {
    let LoggedCall { time, tool, result, decision, arguments_sha256, arguments, .. } = call;
    let decision = decision.as_ref().map(|decision| format!(" ({decision})")).unwrap_or_default();
    let hash = || format!("arguments sha256:{arguments_sha256}");
    let arguments = arguments.clone().unwrap_or_else(hash);
    format!("{time}  {tool}  {result}{decision}  {arguments}")
}

fn facts(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut facts =
        vec![("id", entry.id.clone()), ("time", entry.time.clone()), ("result", entry.result().to_owned())];
    facts.extend(entry.directory.clone().map(|directory| ("directory", directory)));
    facts.extend(entry.client.clone().map(|client| ("client", client)));
    facts.extend(entry.session_id.clone().map(|session| ("session", session)));
    facts.extend(entry.trace_id.clone().map(|trace| ("trace", trace)));
    facts.extend(entry.model.clone().map(|model| ("model", model)));
    facts.extend(entry.time_ms.map(|time| ("duration", format!("{time} ms"))));
    if let Some(usage) = &entry.usage {
        facts.push(("tokens", format!("{} input, {} output", usage.input_tokens, usage.output_tokens)));
        facts.extend(usage.cost.map(|cost| ("cost", cost.to_string())));
    }
    facts
}

/// Returns the values of the contents with their titles.
pub(super) fn sections(contents: &Contents) -> Vec<(&'static str, Value)> {
    let mut sections = Vec::new();
    sections.extend(contents.input.clone().map(|input| ("Input", input)));
    for (title, name) in [("Answer", "data"), ("Error", "error"), ("Partial answer", "partial_data")] {
        sections.extend(contents.envelope.get(name).map(|value| (title, value.to_value())));
    }
    sections
}

/// Runs the module of a logged run again.
fn replay(args: LogsReplayArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment.clone())?;
    let entry = Entries::read(&settings)?.find(args.id.as_deref())?;
    let contents = entry.stored_contents()?;
    let start = Start::Input(contents.run_input());
    run::run_with(&run_args(args, &entry, contents), start, environment, console)
}

/// Returns the arguments of a run that is equal to the logged one, except where the given ones differ.
fn run_args(mut args: LogsReplayArgs, entry: &Entry, contents: &Contents) -> RunArgs {
    args.model.select_earlier(entry);
    let input = InputArgs {
        module: Some(entry.target().to_owned()),
        input: None,
        args: contents.args.clone(),
        input_json: contents.input.as_ref().map(ToString::to_string),
        media: MediaFlags::default(),
    };
    RunArgs {
        request: RequestArgs { input, output: args.output, model: args.model, generation: args.generation },
        continue_last: false,
        stream: args.stream,
        check: args.check,
        tools: ToolArgs::default(),
        state_dir: None,
        handoff: HandoffToArgs::default(),
        cache: None,
        record: None,
        trace: None,
        media_dir: None,
        replay: None,
    }
}

/// Runs the subcommand.
pub(crate) fn cache(args: &CacheArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match &args.command {
        CacheCommand::Stats(args) => stats(args, environment, console),
        CacheCommand::Clear(args) => clear(args, environment, console),
    }
}

fn stats(args: &CacheStatsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let stats = open(args.directory.as_deref(), environment)?.stats();
    let stats = stats.map_err(|error| unusable("read", &error))?;
    if args.format.is_json() {
        console.print_json(&StatsJson(&stats))?;
        return Ok(Exit::Ok);
    }
    let oldest = stats.oldest.map(|age| format!(", the oldest {} old", show_duration(whole_seconds(age))));
    let oldest = oldest.unwrap_or_default();
    console.print(&format!("{}, {} bytes{oldest}\n", answers(stats.answers), stats.bytes))?;
    Ok(Exit::Ok)
}

fn clear(args: &CacheClearArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let cache = open(args.directory.as_deref(), environment)?;
    let removed = cache.clear().map_err(|error| unusable("clear", &error))?;
    console.print(&format!("removed {}\n", answers(removed)))?;
    Ok(Exit::Ok)
}

/// Returns the cache in a directory, otherwise the one of the settings.
fn open(directory: Option<&Path>, environment: Environment) -> Result<AnswerCache, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    settings.cache.cache(directory).ok_or_else(|| CliError::Usage {
        message: "no cache is configured".to_owned(),
        suggestion: Some("Name its directory, or set `cache.directory` (COG_CACHE_DIRECTORY).".to_owned()),
    })
}

fn unusable(verb: &str, error: &io::Error) -> CliError {
    CliError::Usage {
        message: format!("cannot {verb} the cache: {error}"),
        suggestion: Some("Check that it is a directory, and that you own it.".to_owned()),
    }
}

fn answers(count: usize) -> String {
    if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

struct StatsJson<'a>(&'a CacheStats);

/// Written by hand: the age is written in seconds.
impl ToJson for StatsJson<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let CacheStats { answers, bytes, oldest, .. } = self.0;
        w.object(|w| {
            w.field("answers", &(*answers as u64));
            w.field("bytes", bytes);
            w.optional("oldest_s", &oldest.map(|age| age.as_secs()));
        });
    }
}
