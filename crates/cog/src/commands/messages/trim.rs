//! `cog messages trim`: reduces a history to a number of tokens.

use cog_harmony::{TokenCounter, TrimError, TrimReport, TrimmedItem, trim_messages};
use cog_json::ToJson as _;
use cog_spec::{Code, ErrorBody};
use serde::Serialize;

use super::history;
use crate::{args::TrimArgs, commands::emit, error::CliError, exit::Exit, output::Console};

/// Writes the trimmed history, and reports what was removed.
pub(crate) fn trim(args: &TrimArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let document = history::read(&args.file)?;
    let conversation = history::conversation(&document, &args.file)?;
    let counter = TokenCounter::new(args.model.as_deref().unwrap_or_default());
    let trimmed =
        trim_messages(conversation, args.max_tokens, &counter).map_err(|error| over_limit(&error))?;
    match &args.report {
        Some(file) => emit::file(file, &Report::new(&trimmed, &counter).to_json(), console)?,
        None => report(&trimmed, &counter, console),
    }
    history::write(&document.with_messages(&trimmed.conversation), args.output.as_deref(), console)?;
    Ok(Exit::Ok)
}

fn over_limit(error: &TrimError) -> CliError {
    let body = ErrorBody::new(Code::InputTooLarge, error.to_string());
    CliError::from(body.suggest(format!("Raise --max-tokens to at least {}.", error.required)))
}

/// Prints a line for each part and message that was removed, then the tokens.
fn report(trimmed: &TrimReport, counter: &TokenCounter, console: &Console) {
    for TrimmedItem { path, kind, tokens, marker } in &trimmed.removed {
        let marker = marker.as_ref().map(|marker| format!(", replaced by `{marker}`")).unwrap_or_default();
        console.note(&format!("removed: {path} ({kind}, {tokens} tokens){marker}"));
    }
    let TrimReport { tokens, tokens_before, .. } = trimmed;
    console
        .note(&format!("{tokens} of {tokens_before} tokens are left, counted with {}", counter.tokenizer()));
}

#[derive(Serialize)]
struct Report<'a> {
    tokenizer: &'static str,
    exact: bool,
    tokens_before: u64,
    tokens: u64,
    removed: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    path: &'a str,
    kind: &'static str,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    marker: Option<&'a str>,
}

impl<'a> Report<'a> {
    fn new(trimmed: &'a TrimReport, counter: &TokenCounter) -> Self {
        let entry = |removed: &'a TrimmedItem| Entry {
            path: &removed.path,
            kind: removed.kind,
            tokens: removed.tokens,
            marker: removed.marker.as_deref(),
        };
        Self {
            tokenizer: counter.tokenizer(),
            exact: counter.is_exact(),
            tokens_before: trimmed.tokens_before,
            tokens: trimmed.tokens,
            removed: trimmed.removed.iter().map(entry).collect(),
        }
    }
}
