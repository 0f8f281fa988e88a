//! `cog verify`: checks a document against the specification. `cog cite`: checks the citations of answers.

use cog_answer::verify::{self, ModuleRules, Verdict};
use cog_harmony::citation::{self, Citation, CitationReport, Source, Sources};
use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Value, Writer};
use cog_media::{MediaDeclaration, MediaError, MediaRules, sniff};
use cog_run::citation_source;

use super::{
    input,
    runtime::{self, default_finder},
};
use crate::{
    args::{CiteArgs, CiteCheckArgs, CiteCommand, CiteSource, VerifyArgs},
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// Checks a document. The exit code is 0 if it is valid, otherwise 1.
pub(crate) fn verify(
    args: &VerifyArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let module = match &args.module {
        Some(name) => {
            let module = cog_module::load(&default_finder(environment)?.find(name)?)?;
            console.diagnose(&module.warnings);
            Some(module)
        }
        None => None,
    };
    let run_input = args.input.as_deref().map(input::json_of).transpose()?;
    let rules = module.as_ref().map(|module| ModuleRules {
        checks: Some(&module.checks),
        input: run_input.as_ref().map(Value::node),
        ..ModuleRules::new(&module.manifest, &module.contract)
    });
    let verdict = match input::any_text(&args.file)? {
        Ok(text) if args.model.is_some() => verify::verify_messages(&text, args.model.as_ref()),
        Ok(text) => verify::verify(&text, args.kind(), rules),
        Err(error) => Verdict::not_text(args.kind(), &error.to_string()),
    };
    if console.prints_json(args.format) {
        console.print_json(&verdict)?;
    } else {
        console.print(&describe(&verdict, console.out().palette))?;
    }
    Ok(if verdict.valid { Exit::Ok } else { Exit::Failed })
}

/// Formats one violation per line, then the verdict.
fn describe(verdict: &Verdict, palette: Palette) -> String {
    let mut text = String::new();
    let warning = palette.warning("warning: ");
    let violations = verdict.violations.iter().map(|violation| ("", violation));
    let warnings = verdict.warnings.iter().map(|violation| (warning.as_str(), violation));
    for (mark, violation) in violations.chain(warnings) {
        let path = if violation.path.is_empty() { String::new() } else { format!("{}: ", violation.path) };
        let rule = palette.dim(format_args!("[{}]", violation.rule));
        text += &format!("{mark}{}{} {rule}\n", palette.name(path), violation.message);
    }
    let what = verdict.kind.map_or("unknown", |kind| kind.as_str());
    let result = if verdict.valid { palette.success("valid") } else { palette.error("invalid") };
    text + &format!("{result} {what}\n")
}

/// Runs the subcommand.
pub(crate) fn cite(args: CiteArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        CiteCommand::Check(args) => check(&args, environment, console),
    }
}

/// Checks the citations of an answer. The exit code is 0 if they are valid, otherwise 1.
fn check(args: &CiteCheckArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let answer = input::json_of(&args.answer)?;
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(sources) = runtime::wait(open_sources(&args.source, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let report = citation::check(answer.node(), &sources, args.min_score);
    for unused in args.source.iter().filter(|source| !is_cited(&answer, &source.id)) {
        console.note(&format!("no citation has the source `{}`", unused.id));
    }
    if console.prints_json(args.format) {
        console.print_json(&Report(&report))?;
    } else {
        console.print(&describe_citations(&report, console.out().palette))?;
    }
    Ok(if report.findings.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn is_cited(answer: &Value, id: &str) -> bool {
    citation::source_ids(answer.node()).contains(&id)
}

/// Formats one citation per line, then the findings and the verdict.
fn describe_citations(report: &CitationReport, palette: Palette) -> String {
    let mut text: String = report.citations.iter().map(|one| line(one, palette)).collect();
    for finding in &report.findings {
        let rule = palette.dim(format_args!("[{}]", finding.rule));
        text += &format!("{}: {} {rule}\n", palette.name(&finding.path), finding.message);
    }
    let verdict = match report.findings.len() {
        0 => palette.success("valid"),
        _ => palette.error("invalid"),
    };
    let anchors = counted(report.anchors, "anchor");
    let citations = counted(report.citations.len(), "citation");
    text + &format!("{verdict} {anchors}, {citations}\n")
}

fn line(citation: &Citation, palette: Palette) -> String {
    let Citation { id, anchors, checked, score, page } = citation;
    let score = score.map(|score| format!(", score {score}")).unwrap_or_default();
    let page = page.map(|page| format!(" on page {page}")).unwrap_or_default();
    let state = if *checked { "" } else { ", source not checked" };
    let anchors = counted(*anchors, "anchor");
    format!("{} {anchors}{score}{page}{}\n", palette.name(id), palette.dim(state))
}

/// `1 anchor`, `2 anchors`.
fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// The report as it is printed.
struct Report<'a>(&'a CitationReport);

/// Written by hand: the verdict is computed.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let CitationReport { anchors, citations, findings } = self.0;
        w.object(|w| {
            w.field("valid", &findings.is_empty());
            w.field("anchors", anchors);
            w.field("citations", citations);
            w.field("findings", findings);
        });
    }
}

/// Opens every source. One that cannot be read is a finding of the citations that name it.
async fn open_sources(sources: &[CiteSource], settings: &MediaSettings) -> Sources {
    let mut opened = Sources::new();
    for CiteSource { id, file } in sources {
        let source = open_source(file, settings).await;
        opened.insert(id.clone(), source.unwrap_or_else(|error| Source::unreadable(error.to_string())));
    }
    opened
}

async fn open_source(file: &str, settings: &MediaSettings) -> Result<Source, MediaError> {
    let rules = MediaRules::default();
    let stored = input::open(file, settings, rules.max_bytes_of_any()).await?;
    let is_text = sniff(stored.head()).is_none_or(|media_type| media_type.starts_with("text/"));
    if is_text && let Some(text) = input::text(&stored)? {
        return Ok(Source::from_text(&text));
    }
    let media =
        cog_media::check(stored, &MediaDeclaration::default(), &rules, Some(&settings.tool())).await?;
    citation_source(&media, Some(&settings.tool())).await
}
