//! `cog insights`: what the runs of a module showed that its contract did not foresee.

use std::{
    fmt::Write as _,
    io::{self, BufReader},
    path::Path,
};

use cog_contract::{
    diff::diff,
    insights::{Insights, MIN_CASES, Proposal, ProposalKind, Report, Run, apply},
};
use cog_host::{
    run_log::{Entry, Labels, each_entry},
    settings::{Environment, Flags, Settings},
};
use cog_json::{Node, Object, ToJson as _, Value};
use cog_module::{
    Module, ModuleFiles, Origin,
    files::{self, FileError},
};
use cog_run::feedback::LabelKind;
use cog_spec::{Code, ErrorBody};
use cog_store::private;

use crate::{
    args::InsightsArgs,
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// The maximum length of a line of a file.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// The name of `custom` where several modules are counted.
const TAG: &str = "custom";

/// Prints the counts and the proposals, or applies one.
pub(crate) fn insights(
    args: &InsightsArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let module = match &args.module {
        Some(name) => Some(cog_module::load(&settings.finder().find(name)?)?),
        None => None,
    };
    let mut counted = Counted::of(module.as_ref());
    if args.from.is_empty() {
        counted.log(&settings, module.as_ref())?;
    }
    for path in &args.from {
        counted.file(path, console)?;
    }
    let report = counted.insights.report(args.min_cases, module.as_ref());
    if let (Some(number), Some(module)) = (args.apply, &module) {
        return accept(number, &report, module, console);
    }
    if args.format.is_json() {
        console.print_json(&report)?;
    } else {
        console.print(&describe(&report, &counted.insights, console.out().palette))?;
    }
    if counted.without_contents > 0 {
        let count = counted.without_contents;
        console.note(&format!(
            "{count} runs are in the log without their contents; logs.contents stores them for later runs"
        ));
    }
    Ok(Exit::Ok)
}

/// Returns what the runs of the log showed about a module, as JSON.
///
/// # Errors
/// E1006 if runs are not logged, or if the log cannot be read.
pub(super) fn of_log(settings: &Settings, module: &Module) -> Result<String, ErrorBody> {
    let mut counted = Counted::of(Some(module));
    counted.log(settings, Some(module))?;
    Ok(counted.insights.report(MIN_CASES, Some(module)).to_json())
}

/// The runs that were counted.
struct Counted {
    insights: Insights,
    without_contents: u64,
}

impl Counted {
    fn of(module: Option<&Module>) -> Self {
        let tag = module.map_or(TAG, |module| &module.manifest.enums.unknown_tag);
        Self { insights: Insights::new(tag), without_contents: 0 }
    }

    /// Counts the runs of the log, of one module or of all, and the labels of the module.
    fn log(&mut self, settings: &Settings, module: Option<&Module>) -> Result<(), ErrorBody> {
        each_entry(settings, &mut |entry| {
            if module.is_none_or(|module| entry.is_of(&module.origin)) {
                self.entry(&entry);
            }
        })?;
        if let Some(module) = module {
            let labels = Labels::new(settings)?.latest(&module.origin)?;
            labels.iter().for_each(|label| self.insights.add_label(label.label == LabelKind::Right));
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) {
        match &entry.contents {
            Some(contents) => {
                let input = contents.input.as_ref().map(Value::node);
                self.insights.add(Run { input, envelope: contents.envelope.node() });
            }
            None => {
                self.without_contents += 1;
                self.insights.add_outcome(entry.code.as_deref());
            }
        }
    }

    /// Counts the results of a batch, line by line, or the report of a test.
    fn file(&mut self, path: &Path, console: &Console) -> Result<(), CliError> {
        let unreadable = |source: io::Error| CliError::File {
            what: "cannot read the file",
            path: path.to_owned(),
            source: FileError::Io(source),
        };
        let mut unknown = 0_u64;
        let file = private::open(path).map_err(unreadable)?;
        let skipped = private::each_line(BufReader::new(file), MAX_LINE, &mut |line| {
            if !line.trim_ascii().is_empty() && !self.line(line) {
                unknown += 1;
            }
        });
        let skipped = skipped.map_err(unreadable)? + unknown;
        if skipped > 0 {
            let lines = plural(skipped, "line");
            console.note(&format!("{}: skipped {lines}, neither results nor reports", path.display()));
        }
        Ok(())
    }

    /// Counts a line. Returns whether it is a result or a report.
    fn line(&mut self, line: &[u8]) -> bool {
        let Ok(value) = Value::parse_bytes(line) else { return false };
        let node = value.node();
        if let Some(modules) = node.get("modules").filter(|node| node.is_array()) {
            let cases = modules.elements().filter_map(|suite| suite.get("cases")).flat_map(Node::elements);
            cases.for_each(|case| self.case(case));
            return true;
        }
        let is_envelope = node.get("ok").is_some_and(|ok| ok.as_bool().is_some());
        if is_envelope {
            self.insights.add(Run { input: None, envelope: node });
        }
        is_envelope
    }

    /// Counts the answer of a test case.
    fn case(&mut self, case: Node<'_>) {
        let Some(answer) = case.get("answer").filter(|node| node.is_object()) else { return };
        if answer.get("ok").is_some() {
            return self.insights.add(Run { input: None, envelope: answer });
        }
        let ok = Value::from(serde_json::Value::from(true));
        let members = [("ok".to_owned(), ok), ("data".to_owned(), answer.to_value())];
        let envelope = members.into_iter().collect::<Object>().to_value();
        self.insights.add(Run { input: None, envelope: envelope.node() });
    }
}

fn describe(report: &Report<'_>, insights: &Insights, palette: Palette) -> String {
    let mut text = format!("{}\n", plural(insights.runs(), "run"));
    let labels = insights.labels();
    if labels.total() > 0 {
        let total = plural(labels.total(), "answer");
        let _ = writeln!(text, "{total} labelled: {} right, {} wrong", labels.right, labels.wrong);
    }
    if report.proposals().is_empty() {
        text += "\nno proposals\n";
    }
    for (index, proposal) in report.proposals().iter().enumerate() {
        let number = palette.bold(index + 1);
        let kind = proposal.kind.as_str().replace('_', " ");
        let value = proposal.value.as_ref().map(|value| format!(": {value}")).unwrap_or_default();
        let _ = write!(text, "\n{number}  {kind} {}{value}\n", palette.name(&proposal.path));
        let _ = writeln!(text, "   {}", share(proposal));
        for reason in proposal.reasons.iter().take(3) {
            let _ = writeln!(text, "   {}", palette.dim(reason.replace(char::is_control, " ")));
        }
    }
    let codes = report.codes();
    if !codes.is_empty() {
        let _ = write!(text, "\n{}\n", palette.bold("Errors"));
        codes.iter().for_each(|(code, count)| text += &format!("  {code}  {count}\n"));
    }
    if report.is_incomplete() {
        text += "\nThere were too many different values: rare ones were dropped.\n";
    }
    text
}

fn share(proposal: &Proposal) -> String {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    format!(
        "{} of {}, {} % ({} to {} %)",
        proposal.count,
        plural(proposal.cases, "run"),
        percent(proposal.share),
        percent(proposal.interval.low),
        percent(proposal.interval.high)
    )
}

fn plural(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

// Applying a proposal.

/// Writes another prompt, and raises the version of the manifest.
pub(super) fn write_prompt(module: &Module, prompt: &str, console: &Console) -> Result<(), CliError> {
    let Origin::Directory(directory) = &module.origin else { return Err(built_in()) };
    let version = write_edited(directory, module, "prompt.md", prompt)?;
    console.note(&format!("wrote {}; {version}", directory.join("prompt.md").display()));
    Ok(())
}

/// Writes an edited file and the manifest with the version that it needs. Returns what became of the version.
fn write_edited(
    directory: &Path,
    module: &Module,
    file: &'static str,
    text: &str,
) -> Result<String, CliError> {
    let (manifest, version) = raised(directory, module, file, text)?;
    write(&directory.join(file), text)?;
    if let Some((name, text)) = manifest {
        write(&directory.join(name), &text)?;
    }
    Ok(match version {
        Some(version) => format!("version {version}"),
        None => "the version is unchanged: set it by hand".to_owned(),
    })
}

fn built_in() -> CliError {
    refused("a module that is built in cannot be edited").suggest("Copy it with `cog new --from`.").into()
}

/// Edits the files of a module for a proposal.
fn accept(number: usize, report: &Report<'_>, module: &Module, console: &Console) -> Result<Exit, CliError> {
    let proposal = number.checked_sub(1).and_then(|index| report.proposals().get(index));
    let proposal = proposal.ok_or_else(|| CliError::Usage {
        message: format!("there is no proposal {number}; there are {}", report.proposals().len()),
        suggestion: Some("`cog insights MODULE` lists them with their numbers.".to_owned()),
    })?;
    let Origin::Directory(directory) = &module.origin else { return Err(built_in()) };
    let Edit { file, text, place } = edit(directory, proposal)?;
    let version = write_edited(directory, module, file, &text)?;
    let kind = proposal.kind.as_str().replace('_', " ");
    console.print(&format!("applied {kind} {} at {place}; {version}\n", proposal.path))?;
    console.note(&format!("run the golden tests: cog test {}", directory.display()));
    Ok(Exit::Ok)
}

/// A file with its new text.
struct Edit {
    file: &'static str,
    text: String,
    /// What was changed in it.
    place: String,
}

/// Edits the schema, or adds a sentence at the end of the prompt.
fn edit(directory: &Path, proposal: &Proposal) -> Result<Edit, CliError> {
    let sentence = proposal.value.as_ref().and_then(serde_json::Value::as_str);
    if let (ProposalKind::Prompt, Some(sentence)) = (proposal.kind, sentence) {
        let file = "prompt.md";
        let prompt = read(&directory.join(file))?;
        let text = format!("{}\n\n{sentence}\n", prompt.trim_end());
        return Ok(Edit { file, text, place: format!("the end of {file}") });
    }
    let file = "schema.json";
    let edited = apply(&read(&directory.join(file))?, proposal).map_err(|error| {
        refused(&error.to_string()).suggest("Edit the module by hand, then compare it with `cog diff`.")
    })?;
    Ok(Edit { file, text: edited.text, place: format!("{file}#{}", edited.pointer) })
}

/// A manifest to be written: its file and its text.
type Manifest = (&'static str, String);

/// Returns the manifest with the version that an edited file needs, and that version.
fn raised(
    directory: &Path,
    module: &Module,
    file: &'static str,
    text: &str,
) -> Result<(Option<Manifest>, Option<String>), CliError> {
    let read_all = files::read_directory(directory);
    let all = read_all.map_err(|source| CliError::File {
        what: "cannot read the module",
        path: directory.to_owned(),
        source,
    })?;
    let mut files = ModuleFiles::default();
    for (path, bytes) in all {
        if let Ok(text) = String::from_utf8(bytes) {
            files = files.with(path, text);
        }
    }
    let edited = files.with(file, text.to_owned()).load()?;
    let Some(next) = diff(module, &edited).next_version() else { return Ok((None, None)) };
    for name in ["module.yaml", "MODULE.md", "module.md"] {
        if let Ok(text) = files::read_text(&directory.join(name), files::MAX_PART) {
            let text = with_version(&text, &module.manifest.version, &next);
            let version = text.is_some().then_some(next);
            return Ok((text.map(|text| (name, text)), version));
        }
    }
    Ok((None, None))
}

/// Returns the text of a manifest with another version, on the first line that sets it.
fn with_version(text: &str, old: &str, new: &str) -> Option<String> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("version:")
            && let Some(at) = line.find(old)
        {
            let start = offset + at;
            let head = text.get(..start)?;
            let tail = text.get(start + old.len()..)?;
            return Some(format!("{head}{new}{tail}"));
        }
        offset += line.len();
    }
    None
}

fn read(path: &Path) -> Result<String, CliError> {
    let read = files::read_text(path, files::MAX_PART);
    read.map_err(|source| CliError::File { what: "cannot read the file", path: path.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    files::write_atomic(path, text).map_err(|source| super::emit::unwritable(path, source))
}

fn refused(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, format!("the proposal cannot be applied: {message}"))
}
