//! `cog media`: inspects media files.

use std::{
    io::{BufRead, Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Writer};
use cog_media::{
    Access, Frame, FramePlan, FrameSelection, Media, MediaCapabilities, MediaDeclaration, MediaError,
    MediaInfo, MediaLocation, MediaPart, MediaRules, MediaSource, PageText, Store, Stored, UrlGuard, check,
    normalise, obtain, type_of_name,
};
use cog_module::files;
use cog_spec::{ErrorBody, Modality};
use serde::Serialize;

use super::{emit, runtime};
use crate::{
    args::{CheckArgs, FramesArgs, MediaArgs, MediaCommand, ProbeArgs, StripArgs, TextArgs},
    error::{CliError, Exit},
    output::{Console, Palette, Table},
};

/// Runs the subcommand.
pub(crate) fn media(args: MediaArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        MediaCommand::Check(args) => check_sources(&args, environment, console),
        MediaCommand::Probe(args) => probe(&args, environment, console),
        MediaCommand::Strip(args) => strip(&args, environment, console),
        MediaCommand::Frames(args) => frames(&args, environment, console),
        MediaCommand::Text(args) => document_text(&args, environment, console),
    }
}

/// Prints the properties of each source, or why it is rejected.
fn probe(args: &ProbeArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let rules = MediaRules::default();
    let is_json = console.prints_json(args.format);
    let mut found = Vec::new();
    for source in &args.sources {
        let Some(outcome) = runtime::wait(open_source(source, &rules, &settings.media))? else {
            return Ok(Exit::Interrupted);
        };
        let finding = Finding { source, outcome };
        if is_json {
            console.print_json(&finding)?;
        }
        found.push(finding);
    }
    if !is_json {
        console.print(&table(&found, console))?;
    }
    Ok(if found.iter().all(|finding| finding.outcome.is_ok()) { Exit::Ok } else { Exit::Failed })
}

/// The result for one source.
struct Finding<'a> {
    source: &'a str,
    outcome: Result<Media, MediaError>,
}

/// Written by hand: the members depend on the kind of the media file.
impl ToJson for Finding<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("source", self.source);
            match &self.outcome {
                Ok(media) => media.write_fields(w),
                Err(error) => {
                    w.field("error", &Refusal(error));
                }
            }
        });
    }
}

struct Refusal<'a>(&'a MediaError);

/// Written by hand: all members are computed.
impl ToJson for Refusal<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("code", &self.0.code());
            w.field("message", &self.0.to_string());
            w.field("suggestion", self.0.suggestion());
        });
    }
}

