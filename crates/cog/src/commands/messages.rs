//! `cog messages`: changes histories of messages, which are read from a file and written to a file or stdout.

mod archive;

use std::path::Path;

use cog_harmony::{
    Change, Conversation, Document, Estimate, FixReport, Loss, MessageTokens, Problem, Severity,
    TokenCounter, TrimError, TrimReport, TrimmedItem, trim_messages,
};
use cog_host::settings::Environment;
use cog_json::{Array, ToJson, Writer};
use cog_spec::{Code, ErrorBody};
use serde::Serialize;

use super::input;
use crate::{
    args::{ConvertArgs, CountArgs, FixArgs, MessagesArgs, MessagesCommand, TrimArgs},
    commands::emit,
    error::{CliError, Exit},
    output::{Console, Palette, Table},
};

/// Runs the subcommand.
pub(crate) fn messages(
    args: &MessagesArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match &args.command {
        MessagesCommand::Convert(args) => convert(args, console),
        MessagesCommand::Fix(args) => fix(args, console),
        MessagesCommand::Count(args) => count(args, console),
        MessagesCommand::Trim(args) => trim(args, console),
        MessagesCommand::Archive(args) => archive::archive(args, environment, console),
        MessagesCommand::Expand(args) => archive::expand(args, environment, console),
    }
}

/// Writes the converted history. The exit code is 1 if it cannot be read, and with `--strict` if anything is lost.
fn convert(args: &ConvertArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let document = read(&args.file)?;
    let converted = match cog_harmony::convert(&document, args.from, args.to) {
        Ok(converted) => converted,
        Err(problems) => {
            report_problems(&problems, console);
            return Err(not_convertible(&args.file).into());
        }
    };
    match &args.report {
        Some(file) => emit::file(file, &LossReport(&converted.losses).to_json(), console)?,
        None => report_losses(&converted.losses, console),
    }
    if args.strict && !converted.losses.is_empty() {
        return Ok(Exit::Failed);
    }
    write(&converted.text, args.output.as_deref(), console)?;
    Ok(Exit::Ok)
}

fn not_convertible(file: &Path) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("cannot convert the messages of {}", file.display()))
        .suggest("Fix what is listed above, or name the format with --from.")
}

fn report_problems(problems: &[Problem], console: &Console) {
    let palette = console.err().palette;
    for Problem { path, rule, message } in problems {
        console.note(&format!("error: {}", line(path, message, rule.name, palette)));
    }
}

fn report_losses(losses: &[Loss], console: &Console) {
    let palette = console.err().palette;
    for Loss { path, what, why } in losses {
        console.note(&format!("lost: {}: {what}: {why}", palette.name(path)));
    }
}

struct LossReport<'a>(&'a [Loss]);

/// Written by hand: the list is the only member.
impl ToJson for LossReport<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("losses", self.0);
        });
    }
}

/// Writes the fixed history. The exit code is 0 if no errors are left, otherwise 1.
fn fix(args: &FixArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let text = read_text(&args.file)?;
    let fixed = Document::parse_uncommented(&text).and_then(|document| cog_harmony::fix(&document));
    let fixed = fixed.map_err(|problem| unreadable(&args.file, &problem))?;
    match &args.report {
        Some(file) => emit::file(file, &FixJson(&fixed).to_json(), console)?,
        None => report_fixes(&fixed, console),
    }
    write(&fixed.text, args.output.as_deref(), console)?;
    let is_valid = !fixed.problems.iter().any(|problem| problem.rule.is_error());
    Ok(if is_valid { Exit::Ok } else { Exit::Failed })
}

/// Prints a line for each change, then for each problem that is left.
fn report_fixes(fixed: &FixReport, console: &Console) {
    let palette = console.err().palette;
    for Change { path, rule, message } in &fixed.changes {
        console.note(&format!("fixed: {}", line(path, message, rule.name, palette)));
    }
    for Problem { path, rule, message } in &fixed.problems {
        let severity = severity(rule.severity);
        console.note(&format!("{severity}: {}", line(path, message, rule.name, palette)));
    }
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

struct FixJson<'a>(&'a FixReport);

