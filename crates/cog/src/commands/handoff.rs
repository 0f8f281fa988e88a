//! `cog handoff`: creates, checks and renders handoff packets.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use cog_harmony::{
    Conversation, Finding,
    handoff::{Artifact, ChainReport, Draft, Handoff, Reference, losses, verify_chain},
};
use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Value, Writer};
use cog_media::{MediaError, MediaRules, Stored};
use cog_spec::{Code, ErrorBody};

use super::{emit, input, runtime};
use crate::{
    args::{
        HandoffApplyArgs, HandoffArgs, HandoffCheckArgs, HandoffCommand, HandoffNewArgs, HandoffShowArgs,
    },
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// Runs the subcommand.
pub(crate) fn handoff(
    args: HandoffArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match args.command {
        HandoffCommand::New(args) => new(&args, environment, console),
        HandoffCommand::Check(args) => check(&args, environment, console),
        HandoffCommand::Apply(args) => apply(&args, environment, console),
        HandoffCommand::Show(args) => show(&args, environment, console),
    }
}

/// Creates a packet from the arguments, and lists what it loses.
fn new(args: &HandoffNewArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let parent = match &args.parent {
        Some(source) => match runtime::wait(read_valid_packet(source, &settings.media))? {
            Some(parent) => Some(parent?),
            None => return Ok(Exit::Interrupted),
        },
        None => None,
    };
    let draft = draft(args, parent.as_ref())?;
    let history = args.history.as_deref().map(history).transpose()?.unwrap_or_default();
    let lost = losses(&draft, parent.as_ref(), &history);
    for loss in &lost {
        console.note(&format!("lost: {}: {}", loss.path, loss.message));
    }
    let sealed = Handoff::seal(&draft, parent.as_ref()).map_err(|findings| invalid_packet(&findings))?;
    if args.strict && !lost.is_empty() {
        let message = format!("the handoff would lose {} things, and --strict refuses it", lost.len());
        let error = ErrorBody::new(Code::ConstraintViolation, message);
        return Err(error.suggest("Add a summary and the artifacts, or omit --strict.").into());
    }
    emit::json(&sealed, &args.output, console)?;
    Ok(Exit::Ok)
}

fn draft(args: &HandoffNewArgs, parent: Option<&Handoff>) -> Result<Draft, CliError> {
    let mut draft = parent.map(Draft::after).unwrap_or_default();
    if let Some(file) = &args.answer {
        draft = with_answer(draft, &input::json_of(file)?)?;
    }
    if let Some(source) = &args.from {
        draft.source_agent.clone_from(source);
    }
    draft.target_agent.clone_from(&args.to);
    draft.timestamp = now();
    draft.primary_objective = args.objective.clone().unwrap_or(draft.primary_objective);
    draft.status = args.status.clone().or(draft.status);
    draft.next_immediate_step = args.next.clone().or(draft.next_immediate_step);
    draft.history_summary = args.summary.clone().or(draft.history_summary);
    draft.completed_steps.extend(args.done.iter().cloned());
    draft.constraints.extend(args.constraint.iter().cloned());
    for (name, reference) in &args.artifact {
        draft.set_artifact(name, cog_json::to_value(reference).unwrap_or_default());
    }
    Ok(draft)
}

/// Adds `data.handoff` of an envelope, or `handoff` of data.
fn with_answer(draft: Draft, answer: &Value) -> Result<Draft, CliError> {
    let (node, path) = match answer.pointer("/data/handoff") {
        Some(node) => (Some(node), "data.handoff"),
        None => (answer.get("handoff"), "handoff"),
    };
    let Some(node) = node else {
        let error = ErrorBody::new(Code::InvalidInput, "the answer has no `handoff` in its data");
        return Err(error
            .suggest("Use a module whose data have a member `handoff`, as docs/handoff.md describes.")
            .into());
    };
    let path: cog_json::Path = path.parse().unwrap_or_default();
    draft.with_context(node, &path).map_err(|findings| invalid_packet(&findings).into())
}

fn history(file: &Path) -> Result<Conversation, CliError> {
    let value = input::json_of(file)?;
    let messages = Conversation::read(value.get("messages").unwrap_or(value.node()));
    Ok(messages.map_err(|problems| {
        let list: Vec<_> =
            problems.iter().take(20).map(|one| format!("{}: {}", one.path, one.message)).collect();
        ErrorBody::new(Code::InvalidInput, format!("the history is invalid: {}", list.join("; ")))
            .suggest("`cog verify --kind messages` lists every problem.")
    })?)
}

#[expect(clippy::disallowed_methods, reason = "the command line is the edge")]
fn now() -> String {
    // A clock before 1970 has no such text.
    humantime::format_rfc3339_seconds(SystemTime::now().max(SystemTime::UNIX_EPOCH)).to_string()
}

/// Checks a packet. The exit code is 0 if it is valid, otherwise 1.
fn check(args: &HandoffCheckArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(report) = runtime::wait(report(args, &settings.media, console))? else {
        return Ok(Exit::Interrupted);
    };
    let report = Report(report?);
    if console.prints_json(args.format) {
        console.print_json(&report)?;
    } else {
        console.print(&report.describe(console.out().palette))?;
    }
    Ok(if report.0.findings.is_empty() { Exit::Ok } else { Exit::Failed })
}

async fn report(
    args: &HandoffCheckArgs,
    settings: &MediaSettings,
    console: &Console,
) -> Result<ChainReport, CliError> {
    let last = match read_packet(&args.packet, settings).await? {
        Ok(last) => last,
        Err(findings) => return Ok(ChainReport { packets: Vec::new(), findings }),
    };
    let mut others = Vec::new();
    for source in &args.chain {
        others.push(read_packet(source, settings).await?.map_err(|findings| invalid_packet(&findings))?);
    }
    let mut report = match last.parent() {
        // Without the earlier packets, only this one can be checked.
        Some(_) if others.is_empty() => {
            console.note("the earlier packets were not checked; name them with --chain");
            ChainReport { packets: vec![last.hash().to_owned()], findings: last.check_seal() }
        }
        _ => verify_chain(&last, &others),
    };
    report.findings.extend(unsealed(&last).filter(|_| args.strict));
    report.findings.extend(check_artifacts(&last, args, settings, console).await);
    Ok(report)
}

fn unsealed(packet: &Handoff) -> Option<Finding> {
    let is_sealed = packet.declared_hash().is_some();
    (!is_sealed).then(|| Finding {
        path: "meta.hash".to_owned(),
        rule: "hash",
        message: "the packet has no hash".to_owned(),
        suggestion: Some("Create it with `cog handoff new`.".to_owned()),
    })
}

struct Report(ChainReport);

impl Report {
    fn describe(&self, palette: Palette) -> String {
        let mut text = String::new();
        for finding in &self.0.findings {
            let rule = palette.dim(format_args!("[{}]", finding.rule));
            text += &format!("{}: {} {rule}\n", palette.name(&finding.path), finding.message);
        }
        let is_valid = self.0.findings.is_empty();
        let verdict = if is_valid { palette.success("valid") } else { palette.error("invalid") };
        text + &format!("{verdict} chain of {}\n", self.0.packets.len())
    }
}

/// Written by hand: the verdict is computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("valid", &self.0.findings.is_empty());
            w.field("packets", &self.0.packets);
            w.field("findings", &self.0.findings);
        });
    }
}

