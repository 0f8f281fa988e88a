//! `cog logs`: lists the runs.

use cog_host::{
    run_log::{Entries, Entry},
    settings::{Environment, Flags, Settings},
};

use crate::{
    args::LogsListArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Table},
};

/// Lists the newest runs.
pub(super) fn list(
    args: &LogsListArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let entries = Entries::read(&settings)?;
    let is_listed = |entry: &Entry| args.module.as_ref().is_none_or(|name| entry.module == *name);
    let listed: Vec<_> = entries.newest_first().filter(is_listed).take(args.limit as usize).collect();
    if args.format.is_json() {
        console.print_json(&listed)?;
        return Ok(Exit::Ok);
    }
    if listed.is_empty() {
        console.note("the log contains no runs");
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(["id", "time (utc)", "module", "result", "took", "tokens", "cost", "model"]);
    listed.iter().for_each(|entry| table.row(cells(entry)));
    console.print(&table.render(console.out().palette, console.out_columns()))?;
    Ok(Exit::Ok)
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