fn table(found: &[Finding<'_>], console: &Console) -> String {
    let mut table = Table::new(["source", "type", "bytes", "details"]);
    for Finding { source, outcome } in found {
        table.row(match outcome {
            Ok(media) => [
                (*source).to_owned(),
                media.media_type().to_owned(),
                media.bytes().len().to_string(),
                describe_facts(media.info()),
            ],
            Err(error) => {
                [(*source).to_owned(), "-".to_owned(), "-".to_owned(), format!("{}: {error}", error.code())]
            }
        });
    }
    table.render(console.out().palette, console.out_columns())
}

fn describe_facts(facts: &MediaInfo) -> String {
    let sides = facts.width.zip(facts.height).map(|(width, height)| format!("{width}×{height}"));
    let duration = facts.duration_ms.map(|ms| format!("{}.{:03} s", ms / 1000, ms % 1000));
    let pages =
        facts.pages.map(|pages| if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") });
    let turn = facts.orientation.map(|turn| format!("EXIF orientation {}", turn.exif()));
    [sides, duration, pages, turn].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Writes the image to the file of the arguments or to stdout.
fn strip(args: &StripArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let file = args.output.as_deref().filter(|path| !emit::is_stdout(path));
    if file.is_none() && console.is_interactive() {
        return Err(CliError::Usage {
            message: "cannot write an image to a terminal".to_owned(),
            suggestion: Some("Write it to a file with -o FILE.".to_owned()),
        });
    }
    emit::check(file)?;
    let settings = Settings::read(Flags::default(), environment)?;
    let rules = MediaRules { kinds: vec![Modality::Image], ..MediaRules::default() };
    let Some(opened) = runtime::wait(open_source(&args.source, &rules, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let capabilities = capabilities(file);
    let stripped = match opened.and_then(|media| normalise(&media, &capabilities, &rules)) {
        Err(MediaError::UnsupportedByProvider { media_type }) => return Err(other_format(media_type)),
        stripped => stripped,
    };
    let bytes =
        stripped.and_then(|stripped| image_bytes(&stripped)).map_err(|error| without_module(&error))?;
    write_image(&bytes, file, console)?;
    Ok(Exit::Ok)
}

/// Returns the types that the image may have: the type of the file name, or any if the name has none.
fn capabilities(file: Option<&Path>) -> MediaCapabilities {
    let any = MediaCapabilities::default();
    match file.and_then(type_of_name).filter(|named| any.media_types.contains(named)) {
        Some(named) => MediaCapabilities { media_types: vec![named], ..any },
        None => any,
    }
}

fn other_format(media_type: &str) -> CliError {
    CliError::Usage {
        message: format!("{media_type} cannot be written in the format of the output file's name"),
        suggestion: Some("use a name that ends with .png, .jpg or .webp".to_owned()),
    }
}

/// Returns the error about a file that was read for no module.
fn without_module(error: &MediaError) -> ErrorBody {
    let mut body = ErrorBody::from(error);
    if matches!(error, MediaError::Unsupported { .. }) {
        body.suggestion = Some("Convert it to one of the allowed types.".to_owned());
    }
    body
}

fn image_bytes(stripped: &MediaPart) -> Result<Vec<u8>, MediaError> {
    let mut bytes = Vec::new();
    stripped.stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_image(bytes: &[u8], file: Option<&Path>, console: &Console) -> Result<(), CliError> {
    match file {
        Some(path) => emit::bytes(path, bytes, console),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)?;
            Ok(out.flush()?)
        }
    }
}

/// Writes the frames to a directory, and prints the file and the time of each.
fn frames(args: &FramesArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(extracted) = runtime::wait(extract(args, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let extracted = extracted.map_err(|error| ErrorBody::from(&error))?;
    files::write_directory(&args.output, &extracted.files()?)
        .map_err(|source| emit::unwritable(&args.output, source))?;
    for (at, frame) in extracted.frames.iter().enumerate() {
        console.print_json(&FrameLine { at_ms: frame.at_ms, file: &args.output.join(frame_name(at)) })?;
    }
    if args.audio && extracted.audio.is_none() {
        console.note("the video has no audio");
    }
    Ok(Exit::Ok)
}

/// The extracted frames and audio.
struct VideoParts {
    frames: Vec<Frame>,
    audio: Option<Stored>,
}

async fn extract(args: &FramesArgs, settings: &MediaSettings) -> Result<VideoParts, MediaError> {
    let rules = MediaRules { kinds: vec![Modality::Video], ..MediaRules::default() };
    let video = open_source(&args.source, &rules, settings).await?;
    let tool = settings.tool();
    let frames = tool.frames(&video, &plan(args)).await?;
    let audio = if args.audio { tool.audio(&video).await? } else { None };
    Ok(VideoParts { frames, audio })
}

fn plan(args: &FramesArgs) -> FramePlan {
    let default = FramePlan::default();
    let selection = match args.count {
        Some(count) => FrameSelection::Count(count),
        None => FrameSelection::Every(args.every.unwrap_or(Duration::from_secs(1))),
    };
    let max_frames = args.max_frames.or(args.count).unwrap_or(default.max_frames);
    FramePlan { selection, max_frames, max_side: args.max_dimension }
}

impl VideoParts {
    /// Returns the files of the directory, which is written atomically.
    fn files(&self) -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let frames = self.frames.iter().enumerate().map(|(at, frame)| (frame_name(at), &frame.image));
        let audio = self.audio.iter().map(|audio| ("audio.wav".to_owned(), audio));
        frames.chain(audio).map(|(name, stored)| Ok((name, stored_bytes(stored)?))).collect()
    }
}

fn frame_name(at: usize) -> String {
    format!("frame-{:04}.jpg", at + 1)
}

fn stored_bytes(stored: &Stored) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct FrameLine<'a> {
    at_ms: u64,
    file: &'a Path,
}

/// Written by hand: the path is written as text.
impl ToJson for FrameLine<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("at_ms", &self.at_ms);
            w.field("file", &*self.file.to_string_lossy());
        });
    }
}

