//! `cog logs show`: one run.

use cog_host::{
    run_log::{Contents, Entries, Entry},
    settings::{Environment, Flags, Settings},
};
use cog_json::Value;

use crate::{
    args::LogsShowArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Layout, wrap},
};

/// Shows one run.
pub(super) fn show(
    args: &LogsShowArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let entry = Entries::read(&settings)?.find(args.id.as_deref())?;
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
    if let Some(args) = entry.contents.as_ref().and_then(|contents| contents.args.as_ref()) {
        let lines = wrap(args, layout.width.saturating_sub(2));
        text += &format!("\n{}\n  {}\n", palette.bold("Text"), lines.join("\n  "));
    }
    for (title, value) in entry.contents.as_ref().map(sections).unwrap_or_default() {
        text += &format!("\n{}\n{}", palette.bold(title), layout.tree(value.node(), 2));
    }
    text
}

fn facts(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut facts =
        vec![("id", entry.id.clone()), ("time", entry.time.clone()), ("result", entry.result().to_owned())];
    facts.extend(entry.directory.clone().map(|directory| ("directory", directory)));
    facts.extend(entry.model.clone().map(|model| ("model", model)));
    facts.extend(entry.time_ms.map(|time| ("duration", format!("{time} ms"))));
    if let Some(usage) = &entry.usage {
        facts.push(("tokens", format!("{} input, {} output", usage.input_tokens, usage.output_tokens)));
        facts.extend(usage.cost.map(|cost| ("cost", cost.to_string())));
    }
    facts
}

/// Returns the values of the contents with their titles.
fn sections(contents: &Contents) -> Vec<(&'static str, Value)> {
    let input = contents.input.clone().map(|input| ("Input", input));
    let member = |title, name| contents.envelope.get(name).map(|value| (title, value.to_value()));
    let answer =
        [member("Answer", "data"), member("Error", "error"), member("Partial answer", "partial_data")];
    input.into_iter().chain(answer.into_iter().flatten()).collect()
}
