//! The input of a run, from text, JSON, a file or stdin; and files and URLs that a command opens, whatever they contain.
//! An error about the input names an example.

mod media;

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use cog_host::settings::MediaSettings;
use cog_json::{Limits, Node, SyntaxErrorKind, Value};
use cog_media::{MediaError, MediaLocation, Store, Stored};
use cog_module::{
    Module,
    files::{self, FileError},
    golden::{self, GoldenCase},
};
use cog_run::{CancelReason, RunInput};
use cog_spec::{Code, Envelope, ErrorBody, Outcome};

use super::{info::Fields, media::classify, runtime};
use crate::{args::InputArgs, output::truncate};

pub(super) use self::media::files as media_files;

/// The maximum input size, 30 MiB.
const MAX_INPUT: u64 = 30 * 1024 * 1024;

/// The maximum columns of a file name in a message: the name may be the input itself.
const MAX_NAME: usize = 100;

/// Reads the input, and adds the media of the flags to their fields. Without an input it is an empty object.
///
/// # Errors
/// E1006 for an unreadable file, E1005 for one that is too large, E1000 for invalid JSON, E1001 for media without a
/// field.
pub(super) fn read(
    args: &InputArgs,
    module: &Module,
    settings: &MediaSettings,
) -> Result<RunInput, ErrorBody> {
    let input = match (piped(args, module)?, args.input.as_deref().and_then(url_of)) {
        (Some(input), _) => input,
        (None, Some(url)) => RunInput::Json(fetched(url, settings)?),
        (None, None) => without_media(args)?,
    };
    if args.media.is_empty() { Ok(input) } else { media::add(input, &args.media, module) }
}

/// Returns whether the text of `--args` is a JSON object whose members are all fields of the module's input.
pub(super) fn is_json_as_text(input: &RunInput, module: &Module) -> bool {
    let RunInput::Args(text) = input else { return false };
    let Some(fields) = module.contract.input_schema().and_then(|schema| schema.get("properties")) else {
        return false;
    };
    let value =
        Value::parse_within(text.as_bytes(), Limits::default().with_bytes(MAX_INPUT)).unwrap_or_default();
    let mut names = value.members().map(|(name, _)| name).peekable();
    names.peek().is_some() && names.all(|name| fields.get(name).is_some())
}

fn without_media(args: &InputArgs) -> Result<RunInput, ErrorBody> {
    let (text, name) = match args {
        InputArgs { args: Some(text), .. } => return Ok(RunInput::Args(argument(text)?)),
        InputArgs { input_json: Some(text), .. } => (text.clone(), "--input-json"),
        InputArgs { input: Some(file), .. } => (text_of(file)?, &*name_of(file)),
        _ => ("{}".to_owned(), ""),
    };
    parse(&text, name).map(RunInput::Json)
}

/// Returns the text of `--args`: of stdin for `-`, of a file for `@FILE`; `@@` is a literal `@`.
fn argument(text: &str) -> Result<String, ErrorBody> {
    match text.strip_prefix('@') {
        _ if text == "-" => text_of(Path::new("-")),
        None => Ok(text.to_owned()),
        Some(literal) if literal.starts_with('@') => Ok(literal.to_owned()),
        Some(file) => text_of(Path::new(file)).map_err(|error| match error.suggestion {
            None => error.suggest("Write `@@` for text that starts with `@`."),
            Some(_) => error,
        }),
    }
}

/// Returns what is piped into a run that has no input although its module requires text: JSON if it is an object,
/// otherwise the text. For a module that takes a handoff packet it is JSON. Empty stdin counts as no input.
fn piped(args: &InputArgs, module: &Module) -> Result<Option<RunInput>, ErrorBody> {
    // Only where an input is missing anyway. A command in a script inherits a stdin that may never end, and must not wait for it.
    let has_input = args.input.is_some() || args.args.is_some() || args.input_json.is_some();
    let takes_packet = module.contract.takes_packet();
    if has_input || std::io::stdin().is_terminal() || !(takes_packet || requires_text(module)) {
        return Ok(None);
    }
    let text = match read_stdin() {
        Err(FileError::Empty) => return Ok(None),
        read => read.map_err(|error| unreadable(Path::new("-"), &error))?,
    };
    if takes_packet {
        return parse(&text, "stdin").map(|value| Some(RunInput::Json(value)));
    }
    let limits = Limits::default().with_bytes(MAX_INPUT);
    let value = Value::parse_within(text.as_bytes(), limits).ok().filter(|value| value.is_object());
    Ok(Some(value.map_or(RunInput::Args(text), RunInput::Json)))
}