/// Prints the text of each page.
fn document_text(args: &TextArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(pages) = runtime::wait(read_pages(&args.source, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let pages = pages.map_err(|error| ErrorBody::from(&error))?;
    let blank: Vec<_> = pages.iter().filter(|page| page.text.is_empty()).map(|page| page.number).collect();
    if !blank.is_empty() {
        console.note(&format!("no text on {}", numbers(&blank)));
    }
    let unread: Vec<_> = pages.iter().filter(|page| page.unread > 0).map(|page| page.number).collect();
    if !unread.is_empty() {
        console.note(&format!("form fields or annotations could not be read on {}", numbers(&unread)));
    }
    let unknown: Vec<_> = pages.iter().filter(|page| page.unknown > 0).map(|page| page.number).collect();
    if !unknown.is_empty() {
        console.note(&format!("some characters have no meaning in their fonts on {}", numbers(&unknown)));
    }
    if args.format.is_json() {
        console.print_json(&Pages { source: &args.source, pages: &pages })?;
    } else {
        console.print(&PageText::marked(&pages))?;
    }
    Ok(if blank.len() == pages.len() { Exit::Failed } else { Exit::Ok })
}

async fn read_pages(source: &str, settings: &MediaSettings) -> Result<Vec<PageText>, MediaError> {
    let rules = MediaRules { kinds: vec![Modality::Document], ..MediaRules::default() };
    let media = open_source(source, &rules, settings).await?;
    settings.tool().text(media.bytes()).await
}

/// `page 2`, `pages 2, 5 and 4 more`.
fn numbers(pages: &[u32]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> = pages.iter().take(SHOWN).map(u32::to_string).collect();
    let word = if pages.len() == 1 { "page" } else { "pages" };
    let more = match pages.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{word} {}{more}", shown.join(", "))
}

#[derive(Serialize)]
struct Pages<'a> {
    source: &'a str,
    pages: &'a [PageText],
}

/// Opens and checks a source: a URL, a file, or `-` for stdin.
///
/// # Errors
/// As in a run, but the file may be in any directory (docs/spec/media.md).
async fn open_source(
    source: &str,
    rules: &MediaRules,
    settings: &MediaSettings,
) -> Result<Media, MediaError> {
    if source == "-" {
        return open_stdin(rules, settings).await;
    }
    obtain(MediaSource::new(classify(source)), rules.clone(), access(source, settings)).await
}

/// Classifies a source: with a scheme, or empty, it is a URL, otherwise a file.
pub(super) fn classify(source: &str) -> MediaLocation {
    let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
    // A scheme of one letter is a drive.
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme || source.is_empty() {
        MediaLocation::Url(source.to_owned())
    } else {
        MediaLocation::File(PathBuf::from(source))
    }
}

/// Allows this file, and the URLs that the operator allows.
fn access(source: &str, settings: &MediaSettings) -> Access {
    Access {
        fetcher: settings.fetcher(),
        files: settings.files([PathBuf::from(source)]),
        tool: Some(settings.tool()),
        ..Access::default()
    }
}

async fn open_stdin(rules: &MediaRules, settings: &MediaSettings) -> Result<Media, MediaError> {
    let mut store = Store::with_limit(rules.max_bytes_of_any());
    store.push_all(std::io::stdin().lock())?;
    check(store.finish(), &MediaDeclaration::default(), rules, Some(&settings.tool())).await
}

// `cog media check`: whether a run would accept a source.

/// The maximum length of a line of stdin, in bytes; no URL and no path is longer.
const MAX_LEN: u64 = 64 * 1024;

/// Prints the decision on each source as soon as it is known.
fn check_sources(args: &CheckArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let checker = Checker::new(&settings.media, args.no_fetch);
    let is_json = console.prints_json(args.format);
    runtime::block_on(async {
        let mut exit = Exit::Ok;
        for source in sources(&args.sources) {
            let source = source?;
            let decision = Decision { outcome: checker.decide(&source).await, source };
            if decision.outcome.is_err() {
                exit = Exit::Failed;
            }
            if is_json {
                console.print_json(&decision)?;
            } else {
                console.print(&decision.describe(console.out().palette))?;
            }
        }
        Ok(exit)
    })?
}

/// Returns the sources of the arguments, with the lines of stdin instead of `-`.
fn sources(arguments: &[String]) -> impl Iterator<Item = std::io::Result<String>> {
    arguments.iter().flat_map(|argument| -> Box<dyn Iterator<Item = std::io::Result<String>>> {
        match argument.as_str() {
            "-" => Box::new(Lines(std::io::stdin().lock())),
            argument => Box::new(std::iter::once(Ok(argument.to_owned()))),
        }
    })
}

/// Reads lines without their line endings. Long lines are truncated, and invalid UTF-8 is replaced.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = std::io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match (&mut self.0).take(MAX_LEN).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            // The rest of a long line is skipped, or it would be read as the next source.
            Ok(_) if !line.ends_with(b"\n") => {
                if let Err(error) = self.0.skip_until(b'\n') {
                    return Some(Err(error));
                }
            }
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        Some(Ok(line.strip_suffix('\r').unwrap_or(line).to_owned()))
    }
}