/// Written by hand: the text of the history is not part of it.
impl ToJson for FixJson<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let problems: Vec<OpenProblem<'_>> = self.0.problems.iter().map(OpenProblem).collect();
        w.object(|w| {
            w.field("changes", &self.0.changes).field("problems", &Array(&problems));
        });
    }
}

/// A problem that is left.
struct OpenProblem<'a>(&'a Problem);

/// Written by hand: severity and suggestion come from the rule.
impl ToJson for OpenProblem<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Problem { path, rule, message } = self.0;
        w.object(|w| {
            w.field("severity", severity(rule.severity)).field("path", path).field("rule", rule.name);
            w.field("message", message).field("suggestion", rule.suggestion);
        });
    }
}

/// Prints the tokens of each message and of all.
fn count(args: &CountArgs, console: &Console) -> Result<Exit, CliError> {
    let conversation = conversation(&read(&args.file)?, &args.file)?;
    let counts = HistoryCount::new(args.model.as_deref(), &conversation);
    if console.prints_json(args.format) {
        console.print_json(&counts)?;
    } else {
        console.print(&counts.text(console))?;
    }
    Ok(Exit::Ok)
}

/// The tokens of a history.
#[derive(Serialize)]
struct HistoryCount<'a> {
    model: Option<&'a str>,
    tokenizer: &'static str,
    exact: bool,
    tokens: u64,
    images: usize,
    image_tokens: u64,
    messages: Vec<MessageCount<'a>>,
}

/// The tokens of a message.
#[derive(Serialize)]
struct MessageCount<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    role: &'static str,
    tokens: u64,
    images: usize,
    image_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimated: Vec<&'static str>,
}

impl<'a> HistoryCount<'a> {
    fn new(model: Option<&'a str>, conversation: &'a Conversation) -> Self {
        let counter = TokenCounter::new(model.unwrap_or_default());
        let mut messages: Vec<MessageCount<'a>> = Vec::new();
        for (index, message) in conversation.messages().iter().enumerate() {
            let MessageTokens { total, images, image_tokens, estimates } = counter.message(message);
            messages.push(MessageCount {
                index,
                id: message.id.as_deref(),
                role: message.role.as_str(),
                tokens: total,
                images,
                image_tokens,
                estimated: estimates.into_iter().map(Estimate::as_str).collect(),
            });
        }
        Self {
            model,
            tokenizer: counter.tokenizer(),
            exact: counter.is_exact() && messages.iter().all(|message| message.estimated.is_empty()),
            tokens: counter.reply() + messages.iter().map(|message| message.tokens).sum::<u64>(),
            images: messages.iter().map(|message| message.images).sum(),
            image_tokens: messages.iter().map(|message| message.image_tokens).sum(),
            messages,
        }
    }

    fn text(&self, console: &Console) -> String {
        let mut table = Table::new(["message", "role", "tokens", "images", "note"]);
        for line in &self.messages {
            let images = match line.images {
                0 => String::new(),
                images => format!("{images} ({} tokens)", line.image_tokens),
            };
            let name = format!("[{}]", line.index);
            let tokens = line.tokens.to_string();
            table.row([name, line.role.to_owned(), tokens, images, line.estimated.join("; ")]);
        }
        let kind = if self.exact { "exact" } else { "estimated" };
        let total = format!("{} tokens, {kind} with {}\n", self.tokens, self.tokenizer);
        format!("{}{total}", table.render(console.out().palette, console.out_columns()))
    }
}

/// Writes the trimmed history, and reports what was removed.
fn trim(args: &TrimArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let document = read(&args.file)?;
    let conversation = conversation(&document, &args.file)?;
    let counter = TokenCounter::new(args.model.as_deref().unwrap_or_default());
    let trimmed =
        trim_messages(conversation, args.max_tokens, &counter).map_err(|error| over_limit(&error))?;
    match &args.report {
        Some(file) => emit::file(file, &TrimJson::new(&trimmed, &counter).to_json(), console)?,
        None => report_trim(&trimmed, &counter, console),
    }
    write(&document.with_messages(&trimmed.conversation), args.output.as_deref(), console)?;
    Ok(Exit::Ok)
}