/// Returns whether the input requires the field that the text of `--args` goes to.
fn requires_text(module: &Module) -> bool {
    let required = module.contract.input_schema().and_then(|input| input.get("required")?.as_array());
    let field = module.contract.args_target().ok();
    field.is_some_and(|field| required.is_some_and(|required| required.iter().any(|name| name == field)))
}

/// Reads a file, or stdin for `-`, for a command that judges any content. The inner error is why it is not text.
///
/// # Errors
/// E1006 for an unreadable file, E1005 for one that is too large.
pub(super) fn any_text(file: &Path) -> Result<Result<String, FileError>, ErrorBody> {
    match read_text(file) {
        Err(FileError::Empty) => Ok(Ok(String::new())),
        Err(error @ (FileError::Utf16 | FileError::NotUtf8 { .. } | FileError::Nul { .. })) => Ok(Err(error)),
        read => read.map(Ok).map_err(|error| unreadable(file, &error)),
    }
}

/// Reads a JSON document from a file, or from stdin for `-`.
///
/// # Errors
/// E1006 for an unreadable file, E1005 for one that is too large, E1000 for invalid JSON.
pub(super) fn json_of(file: &Path) -> Result<Value, ErrorBody> {
    parse(&text_of(file)?, &name_of(file))
}

fn text_of(file: &Path) -> Result<String, ErrorBody> {
    read_text(file).map_err(|error| unreadable(file, &error))
}

/// Returns the http(s) URL that an input is, if it is one.
fn url_of(file: &Path) -> Option<&str> {
    file.to_str().filter(|url| url.starts_with("https://") || url.starts_with("http://"))
}

/// Reads a JSON document at a URL that the operator allows.
fn fetched(url: &str, settings: &MediaSettings) -> Result<Value, ErrorBody> {
    let fetched = runtime::wait(fetch(url, settings))?;
    fetched.unwrap_or_else(|| {
        let reason = serde_json::json!({ "reason": CancelReason::Cancelled.as_str() });
        let error = ErrorBody::new(Code::StreamInterrupted, "interrupted while the input was read");
        Err(error.with_details(Value::from(reason)))
    })
}

/// Reads a JSON document at a URL that the operator allows.
///
/// # Errors
/// The codes of media for a URL that cannot be read, E1000 for invalid JSON.
pub(super) async fn fetch(url: &str, settings: &MediaSettings) -> Result<Value, ErrorBody> {
    let stored = open(url, settings, MAX_INPUT).await.map_err(|error| ErrorBody::from(&error))?;
    let text = text(&stored).map_err(|error| ErrorBody::from(&error))?;
    parse(&text.unwrap_or_default(), "the document at the URL")
}

fn read_text(file: &Path) -> Result<String, FileError> {
    if is_stdin(file) { read_stdin() } else { files::read_text(file, MAX_INPUT) }
}

/// Returns the name of the input for messages.
fn name_of(file: &Path) -> Cow<'_, str> {
    if is_stdin(file) { "stdin".into() } else { file.to_string_lossy() }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read_stdin() -> Result<String, FileError> {
    let mut bytes = Vec::new();
    // One byte more, so that an input of exactly the maximum differs from one that was cut.
    std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(FileError::TooLarge { limit: MAX_INPUT });
    }
    files::text_of(bytes)
}

