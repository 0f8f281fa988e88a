//! `cog media frames`: the images of a video that a model is shown, and its sound.

use std::{io::Read as _, path::Path, time::Duration};

use cog_json::{ToJson, Writer};
use cog_media::{Frame, FramePlan, FrameSelection, MediaError, MediaRules, Stored};
use cog_module::files;
use cog_spec::{ErrorBody, Modality};

use super::{
    super::{emit, running},
    sources,
};
use crate::{
    args::FramesArgs,
    error::CliError,
    exit::Exit,
    output::Console,
    settings::{Environment, Flags, MediaSettings, Settings},
};

/// Writes the images into a directory, and prints where each is and when it is shown.
pub(crate) fn frames(
    args: &FramesArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::load(Flags::default(), environment, console)?;
    let Some(taken) = running::wait(take(args, &settings.media))? else {
        return Ok(Exit::Interrupted);
    };
    let taken = taken.map_err(|error| ErrorBody::from(&error))?;
    files::write_directory(&args.output, &taken.files()?)
        .map_err(|source| emit::unwritable(&args.output, source))?;
    for (at, frame) in taken.frames.iter().enumerate() {
        console.print_json(&Line { at_ms: frame.at_ms, file: &args.output.join(name(at)) })?;
    }
    if args.audio && taken.sound.is_none() {
        console.note("the video has no audio");
    }
    Ok(Exit::Ok)
}

/// What was taken out of a video.
struct Taken {
    frames: Vec<Frame>,
    sound: Option<Stored>,
}

async fn take(args: &FramesArgs, settings: &MediaSettings) -> Result<Taken, MediaError> {
    let rules = MediaRules { kinds: vec![Modality::Video], ..MediaRules::default() };
    let video = sources::open(&args.source, &rules, settings).await?;
    let tool = settings.tool();
    let frames = tool.frames(&video, &plan(args)).await?;
    let sound = if args.audio { tool.sound(&video).await? } else { None };
    Ok(Taken { frames, sound })
}

fn plan(args: &FramesArgs) -> FramePlan {
    let general = FramePlan::default();
    let pick = match args.count {
        Some(count) => FrameSelection::Count(count),
        None => FrameSelection::Every(args.every.unwrap_or(Duration::from_secs(1))),
    };
    let most = args.max_frames.or(args.count).unwrap_or(general.most);
    FramePlan { pick, most, longest_side: args.max_dimension }
}

impl Taken {
    /// The files of the directory, which is written whole or not at all.
    fn files(&self) -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let frames = self.frames.iter().enumerate().map(|(at, frame)| (name(at), &frame.image));
        let sound = self.sound.iter().map(|sound| ("audio.wav".to_owned(), sound));
        frames.chain(sound).map(|(name, stored)| Ok((name, bytes_of(stored)?))).collect()
    }
}

fn name(at: usize) -> String {
    format!("frame-{:04}.jpg", at + 1)
}

fn bytes_of(stored: &Stored) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct Line<'a> {
    at_ms: u64,
    file: &'a Path,
}

impl ToJson for Line<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("at_ms", &self.at_ms);
            w.field("file", &*self.file.to_string_lossy());
        });
    }
}
