//! `cog batch`: runs a module for each row of an input.

mod files;
#[cfg(feature = "nats")]
mod nats;
mod output;
mod started;
mod via;

use std::{io::ErrorKind, sync::Arc};

use cog_batch::{
    AbsentMember, Batch, Format, JournalPaths, Pace, Resume, Rows, SinkError, Source, Stop, Summary,
    plan::{EarlierRuns, Plan, PlanLimits, Strategy, StrategyName},
};
use cog_flow::Condition;
use cog_host::{
    Host, Hosted, NamedModule, Use,
    providers::Selected,
    settings::{Environment, Flags, Settings, Source as SettingSource},
};
use cog_module::Choice;
use cog_run::{Providers, RunContext, RunOptions, Runtime};
use cog_spec::{EvidenceRequest, Usage};
use serde::Serialize;

use self::{
    files::{check_module, describe},
    output::Output,
    via::{Mode, ReadyBatch},
};
use super::{emit, runtime};
use crate::{
    args::{BatchArgs, BatchCommand, PlanFormat},
    commands::runtime::{close_telemetry, load_run_settings, note_telemetry},
    error::{CliError, Exit},
    output::{Console, Table},
};

/// The summary of `--summary`: what the batch was, and what it did.
#[derive(Serialize)]
struct SummaryFile<'a> {
    #[serde(flatten)]
    about: &'a About,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// What a batch is.
#[derive(Serialize)]
struct About {
    /// The name and the version of the module.
    module: String,
    /// The providers that are called, and their models.
    model: String,
    input: String,
    output: String,
    /// The time of the start, in UTC.
    started_at: String,
}

impl About {
    fn new(args: &BatchArgs, batch: &Batch) -> Self {
        let manifest = &batch.module.manifest;
        Self {
            module: format!("{} {}", manifest.name, manifest.version),
            model: files::model(args, batch),
            input: args.input.display().to_string(),
            output: args.output.display().to_string(),
            started_at: humantime::format_rfc3339_seconds(output::now()).to_string(),
        }
    }
}

/// What a batch was started with.
#[derive(Clone, Copy)]
struct Invocation<'a> {
    args: &'a BatchArgs,
    settings: &'a Settings,
    console: &'a Console,
}

/// Runs the module for each row, or a command about the jobs of a batch.
pub(crate) fn batch(
    command: &BatchCommand,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match command {
        BatchCommand::Run(args) => run(args, Mode::Complete, environment, console),
        BatchCommand::Jobs(command) => started::command(command, environment, console),
    }
}

fn run(args: &BatchArgs, mode: Mode, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    // What can be refused without settings, files or a provider is refused first: a batch may cost money from here on.
    emit::check(args.results.summary.as_deref())?;
    emit::check(Some(&args.output))?;
    files::output_format(args)?;
    files::check(args)?;
    let flags = Flags { strict: args.check.strict.then_some(true), ..args.model.flags() };
    let settings = load_run_settings(flags, environment, console)?;
    note_telemetry(&settings, console);
    #[cfg(feature = "nats")]
    nats::check(args)?;
    let source = source(args)?;
    let filter = args.rows.filter.as_deref().map(condition).transpose()?;
    let via = via::provider(args, &settings)?;
    let providers = match (&via, args.nats()) {
        (Some(provider), _) => Some(via::selected(provider)),
        // A plan needs the prices of the model, and so the provider.
        (None, Some(_)) if !(args.plan.is_some() && names_model(args)) => Some(workers()),
        (None, _) => None,
    };
    let pace = Pace::new(args.concurrency(), args.limits.rpm, args.limits.tpm);
    let used = match args.nats() {
        Some(_) => Use::Jobs,
        None => Use::Batch(NamedModule { name: &args.module, choice: Choice::User }),
    };
    let host = Host {
        providers,
        cache_dir: args.cache.as_deref(),
        events: Some(Arc::new(pace.clone())),
        ..Host::new(&settings)
    };
    let Hosted { runtime, note, notes, .. } = host.runtime(used)?;
    notes.iter().for_each(|sentence| console.note(sentence));
    let module = runtime::load(&runtime, &args.module, &settings, console)?;
    if let Some(warning) = module.trust.warning(&module.manifest) {
        console.note(&warning);
    }
    check_prices(&runtime, args.limits.max_cost)?;
    // The first row runs alone, so that the others find the beginning of the request in the provider's cache.
    let warms_cache = via.is_none() && has_prompt_cache(&runtime);
    let options = options(args, &settings);
    if via.is_some() {
        check_evidence(options.evidence.as_ref().unwrap_or(&module.manifest.evidence.request))?;
    }
    let mut context = RunContext::default();
    context.parent_span = settings.parent_span();
    let batch = Batch {
        runtime,
        module,
        options,
        context,
        pace,
        filter,
        sample: args.rows.sample,
        max_cost: args.limits.max_cost,
        max_failures: args.limits.max_failures,
        warms_cache,
        retries_failed: args.results.retry_failed,
        dedupes: args.rows.dedupe,
        allows_changes: args.results.allow_changes,
        runner: None,
        via,
    };
    let about = About::new(args, &batch);
    let mut rows = source.open(&batch.module.contract).map_err(|error| unreadable(&error))?;
    for member in runtime::block_on(rows.absent_members())? {
        console.caution(&describe_absent(&member));
    }
    let invocation = Invocation { args, settings: &settings, console };
    if let Some(format) = args.plan {
        return plan(&batch, rows, format, invocation);
    }
    #[cfg(feature = "nats")]
    if let Some(url) = args.nats() {
        console.note(&note);
        let summary = nats::run(url, batch, rows, invocation)?;
        return close(summary, &about, args, console);
    }
    let output = Output::open(args, &batch, &settings)?;
    console.note(&note);
    if let Some(provider) = &batch.via {
        drop(rows);
        let ready = ReadyBatch { batch: &batch, output, source: &source, about: &about };
        return via::run(provider, ready, mode, invocation);
    }
    let summary = runtime::block_on(output.run(&batch, rows, args, console))??;
    close_telemetry(&settings, console);
    close(summary, &about, args, console)
}