/// Decides by the operator's settings.
struct Checker {
    guard: UrlGuard,
    access: Access,
    rules: MediaRules,
    form_only: bool,
}

impl Checker {
    fn new(settings: &MediaSettings, form_only: bool) -> Self {
        let access = Access {
            fetcher: settings.fetcher().filter(|_| !form_only),
            files: settings.files([PathBuf::from(".")]),
            tool: Some(settings.tool()),
            ..Access::default()
        };
        Self { guard: settings.guard(), access, rules: MediaRules::default(), form_only }
    }

    async fn decide(&self, source: &str) -> Result<(), MediaError> {
        let place = classify(source);
        if !self.form_only {
            return obtain(MediaSource::new(place), self.rules.clone(), self.access.clone()).await.map(drop);
        }
        match place {
            MediaLocation::Url(url) => match self.guard.judge(&url) {
                Ok(_) => Ok(()),
                Err(refusal) => Err(MediaError::Refused { refusal, hop: 0 }),
            },
            MediaLocation::File(path) => self.access.files.check(&path),
            _ => Ok(()),
        }
    }
}

/// The decision on a source.
struct Decision {
    source: String,
    outcome: Result<(), MediaError>,
}

impl Decision {
    fn describe(&self, palette: Palette) -> String {
        match &self.outcome {
            Ok(()) => format!("{} {}\n", palette.success("allowed"), self.source),
            Err(error) => {
                let refused = palette.error(format_args!("refused {}", error.code()));
                format!("{refused} {} {}\n", self.source, palette.dim(error))
            }
        }
    }
}

/// Written by hand: all but the source is computed.
impl ToJson for Decision {
    fn write_json(&self, w: &mut Writer<'_>) {
        let error = self.outcome.as_ref().err();
        w.object(|w| {
            w.field("source", &self.source);
            w.field("allowed", &error.is_none());
            w.field("code", &error.map(|error| error.code().as_str()));
            w.field("reason", &error.map(ToString::to_string));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_with_scheme_is_url() {
        for url in ["", "http://a", "HTTP:a", "javascript:alert(1)", "data:,", "http+unix://a"] {
            assert!(matches!(classify(url), MediaLocation::Url(_)), "{url}");
        }
        for file in ["a.png", "./a:b.png", "C:\\a.png", "/etc/passwd", "//127.0.0.1/", " http://a"] {
            assert!(matches!(classify(file), MediaLocation::File(_)), "{file}");
        }
    }

    #[test]
    fn every_line_is_one_source() {
        let long = "x".repeat(100_000);
        let text = format!("a\n\n b \r\n{long}\n\u{fffd}\nlast");
        let lines: Vec<_> = Lines(text.as_bytes()).map(Result::unwrap).collect();
        let truncated = &long[..usize::try_from(MAX_LEN).unwrap()];
        assert_eq!(lines, ["a", "", " b ", truncated, "\u{fffd}", "last"]);
        assert_eq!(Lines(&b""[..]).count(), 0);
        assert_eq!(Lines(&b"\n"[..]).count(), 1);
    }
}
