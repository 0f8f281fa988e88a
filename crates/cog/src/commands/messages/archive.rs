//! `cog messages archive`: stores a history with its images, before their URLs expire.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use cog_harmony::{Conversation, FilePart, FileSource, ImagePart, Part, VideoFrame};
use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::Value;
use cog_media::{
    Access, Frame, FramePlan, FrameSelection, Media, MediaDirectory, MediaError, MediaLocation, MediaRules,
    MediaSource, encode_base64, obtain,
};
use cog_module::files;
use cog_spec::{ErrorBody, Modality};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use crate::{
    args::{ArchiveArgs, ExpandArgs},
    commands::{emit, messages, runtime},
    error::{CliError, Exit},
    output::Console,
};

/// The name of the history in an archive.
const HISTORY: &str = "messages.json";
/// How many URLs are fetched at the same time.
const CONCURRENT: usize = 8;

/// Writes the images of a history to a directory, and then the history with their names. The exit code is 1 if an image was not
/// fetched.
pub(crate) fn archive(
    args: &ArchiveArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let document = messages::read(&args.file)?;
    let mut conversation = messages::conversation(&document, &args.file)?;
    let settings = Settings::read(Flags::default(), environment)?;
    files::create_directory(&args.directory).map_err(|source| emit::unwritable(&args.directory, source))?;
    let directory = MediaDirectory::new(&args.directory);
    let Some(stored) = runtime::wait(store_all(&conversation, &directory, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let stored = stored?;
    let is_complete = rewrite(&mut conversation, &stored, console)?;
    let text = document.with_messages(&conversation);
    // Last, so that a history never names a file that is not there.
    emit::file(&args.directory.join(HISTORY), &text, console)?;
    Ok(if is_complete { Exit::Ok } else { Exit::Failed })
}

/// The file name of each URL, or why it was not fetched.
type Stored = HashMap<String, Result<String, MediaError>>;

/// Fetches each URL once, and writes its content as it arrives.
async fn store_all(
    conversation: &Conversation,
    directory: &MediaDirectory,
    settings: &MediaSettings,
) -> Result<Stored, ErrorBody> {
    let access = Access { fetcher: settings.fetcher(), tool: Some(settings.tool()), ..Access::default() };
    let mut urls: Vec<&str> =
        conversation.messages().iter().flat_map(|message| &message.content).filter_map(url_of).collect();
    urls.sort_unstable();
    urls.dedup();
    let fetches = urls.into_iter().map(|url| fetch(url.to_owned(), access.clone()));
    let mut fetched = stream::iter(fetches).buffer_unordered(CONCURRENT);
    let mut stored = Stored::new();
    while let Some((url, outcome)) = fetched.next().await {
        let name = outcome
            .map(|media| directory.store(&media).map_err(|error| ErrorBody::from(&error)))
            .map_or_else(|error| Ok(Err(error)), |name| name.map(Ok))?;
        stored.insert(url, name);
    }
    Ok(stored)
}

async fn fetch(url: String, access: Access) -> (String, Result<Media, MediaError>) {
    let source = MediaSource::new(MediaLocation::Url(url.clone()));
    (url, obtain(source, MediaRules::default(), access).await)
}

/// Returns the http(s) URL of a part.
fn url_of(part: &Part) -> Option<&str> {
    let url = match part {
        Part::Image(image) => &image.url,
        Part::FileReference(file) => match &file.source {
            FileSource::Url(url) => url,
            FileSource::Id(_) => return None,
        },
        _ => return None,
    };
    let scheme = url.split_once("://")?.0;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(url)
}

/// Replaces the URLs with the file names, and prints each with its path. Returns whether all were fetched.
fn rewrite(conversation: &mut Conversation, stored: &Stored, console: &Console) -> Result<bool, CliError> {
    let mut is_complete = true;
    for (index, message) in conversation.0.iter_mut().enumerate() {
        for (part_index, part) in message.content.iter_mut().enumerate() {
            let Some(outcome) = url_of(part).and_then(|url| stored.get(url)) else { continue };
            let path = format!("messages[{index}].content[{part_index}]");
            console.print_json(&Line::new(&path, part, outcome))?;
            match outcome {
                Ok(name) => set_url(part, name),
                Err(_) => is_complete = false,
            }
        }
    }
    Ok(is_complete)
}

fn set_url(part: &mut Part, name: &str) {
    match part {
        Part::Image(image) => name.clone_into(&mut image.url),
        Part::FileReference(file) => file.source = FileSource::Url(name.to_owned()),
        _ => {}
    }
}

/// The result for one part.
#[derive(Serialize)]
struct Line<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// Without its query, which may contain a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> Line<'a> {
    fn new(path: &'a str, part: &'a Part, outcome: &'a Result<String, MediaError>) -> Self {
        let none = Line { path, file: None, url: None, code: None, error: None };
        match outcome {
            Ok(name) => Line { file: Some(name), ..none },
            Err(error) => Line {
                url: url_of(part).and_then(|url| url.split(['?', '#']).next()),
                code: Some(error.code().as_str()),
                error: Some(format!("{}{error}", expired(error))),
                ..none
            },
        }
    }
}

/// Returns the beginning of the message about a URL that servers no longer accept.
fn expired(error: &MediaError) -> &'static str {
    match error {
        MediaError::Fetch { status: Some(401 | 403 | 404 | 410), .. } => {
            "the URL has expired or was removed: "
        }
        _ => "",
    }
}