/// Whether the command names the provider or the model, which a plan with `--nats` then has the prices of.
fn names_model(args: &BatchArgs) -> bool {
    !args.model.provider.is_empty() || args.model.model.is_some()
}

/// Returns no providers: workers call theirs.
fn workers() -> Selected {
    Selected::new(Providers::offline(), "adding the rows as jobs, which workers run")
}

/// Reports what the batch did, and returns the exit code.
fn close(summary: Summary, about: &About, args: &BatchArgs, console: &Console) -> Result<Exit, CliError> {
    output::print_summary(&summary, console);
    if let Some(path) = &args.results.summary {
        let summary = SummaryFile { about, summary: &summary };
        emit::file(path, &cog_json::ToJson::to_json_pretty(&summary), console)?;
    }
    let failed = summary.rows.failed + summary.rows.earlier_failed;
    note_rows(&summary, args, console);
    match summary.stopped {
        None if failed == 0 => Ok(Exit::Ok),
        None => {
            if !emit::is_stdout(&args.output) {
                console.note(&what_runs_again(&summary));
            }
            Ok(Exit::Failed)
        }
        Some(Stop::Interrupted) => {
            console.note("interrupted; run the same command again for the rows that have no result");
            Ok(Exit::Interrupted)
        }
        Some(Stop::Sink(SinkError::Write(error))) if error.kind() == ErrorKind::BrokenPipe => {
            console.note("the reader of stdout has ended; the other rows did not run");
            Ok(Exit::Stopped)
        }
        Some(stop) => {
            if matches!(stop, Stop::MaxFailures { .. }) && !emit::is_stdout(&args.output) {
                let results = JournalPaths::beside(&args.output).results;
                console.note(&format!("the results so far, with the errors, are in {}", results.display()));
            }
            Err(stop.into())
        }
    }
}

fn what_runs_again(summary: &Summary) -> String {
    let all = "the same command with --retry-failed runs the failed rows again";
    match summary.rows.unanswered {
        0 => all.to_owned(),
        1 => format!("the same command runs the row again that the provider did not answer; {all}"),
        rows => {
            format!("the same command runs the {rows} rows again that the provider did not answer; {all}")
        }
    }
}

/// Says which rows did not run although nothing has failed.
fn note_rows(summary: &Summary, args: &BatchArgs, console: &Console) {
    let rows = summary.rows;
    if rows.read == 0 && summary.stopped.is_none() {
        console.note("the input has no rows");
    }
    for name in &summary.absent {
        console.note(&format!(
            "no row that was read has a member `{name}`, which --id or --keep names: it is null in each result"
        ));
    }
    if rows.excluded > 0 && rows.excluded == rows.read {
        console.note("the condition of --where was true for no row");
    }
    if summary.is_sample && !emit::is_stdout(&args.output) {
        console.note("this was a sample; the same command without --sample runs the other rows");
    }
}