fn unreadable(file: &Path, error: &FileError) -> ErrorBody {
    let code = match error {
        FileError::TooLarge { .. } => Code::InputTooLarge,
        FileError::Empty | FileError::Utf16 | FileError::NotUtf8 { .. } | FileError::Nul { .. } => {
            Code::ParseError
        }
        _ => Code::InvalidReference,
    };
    let name = name_of(file);
    let suggestion = match error {
        FileError::Missing if looks_like_json(&name) => "INPUT is a file name; pass JSON with --input-json.",
        FileError::Missing if name.contains(char::is_whitespace) => {
            "INPUT is a file name; pass text with --args."
        }
        FileError::Nul { .. } | FileError::NotUtf8 { .. } if is_media_name(file) => {
            "INPUT is a JSON file; pass media with --image, --audio, --video, --pdf or --file FIELD=FILE."
        }
        FileError::Nul { .. } | FileError::NotUtf8 { .. } if is_name_of_rows(file) => FOR_ROWS,
        FileError::NotAFile => "Use a regular file, or stdin: `… | cog run MODULE -`.",
        _ => error.suggestion(),
    };
    let shown = truncate(&name, MAX_NAME);
    ErrorBody::new(code, format!("cannot read the input {shown}: {error}")).suggest(suggestion)
}

fn parse(text: &str, name: &str) -> Result<Value, ErrorBody> {
    let limits = Limits::default().with_bytes(MAX_INPUT);
    Value::parse_within(text.as_bytes(), limits).map_err(|error| {
        let at = error.position(text);
        let message = format!("{name} is not JSON: line {}, column {}: {}", at.line, at.column, error.kind());
        let suggestion = match error.kind() {
            _ if is_name_of_rows(Path::new(name)) => FOR_ROWS,
            SyntaxErrorKind::TooDeep | SyntaxErrorKind::TooMany => "Reduce the nesting, or split the input.",
            _ if looks_like_json(text) => "Fix the JSON at this position.",
            _ => "Pass plain text with --args.",
        };
        ErrorBody::new(Code::ParseError, message).suggest(suggestion)
    })
}

const FOR_ROWS: &str =
    "INPUT is one JSON value; `cog batch MODULE FILE -o OUT` runs the module for each row of a file.";

/// Returns whether a file has the name of a media file.
fn is_media_name(file: &Path) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "png", "jpg", "jpeg", "gif", "webp", "heic", "avif", "mp3", "wav", "ogg", "m4a", "flac", "mp4",
        "mov", "webm", "pdf",
    ];
    has_extension(file, &EXTENSIONS)
}

/// Returns whether a file has the name of a file with rows for `cog batch`.
fn is_name_of_rows(file: &Path) -> bool {
    has_extension(file, &["jsonl", "ndjson", "csv", "arrow", "parquet"])
}

fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Opens a file or an http(s) URL with at most `limit` bytes. The file may be in any directory, and the URL must be one
/// that the operator allows.
///
/// # Errors
/// As for media in a run (docs/spec/media.md).
pub(super) async fn open(
    reference: &str,
    settings: &MediaSettings,
    limit: u64,
) -> Result<Stored, MediaError> {
    let store = Store::with_limit(limit);
    match classify(reference) {
        MediaLocation::Url(url) => match settings.fetcher() {
            Some(fetcher) => fetcher.fetch(&url, store).await.map(|fetched| fetched.stored),
            None => Err(MediaError::SourceUnavailable { what: "URLs" }),
        },
        _ => settings.files([PathBuf::from(reference)]).open(reference.as_ref(), store),
    }
}

/// Returns the content as text; none if it is not UTF-8.
///
/// # Errors
/// If the stored content cannot be read.
pub(super) fn text(stored: &Stored) -> Result<Option<String>, MediaError> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes)?;
    Ok(cog_module::files::text_of(bytes).ok())
}

/// The maximum length of an example input that is still readable, in bytes.
const READABLE: usize = 400;

/// Adds an example command to an error about the input that has no suggestion.
pub(super) fn advise(error: ErrorBody, args: &InputArgs, module: &Module) -> ErrorBody {
    let is_about_input = [Code::InvalidInput, Code::MissingRequiredField, Code::TypeMismatch]
        .into_iter()
        .any(|code| error.has_failed_with(code));
    if error.suggestion.is_some() || !is_about_input {
        return error;
    }
    let name = quoted(args.module());
    if !args.is_empty() {
        return error.suggest(format!("`cog info {name}` shows the input."));
    }
    let fields = Fields::for_input(module).names().join(", ");
    let example = example(args.module(), module);
    error.suggest(format!("Give an input with {fields} (* = required), for example `{example}`."))
}