// `cog messages expand`: turns videos, audio files and archived files into parts that models read.

/// The extensions of videos, which are also the formats of audio parts with a video in them.
const VIDEOS: [&str; 6] = ["mp4", "m4v", "mov", "webm", "mkv", "avi"];

/// Writes the expanded history. The exit code is 1 if a part could not be expanded.
pub(crate) fn expand(
    args: &ExpandArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    emit::check(args.output.as_deref())?;
    let document = super::read(&args.file)?;
    let conversation = super::conversation(&document, &args.file)?;
    let settings = Settings::read(Flags::default(), environment)?;
    let expander = Expander { access: access(&args.file, &settings.media), plan: plan(args), console };
    let Some((expanded, is_complete)) = runtime::wait(expander.conversation(conversation))? else {
        return Ok(Exit::Interrupted);
    };
    super::write(&document.with_messages(&expanded), args.output.as_deref(), console)?;
    Ok(if is_complete { Exit::Ok } else { Exit::Failed })
}

/// Allows the files in the directory of the history, and the URLs that the operator allows.
fn access(file: &Path, settings: &MediaSettings) -> Access {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.map_or_else(|| PathBuf::from("."), Path::to_owned);
    Access {
        fetcher: settings.fetcher(),
        files: settings.files([directory.clone()]),
        directory: Some(directory),
        tool: Some(settings.tool()),
        ..Access::default()
    }
}

fn plan(args: &ExpandArgs) -> FramePlan {
    let default = FramePlan::default();
    FramePlan {
        selection: args.every.map_or(default.selection, FrameSelection::Every),
        max_frames: args.max_frames.unwrap_or(default.max_frames),
        ..default
    }
}

struct Expander<'a> {
    access: Access,
    plan: FramePlan,
    console: &'a Console,
}

impl Expander<'_> {
    /// Returns the conversation with each part expanded, and whether all could be.
    async fn conversation(&self, mut conversation: Conversation) -> (Conversation, bool) {
        let mut is_complete = true;
        for (index, message) in conversation.0.iter_mut().enumerate() {
            // One part may become many, so the list is rebuilt.
            let parts = std::mem::take(&mut message.content).into_iter().enumerate();
            for (part_index, part) in parts {
                let expanded = self.part(&part).await;
                is_complete &= expanded.is_ok();
                self.report(&format!("messages[{index}].content[{part_index}]"), &expanded);
                match expanded {
                    Ok(Some(parts)) => message.content.extend(parts),
                    _ => message.content.push(part),
                }
            }
        }
        (conversation, is_complete)
    }

    fn report(&self, path: &str, expanded: &Result<Option<Vec<Part>>, MediaError>) {
        match expanded {
            Ok(None) => {}
            Ok(Some(parts)) => self.console.note(&format!("expanded: {path} to {}", describe(parts))),
            Err(error) => {
                self.console.note(&format!("not expanded: {path}: {} {error}", error.code().as_str()));
            }
        }
    }

    /// Returns the parts that replace one; none for a part that models read as it is.
    async fn part(&self, part: &Part) -> Result<Option<Vec<Part>>, MediaError> {
        let Some(location) = location_of(part) else { return Ok(None) };
        let media = obtain(MediaSource::new(location), MediaRules::default(), self.access.clone()).await?;
        Ok(Some(match media.kind() {
            Modality::Video => self.frames(&media, part).await?,
            Modality::Audio => vec![self.audio(&media).await?],
            Modality::Image => vec![image(part, &media)?],
            _ => vec![document(part, &media)?],
        }))
    }

    /// Returns the frames of a video, then its audio.
    async fn frames(&self, video: &Media, part: &Part) -> Result<Vec<Part>, MediaError> {
        let tool = self.access.tool.as_ref().ok_or(MediaError::SourceUnavailable { what: "videos" })?;
        let detail = if let Part::Image(image) = part { image.detail } else { None };
        let id = format!("vid_{}", video.sha256()?.get(..12).unwrap_or_default());
        let frames = tool.frames(video, &self.plan).await?;
        let mut parts = Vec::with_capacity(frames.len() + 1);
        for Frame { at_ms, number, image } in &frames {
            let url = data_url("image/jpeg", &encode_base64(image)?);
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of a video are far below 2^52")]
            let timestamp_sec = *at_ms as f64 / 1000.0;
            let video = VideoFrame { video_id: Some(id.clone()), timestamp_sec, frame_index: *number };
            parts.push(Part::Image(ImagePart { url, detail, video: Some(video), ..ImagePart::default() }));
        }
        if let Some(audio) = tool.audio(video).await? {
            parts.push(Part::media("audio/wav", encode_base64(&audio)?));
        }
        Ok(parts)
    }

    /// Returns audio as it is if models read its format, otherwise as WAV.
    async fn audio(&self, audio: &Media) -> Result<Part, MediaError> {
        let converted = match (audio.media_type(), &self.access.tool) {
            ("audio/wav" | "audio/mpeg", _) | (_, None) => None,
            (_, Some(tool)) => tool.audio(audio).await?,
        };
        Ok(match converted {
            Some(wav) => Part::media("audio/wav", encode_base64(&wav)?),
            None => Part::media(audio.media_type(), encode_base64(audio.bytes())?),
        })
    }
}