/// Says that a member of `--keep` may be misspelt. The batch goes on: in JSON Lines, a later row may have it.
fn describe_absent(AbsentMember { name, rows, similar, .. }: &AbsentMember) -> String {
    let rows = if *rows == 1 { "first row has".to_owned() } else { format!("first {rows} rows have") };
    let similar = similar.iter().map(|name| format!("; did you mean --keep '{name}'?")).collect::<String>();
    format!("the {rows} no member `{name}`, which --keep names{similar}")
}

fn source(args: &BatchArgs) -> Result<Source, CliError> {
    let rows = &args.rows;
    let format = files::input_format(args)?;
    if format != Format::Csv && (rows.delimiter.is_some() || !rows.null.is_empty()) {
        return Err(CliError::usage("--delimiter and --null are for CSV files"));
    }
    let mut source = Source::new(&args.input, format);
    source.encoding = rows.encoding;
    source.delimiter = rows.delimiter.unwrap_or(source.delimiter);
    source.columns = files::columns(args);
    Ok(source)
}

fn condition(text: &str) -> Result<Condition, CliError> {
    Condition::parse(text).map_err(|error| CliError::Usage {
        message: format!("--where: {error}, at byte {} of `{text}`", error.range.start),
        suggestion: error
            .suggestion
            .or_else(|| Some("Write a condition such as `$.language == \"de\"`.".to_owned())),
    })
}

fn options(args: &BatchArgs, settings: &Settings) -> RunOptions {
    let mut options = RunOptions {
        strict: settings.strict.value,
        generation: args.generation.generation(),
        ..RunOptions::default()
    };
    let timeout = &settings.timeout;
    options.timeout = matches!(timeout.source, SettingSource::Flag(_)).then_some(timeout.value);
    options.accept = args.check.accept;
    options.escalate = args.check.escalate;
    options.on_violation = args.check.on_violation;
    options.evidence.clone_from(&args.check.evidence);
    // A job has one call for each row.
    let has_one_call = args.via.via.is_some() && args.via.retry.is_none();
    options.max_attempts = if has_one_call { Some(1) } else { args.check.max_attempts };
    options
}

/// Checks that the evidence of a row needs no further request: a job has one for each row.
fn check_evidence(request: &EvidenceRequest) -> Result<(), CliError> {
    if request.calls() <= 1 {
        return Ok(());
    }
    Err(CliError::Usage {
        message: format!("--via sends one request for each row, and `{request}` needs {}", request.calls()),
        suggestion: Some("Pass `--evidence none` or `--evidence grounding`, or leave out --via.".to_owned()),
    })
}

/// Returns whether the first provider caches the beginning of requests.
fn has_prompt_cache(runtime: &Runtime) -> bool {
    let first = runtime.providers().default_order().first();
    first.is_some_and(|provider| provider.info().prompt_cache("").is_some())
}

/// Checks that the prices of the model are known if the cost is limited.
fn check_prices(runtime: &Runtime, max_cost: Option<f64>) -> Result<(), CliError> {
    let Some(provider) = runtime.providers().default_order().first().filter(|_| max_cost.is_some()) else {
        return Ok(());
    };
    let info = provider.info();
    let sample = Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() };
    match info.cost(&info.model, &sample, output::now()) {
        Some(_) => Ok(()),
        None => Err(CliError::Usage {
            message: format!("--max-cost: the price of {}/{} is unknown", info.name, info.model),
            suggestion: Some(
                "Limit the rows with --sample, or choose a model whose price is known.".to_owned(),
            ),
        }),
    }
}

fn unreadable(error: &cog_batch::ReadError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion()) }
}

// `cog batch --plan`: what a batch will need, before anything is sent.

/// Prints what the batch will need: as text on a terminal, otherwise as JSON.
fn plan(batch: &Batch, rows: Rows, format: PlanFormat, invocation: Invocation<'_>) -> Result<Exit, CliError> {
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
        [("batch", batch_fact(plan)), ("rows", rows(plan)), ("input", input(plan)), ("output", output(plan))]
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

fn batch_fact(plan: &Plan) -> String {
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
