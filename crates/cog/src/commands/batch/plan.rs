//! `cog batch --plan`: what a batch will need, before anything is sent.

use cog_batch::{
    Batch, JournalPaths, Resume, Rows, Stop,
    plan::{EarlierRuns, Plan, PlanLimits, Strategy, StrategyName},
};

use super::{
    Invocation,
    files::{check_module, describe},
    output,
};
use crate::{
    args::PlanFormat,
    commands::{emit, runtime},
    error::{CliError, Exit},
    output::{Console, Table},
};

/// Prints what the batch will need: as text on a terminal, otherwise as JSON.
pub(super) fn plan(
    batch: &Batch,
    rows: Rows,
    format: PlanFormat,
    invocation: Invocation<'_>,
) -> Result<Exit, CliError> {
    let Invocation { args, settings, console } = invocation;
    check_module("--plan", &batch.module)?;
    let earlier = match emit::is_stdout(&args.output) {
        true => EarlierRuns::default(),
        false => {
            let resume = if args.results.allow_changes { Resume::Changed } else { Resume::Same };
            EarlierRuns::read(&JournalPaths::beside(&args.output), &describe(args, batch, settings)?, resume)?
        }
    };
    let generation = args.generation.generation().or(&settings.generation.preferred());
    let limits = PlanLimits {
        concurrency: args.concurrency(),
        rpm: args.limits.rpm,
        tpm: args.limits.tpm,
        max_tokens: generation.max_tokens,
        now: output::now(),
    };
    let plan = runtime::block_on(batch.plan(rows, &earlier, &limits))?;
    let plan = plan.map_err(Stop::from)?;
    let is_json = match format {
        PlanFormat::Auto => !console.out().is_terminal,
        PlanFormat::Human => false,
        PlanFormat::Json => true,
    };
    match is_json {
        true => console.print_json(&plan)?,
        false => console.print(&text(&plan, console))?,
    }
    Ok(Exit::Ok)
}

/// Formats the plan: facts, the ways as a table, and what is assumed.
fn text(plan: &Plan, console: &Console) -> String {
    let palette = console.out().palette;
    let mut text = String::new();
    for (name, value) in
        [("batch", batch(plan)), ("rows", rows(plan)), ("input", input(plan)), ("output", output(plan))]
    {
        text += &format!("{}  {value}\n", palette.dim(format_args!("{name:6}")));
    }
    let mut table = Table::new(["way", "cost", "time", "limited by"]);
    for way in &plan.ways {
        table.row([name(way.name).to_owned(), cost(way), time(way), limit(way).to_owned()]);
    }
    text += &format!("\n{}\n", table.render(palette, console.out_columns()));
    text + &format!("{}\n{}\n", assumed(plan), cheapest(plan))
}

fn batch(plan: &Plan) -> String {
    match (&plan.provider, &plan.model) {
        (Some(provider), Some(model)) => format!("{} with {provider}/{model}", plan.module),
        _ => format!("{}, offline: name a provider with --provider to see prices", plan.module),
    }
}

fn rows(plan: &Plan) -> String {
    let rows = plan.rows;
    let mut text = format!("{} to run of {}", rows.run, rows.read);
    for (count, name) in [
        (rows.earlier, "with an earlier result"),
        (rows.excluded, "excluded"),
        (rows.duplicates, "duplicates"),
        (rows.unreadable, "that cannot be read"),
    ] {
        if count > 0 {
            text += &format!(", {count} {name}");
        }
    }
    text
}

fn input(plan: &Plan) -> String {
    let input = &plan.input;
    let exact = if input.exact { "" } else { " (not the model's)" };
    format!(
        "{} tokens, {:.1} a row, of which {} are the same in each; counted in {} rows with {}{exact}",
        input.total, input.per_row, input.prefix, input.counted_rows, input.tokenizer
    )
}

fn output(plan: &Plan) -> String {
    let output = &plan.output;
    let basis = match output.basis {
        "results" => format!("the average of {} results", output.results),
        "golden" => "as long as the golden answers of the module, without reasoning".to_owned(),
        "sample" => "as long as a sample of the schema, without reasoning".to_owned(),
        _ => "assumed".to_owned(),
    };
    format!("{} tokens, {:.1} a row; {basis}", output.total, output.per_row)
}

fn name(way: StrategyName) -> &'static str {
    match way {
        StrategyName::LiveCached => "live, cached",
        StrategyName::Batch => "batch jobs",
        _ => "live",
    }
}

fn cost(way: &Strategy) -> String {
    way.cost_usd.map_or("unknown".to_owned(), dollars)
}

fn dollars(cost: f64) -> String {
    if cost < 1.0 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

fn time(way: &Strategy) -> String {
    let time = std::time::Duration::try_from_secs_f64(way.seconds).unwrap_or(std::time::Duration::MAX);
    let bound = if way.name == StrategyName::Batch { "at most " } else { "" };
    format!("{bound}{}", output::duration(time))
}

fn limit(way: &Strategy) -> &'static str {
    match way.limited_by {
        "rpm" => "--rpm",
        "tpm" => "--tpm",
        "vendor" => "the vendor",
        _ => "--concurrency",
    }
}

/// Returns what the time is calculated from.
fn assumed(plan: &Plan) -> String {
    let time = plan.time;
    let slots = if time.assumes_concurrency { " (assumed)" } else { "" };
    let measured = if time.assumes_seconds { " (assumed)" } else { " (the average of earlier results)" };
    format!(
        "The time is for {} rows at once{slots} and {:.1} s for each{measured}. Rows that run again cost more.",
        time.concurrency, time.seconds_per_row,
    )
}

fn cheapest(plan: &Plan) -> String {
    let way = plan.cheapest.and_then(|name| plan.ways.iter().find(|way| way.name == name));
    let Some(way) = way else { return "The price of the model is unknown.".to_owned() };
    let how = match (way.name, &plan.provider) {
        (StrategyName::Batch, Some(provider)) => format!(", with --via {provider}"),
        (StrategyName::LiveCached, _) => ", which caches the beginning without an option".to_owned(),
        _ => String::new(),
    };
    format!("Cheapest: {}, {}{how}.", name(way.name), cost(way))
}
