//! `cog media frames`: the frames and the audio of a video.

use std::{io::Read as _, path::Path, time::Duration};

use cog_host::settings::{Environment, Flags, MediaSettings, Settings};
use cog_json::{ToJson, Writer};
use cog_media::{Frame, FramePlan, FrameSelection, MediaError, MediaRules, Stored};
use cog_module::files;
use cog_spec::{ErrorBody, Modality};

use super::{
    super::{emit, runtime},
    sources,
};
use crate::{args::FramesArgs, error::CliError, exit::Exit, output::Console};

/// Writes the frames to a directory, and prints the file and the time of each.
pub(crate) fn frames(
    args: &FramesArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let Some(extracted) = runtime::wait(extract(args, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let extracted = extracted.map_err(|error| ErrorBody::from(&error))?;
    files::write_directory(&args.output, &extracted.files()?)
        .map_err(|source| emit::unwritable(&args.output, source))?;
    for (at, frame) in extracted.frames.iter().enumerate() {
        console.print_json(&Line { at_ms: frame.at_ms, file: &args.output.join(name(at)) })?;
    }
    if args.audio && extracted.audio.is_none() {
        console.note("the video has no audio");
    }
    Ok(Exit::Ok)
}

/// The extracted frames and audio.
struct Extracted {
    frames: Vec<Frame>,
    audio: Option<Stored>,
}

async fn extract(args: &FramesArgs, settings: &MediaSettings) -> Result<Extracted, MediaError> {
    let rules = MediaRules { kinds: vec![Modality::Video], ..MediaRules::default() };
    let video = sources::open(&args.source, &rules, settings).await?;
    let tool = settings.tool();
    let frames = tool.frames(&video, &plan(args)).await?;
    let audio = if args.audio { tool.audio(&video).await? } else { None };
    Ok(Extracted { frames, audio })
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

impl Extracted {
    /// Returns the files of the directory, which is written atomically.
    fn files(&self) -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let frames = self.frames.iter().enumerate().map(|(at, frame)| (name(at), &frame.image));
        let audio = self.audio.iter().map(|audio| ("audio.wav".to_owned(), audio));
        frames.chain(audio).map(|(name, stored)| Ok((name, read_all(stored)?))).collect()
    }
}

fn name(at: usize) -> String {
    format!("frame-{:04}.jpg", at + 1)
}

fn read_all(stored: &Stored) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct Line<'a> {
    at_ms: u64,
    file: &'a Path,
}

/// Written by hand: the path is written as text.
impl ToJson for Line<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("at_ms", &self.at_ms);
            w.field("file", &*self.file.to_string_lossy());
        });
    }
}