fn over_limit(error: &TrimError) -> CliError {
    let body = ErrorBody::new(Code::InputTooLarge, error.to_string());
    CliError::from(body.suggest(format!("Raise --max-tokens to at least {}.", error.required)))
}

/// Prints a line for each part and message that was removed, then the tokens.
fn report_trim(trimmed: &TrimReport, counter: &TokenCounter, console: &Console) {
    for TrimmedItem { path, kind, tokens, marker } in &trimmed.removed {
        let marker = marker.as_ref().map(|marker| format!(", replaced by `{marker}`")).unwrap_or_default();
        console.note(&format!("removed: {path} ({kind}, {tokens} tokens){marker}"));
    }
    let TrimReport { tokens, tokens_before, .. } = trimmed;
    console
        .note(&format!("{tokens} of {tokens_before} tokens are left, counted with {}", counter.tokenizer()));
}

#[derive(Serialize)]
struct TrimJson<'a> {
    tokenizer: &'static str,
    exact: bool,
    tokens_before: u64,
    tokens: u64,
    removed: Vec<TrimItemJson<'a>>,
}

#[derive(Serialize)]
struct TrimItemJson<'a> {
    path: &'a str,
    kind: &'static str,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    marker: Option<&'a str>,
}

impl<'a> TrimItemJson<'a> {
    fn new(removed: &'a TrimmedItem) -> Self {
        Self {
            path: &removed.path,
            kind: removed.kind,
            tokens: removed.tokens,
            marker: removed.marker.as_deref(),
        }
    }
}

impl<'a> TrimJson<'a> {
    fn new(trimmed: &'a TrimReport, counter: &TokenCounter) -> Self {
        Self {
            tokenizer: counter.tokenizer(),
            exact: counter.is_exact(),
            tokens_before: trimmed.tokens_before,
            tokens: trimmed.tokens,
            removed: trimmed.removed.iter().map(TrimItemJson::new).collect(),
        }
    }
}

/// Reads a history from a file, or from stdin for `-`.
pub(super) fn read(file: &Path) -> Result<Document, CliError> {
    Document::parse(&read_text(file)?).map_err(|problem| unreadable(file, &problem))
}

fn read_text(file: &Path) -> Result<String, CliError> {
    Ok(input::any_text(file)?.map_err(|error| not_readable(file, &error.to_string()))?)
}

/// Reads the messages of a history.
pub(super) fn conversation(document: &Document, file: &Path) -> Result<Conversation, CliError> {
    let messages = document.messages().map_err(|problem| unreadable(file, &problem))?;
    Conversation::read(messages).map_err(|problems| match problems.first() {
        Some(problem) => unreadable(file, problem),
        None => not_readable(file, "the messages are not valid").into(),
    })
}

/// Creates the error of a history that cannot be read.
pub(super) fn unreadable(file: &Path, problem: &Problem) -> CliError {
    let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    let error = not_readable(file, &format!("{path}{}", problem.message));
    CliError::from(error.suggest(problem.rule.suggestion))
}

fn not_readable(file: &Path, reason: &str) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("cannot read the messages of {}: {reason}", file.display()))
}

/// Writes text to the file, or to stdout without one.
pub(super) fn write(text: &str, output: Option<&Path>, console: &Console) -> Result<(), CliError> {
    match output.filter(|path| !emit::is_stdout(path)) {
        Some(path) => emit::file(path, text, console),
        None => Ok(console.print(text)?),
    }
}

/// Formats a problem as one line: path, message, rule.
fn line(path: &str, message: &str, rule: &str, palette: Palette) -> String {
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{}{message} {}", palette.name(path), palette.dim(format_args!("[{rule}]")))
}