/// Prints the messages for the agent that receives the packet.
fn apply(args: &HandoffApplyArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(packet) = runtime::wait(read_valid_packet(&args.packet, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let packet = packet?;
    let other = args.agent.as_deref().filter(|agent| *agent != packet.target_agent());
    if let Some(agent) = other {
        let message = format!("the packet is for `{}`, not for `{agent}`", packet.target_agent());
        return Err(ErrorBody::new(Code::InvalidInput, message).into());
    }
    emit::json(&packet.messages(), &args.output, console)?;
    Ok(Exit::Ok)
}

/// Prints the packet as text.
fn show(args: &HandoffShowArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(packet) = runtime::wait(read_packet(&args.packet, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let packet = packet?.map_err(|findings| invalid_packet(&findings))?;
    console.print(&describe_packet(&packet, console.out().palette))?;
    for finding in packet.check_seal() {
        console.note(&format!("{}: {}", finding.path, finding.message));
    }
    Ok(Exit::Ok)
}

fn describe_packet(packet: &Handoff, palette: Palette) -> String {
    let mut text = format!(
        "{} {} → {}, {}\n",
        palette.dim("handoff"),
        palette.name(packet.source_agent()),
        palette.name(packet.target_agent()),
        packet.timestamp(),
    );
    let mut facts = vec![
        ("hash", packet.hash().to_owned()),
        ("parent", packet.parent().unwrap_or("none").to_owned()),
        ("objective", packet.primary_objective().to_owned()),
        ("status", packet.status().unwrap_or("unknown").to_owned()),
    ];
    facts.extend(packet.completed_steps().map(|step| ("completed", step.to_owned())));
    facts.push(("next", packet.next_immediate_step().unwrap_or("unknown").to_owned()));
    facts.extend(packet.constraints().map(|constraint| ("constraint", constraint.to_owned())));
    let artifacts = packet.artifacts();
    facts.extend(artifacts.map(|one| ("artifact", format!("{} {}", one.name, one.reference.as_str()))));
    facts.push(("history", packet.history_summary().unwrap_or("none").to_owned()));
    for (name, content) in facts {
        text += &format!("{}: {content}\n", palette.dim(name));
    }
    text
}

/// Reads a packet from a file, an http(s) URL, or stdin for `-`. The inner error is what is wrong with its form.
///
/// # Errors
/// A source that cannot be read, or is not JSON.
async fn read_packet(
    source: &str,
    settings: &MediaSettings,
) -> Result<Result<Handoff, Vec<Finding>>, CliError> {
    let value = match source.contains("://") {
        true => input::fetch(source, settings).await?,
        false => input::json_of(Path::new(source))?,
    };
    Ok(Handoff::read(value))
}

/// As [`read_packet`], for a packet that must be valid and unchanged.
///
/// # Errors
/// Also E1001 with every finding.
async fn read_valid_packet(source: &str, settings: &MediaSettings) -> Result<Handoff, CliError> {
    let packet = read_packet(source, settings).await?.map_err(|findings| invalid_packet(&findings))?;
    let findings = packet.check_seal();
    if findings.is_empty() { Ok(packet) } else { Err(invalid_packet(&findings).into()) }
}

/// Returns the error of an invalid packet.
fn invalid_packet(findings: &[Finding]) -> ErrorBody {
    let list: Vec<_> = findings.iter().take(20).map(|one| format!("{}: {}", one.path, one.message)).collect();
    let message = format!("the handoff packet is invalid: {}", list.join("; "));
    let details = Value::parse(&format!("{{\"violations\":{}}}", findings.to_json())).unwrap_or_default();
    let mut error = ErrorBody::new(Code::InvalidInput, message).with_details(details);
    error.suggestion = findings.iter().find_map(|finding| finding.suggestion.clone());
    error
}

/// Returns a finding for each artifact that does not exist, or differs from its hash.
async fn check_artifacts(
    packet: &Handoff,
    args: &HandoffCheckArgs,
    settings: &MediaSettings,
    console: &Console,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for artifact in packet.artifacts() {
        match resolve(&artifact, args.no_fetch, settings).await {
            Ok(()) => {}
            Err(Unresolved::Refused(message)) => findings.push(finding(&artifact, message)),
            Err(Unresolved::Unknown(message)) if args.strict => findings.push(finding(&artifact, message)),
            Err(Unresolved::Unknown(message)) => {
                console.note(&format!("artifact `{}` was not checked: {message}", artifact.name));
            }
        }
    }
    findings
}

/// Why an artifact is not known to exist.
enum Unresolved {
    /// It does not exist, or differs.
    Refused(String),
    /// Its scheme is not one that can be resolved here.
    Unknown(String),
}

impl From<MediaError> for Unresolved {
    fn from(error: MediaError) -> Self {
        Self::Refused(error.to_string())
    }
}

async fn resolve(
    artifact: &Artifact<'_>,
    no_fetch: bool,
    settings: &MediaSettings,
) -> Result<(), Unresolved> {
    match artifact.reference {
        Reference::Url(url) if is_web(url) && no_fetch => match settings.guard().judge(url) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(MediaError::Refused { refusal, hop: 0 }.into()),
        },
        Reference::Url(url) if is_web(url) => {
            let limit = MediaRules::default().max_bytes_of_any();
            compare(artifact, &input::open(url, settings, limit).await?)
        }
        Reference::Url(url) => {
            let scheme = url.split(':').next().unwrap_or_default();
            Err(Unresolved::Unknown(format!("the scheme `{scheme}` cannot be resolved")))
        }
        Reference::Path(path) => file(artifact, Path::new(path), settings),
    }
}

/// Looks for a file or directory in the working directory or under the operator's roots.
fn file(artifact: &Artifact<'_>, path: &Path, settings: &MediaSettings) -> Result<(), Unresolved> {
    if path.is_dir() && artifact.sha256.is_none() && is_inside(path, Path::new(".")) {
        return Ok(());
    }
    let guard = settings.files([PathBuf::from(".")]);
    if artifact.sha256.is_none() {
        return Ok(guard.check(path)?);
    }
    let store = cog_media::Store::with_limit(MediaRules::default().max_bytes_of_any());
    compare(artifact, &guard.open(path, store)?)
}

/// Whether a path is in a directory, with links resolved.
fn is_inside(path: &Path, directory: &Path) -> bool {
    match (path.canonicalize(), directory.canonicalize()) {
        (Ok(path), Ok(directory)) => path.starts_with(directory),
        _ => false,
    }
}

fn compare(artifact: &Artifact<'_>, stored: &Stored) -> Result<(), Unresolved> {
    let (Some(expected), Some(found)) = (artifact.sha256, stored.sha256()) else { return Ok(()) };
    let found = found.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    match found.eq_ignore_ascii_case(expected) {
        true => Ok(()),
        false => Err(Unresolved::Refused(format!("its SHA-256 is {found}"))),
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

fn finding(artifact: &Artifact<'_>, message: String) -> Finding {
    let name = artifact.name;
    Finding {
        path: format!("context.artifacts.{name}"),
        rule: "artifact",
        message,
        suggestion: Some("Put the artifact where the receiver can read it.".to_owned()),
    }
}