/// Describes parts: `12 image_url, 1 input_audio`.
fn describe(parts: &[Part]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for part in parts {
        match counts.iter_mut().find(|(kind, _)| *kind == part.kind()) {
            Some((_, count)) => *count += 1,
            None => counts.push((part.kind(), 1)),
        }
    }
    counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

/// Returns where the content of a part is that has to be expanded; none for any other part.
fn location_of(part: &Part) -> Option<MediaLocation> {
    match part {
        Part::Image(image) => location_of_url(&image.url, None),
        Part::Audio(audio) => VIDEOS.contains(&audio.format.as_str()).then(|| base64(&audio.data)),
        Part::File(file) => is_audio_or_video(&file.media_type).then(|| base64(&file.data)),
        Part::FileReference(file) => match &file.source {
            FileSource::Url(url) => location_of_url(url, file.media_type.as_deref()),
            FileSource::Id(_) => None,
        },
        _ => None,
    }
}

fn location_of_url(url: &str, media_type: Option<&str>) -> Option<MediaLocation> {
    if let Some(rest) = url.strip_prefix("data:") {
        let (media_type, data) = rest.split_once(";base64,")?;
        return is_audio_or_video(media_type).then(|| base64(data));
    }
    if !url.contains(':') {
        return (!url.is_empty()).then(|| MediaLocation::File(PathBuf::from(url)));
    }
    let is_expanded = media_type.map_or_else(|| names_video(url), is_audio_or_video);
    is_expanded.then(|| MediaLocation::Url(url.to_owned()))
}

fn base64(data: &str) -> MediaLocation {
    MediaLocation::Base64(Value::from(serde_json::Value::from(data)))
}

/// Returns whether the path of a URL ends with the extension of a video.
fn names_video(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| VIDEOS.contains(&extension.as_str()))
}

fn is_audio_or_video(media_type: &str) -> bool {
    media_type.starts_with("audio/") || media_type.starts_with("video/")
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Returns an image part with its content instead of its file name.
fn image(part: &Part, media: &Media) -> Result<Part, MediaError> {
    let url = data_url(media.media_type(), &encode_base64(media.bytes())?);
    Ok(match part {
        Part::Image(image) => Part::Image(ImagePart { url, ..image.clone() }),
        _ => Part::image_at(url),
    })
}

/// Returns a file part with its content instead of its file name.
fn document(part: &Part, media: &Media) -> Result<Part, MediaError> {
    let media_type = media.media_type().to_owned();
    let data = encode_base64(media.bytes())?;
    Ok(match part {
        Part::FileReference(file) => {
            let filename = file.filename.clone();
            let other = file.other.clone();
            Part::File(FilePart { media_type, data, filename, other })
        }
        _ => Part::media(&media_type, data),
    })
}