/// Adds an example command to the error of an envelope.
pub(super) fn advised(mut envelope: Envelope, args: &InputArgs, module: &Module) -> Envelope {
    if let Outcome::Failure { error, .. } = &mut envelope.outcome {
        *error = advise(error.clone(), args, module);
    }
    envelope
}

/// Returns a command that runs the module with valid input.
pub(super) fn example(module_name: &str, module: &Module) -> String {
    let name = quoted(module_name);
    if module.contract.requires_packet() {
        let agent = &module.manifest.name;
        return format!("cog handoff new --from me --to {agent} --objective \"…\" | cog run {name} -");
    }
    if takes_text_alone(module) {
        return format!("cog run {name} --args \"…\"");
    }
    match sample(module) {
        Some(input) => format!("cog run {name} --input-json '{input}'"),
        None => format!("cog run {name} input.json"),
    }
}

/// Whether `--args` alone is a valid input.
fn takes_text_alone(module: &Module) -> bool {
    let contract = &module.contract;
    contract.args_target().is_ok_and(|field| {
        let input = Value::from(serde_json::json!({ field: "…" }));
        // The text stands for another one, so that only what is missing counts, not what is wrong with it.
        contract.check_input(input.node()).iter().all(|found| found.rule != "required")
    })
}

/// Returns the shortest input of a golden test that succeeds, or an input generated from the schema, unless it is long.
fn sample(module: &Module) -> Option<String> {
    let contract = &module.contract;
    let golden = golden::discover(module).cases.into_iter().filter(succeeds).map(|case| case.input);
    let valid = golden.filter(|input| contract.check_input(input.node()).is_empty());
    let shortest = valid.map(|input| input.to_string()).filter(|input| is_readable(input));
    let made_up = || Some(contract.sample_input(0)?.to_string()).filter(|input| is_readable(input));
    shortest.min_by_key(String::len).or_else(made_up)
}

/// Whether an input is short, and can be quoted for a shell as it is.
fn is_readable(input: &str) -> bool {
    input.len() <= READABLE && !input.contains('\'')
}

/// Returns whether the expected answer of a case is not an error.
fn succeeds(case: &GoldenCase) -> bool {
    let answer = case.expected.answer().and_then(|answer| answer.get("ok"));
    answer.and_then(Node::as_bool) != Some(false)
}

/// Quotes an argument for a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::MediaFlags;

    fn args(input: Option<&str>, input_json: Option<&str>) -> InputArgs {
        InputArgs {
            module: Some("m".to_owned()),
            input: input.map(Into::into),
            args: None,
            input_json: input_json.map(str::to_owned),
            media: MediaFlags::default(),
        }
    }

    #[test]
    fn no_input_is_an_empty_object() {
        let Ok(RunInput::Json(value)) = without_media(&args(None, None)) else { panic!("no input") };
        assert_eq!(value.to_string(), "{}");
    }

    #[test]
    fn media_file_as_input_names_the_flags() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("photo.PNG");
        cog_module::files::write_directory(
            directory.path(),
            &[("photo.PNG".to_owned(), b"\x89PNG\0".to_vec())],
        )
        .unwrap();
        let error = without_media(&args(file.to_str(), None)).unwrap_err();
        assert!(error.suggestion.unwrap().contains("pass media with --image"));
    }

    #[test]
    fn invalid_json_is_an_error_with_position() {
        let error = without_media(&args(None, Some("{\n \"a\": why}"))).unwrap_err();
        assert_eq!(error.code, Code::ParseError.into());
        assert_eq!(error.message, "--input-json is not JSON: line 2, column 7: expected a value");
    }

    #[test]
    fn missing_file_is_an_invalid_reference() {
        let error = without_media(&args(Some("/nowhere/input.json"), None)).unwrap_err();
        assert_eq!(error.code, Code::InvalidReference.into());
        assert_eq!(error.message, "cannot read the input /nowhere/input.json: file not found");
    }
}
