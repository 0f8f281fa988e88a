//! Extracts frames and audio tracks with ffmpeg.

use std::{
    io::{BufRead, BufReader, Read, Write as _},
    time::Duration,
};

use cog_spec::Modality;

use super::{
    Tool,
    child::{ChildOutput, Failure, Purpose},
    failed,
};
use crate::{
    Media, MediaError, Store, Stored,
    heif::{Coding, Picture, Transform},
    rules::PADDING_MS,
    sniff,
    store::run_blocking,
};

/// The maximum bytes of all frames of a video, and of an audio track: ten minutes are 19 MB.
const MAX_BYTES: u64 = 64 << 20;

/// Samples per second of an audio track: enough for speech, and supported by every model.
const RATE: u32 = 16_000;

/// The maximum duration in seconds, whatever the header says: more than the limit, so that longer audio is refused when
/// it is converted and not truncated.
const MAX_SECONDS: &str = "601";

/// The duration of audio that is decoded in any case, in milliseconds.
const MAX_DECODED_MS: u64 = 600_000;

/// The input: standard input, as a seekable file if the system has a name for it.
const INPUT: &str = if cfg!(unix) { "file:/dev/fd/0" } else { "pipe:0" };

/// How frames are extracted from a video (SPEC appendix A.1.2: timed images represent a video).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePlan {
    /// How they are selected.
    pub selection: FrameSelection,
    /// The maximum number; longer videos have larger intervals.
    pub max_frames: u32,
    /// The maximum side in pixels; frames are scaled down to it.
    pub max_side: u32,
}

/// How frames are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSelection {
    /// One frame per interval.
    Every(Duration),
    /// A number of evenly spaced frames.
    Count(u32),
}

/// A frame of a video.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its time in milliseconds after the first.
    pub at_ms: u64,
    /// Its number in the video, from 0; none if ffmpeg does not report it.
    pub number: Option<u64>,
    /// A JPEG.
    pub image: Stored,
}

impl Default for FramePlan {
    fn default() -> Self {
        Self { selection: FrameSelection::Every(Duration::from_secs(1)), max_frames: 60, max_side: 1024 }
    }
}

impl FramePlan {
    /// Returns the interval between frames of a video of this duration, in milliseconds.
    fn interval(&self, duration_ms: u64) -> u64 {
        let wanted = match self.selection {
            FrameSelection::Every(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            FrameSelection::Count(count) => duration_ms.div_ceil(count.max(1).into()),
        };
        wanted.max(duration_ms.div_ceil(self.max_frames.max(1).into())).max(1)
    }

    /// Returns a filter that selects the first frame of each interval, scales it down, and logs its number and its
    /// time.
    fn filter(&self, duration_ms: u64) -> String {
        let interval = Duration::from_millis(self.interval(duration_ms)).as_secs_f64();
        let side = self.max_side.max(1);
        // Differences below a thousandth of an interval are rounding errors.
        let slot = format!("floor((t-start_t)/{interval}+0.001)");
        let last_slot = format!("floor((prev_selected_t-start_t)/{interval}+0.001)");
        format!(
            "select='if(isnan(prev_selected_t)+gt({slot},{last_slot}),1+0*print(n))',\
             scale=w='min(iw,{side})':h='min(ih,{side})':force_original_aspect_ratio=decrease,\
             showinfo,setpts=N/TB"
        )
    }
}

impl Tool {
    /// Extracts the frames of a video, in order.
    ///
    /// # Errors
    /// [`MediaError::ReaderUnavailable`] without ffmpeg; [`MediaError::Damaged`] if it finds no frame within its limits
    /// of time and memory.
    pub async fn frames(&self, video: &Media, plan: &FramePlan) -> Result<Vec<Frame>, MediaError> {
        let duration_ms = video.info().duration_ms.unwrap_or_default();
        let filter = plan.filter(duration_ms);
        let max_frames = plan.max_frames.max(1).to_string();
        // Frames are written one second apart, so that none is duplicated or dropped.
        let arguments =
            ["-map", "0:v:0", "-vf", &filter, "-r", "1", "-frames:v", &max_frames, "-pix_fmt", "yuvj420p"];
        let output = ["-q:v", "4", "-c:v", "mjpeg", "-f", "mpjpeg", "pipe:1"];
        let arguments = [&arguments[..], &output[..]].concat();
        let written = self.ffmpeg(video.bytes(), video.media_type(), &arguments).await?;
        let frames = run_blocking(move || frames_of(&written)).await?;
        if frames.is_empty() {
            return Err(damaged(video, "no frame can be decoded"));
        }
        Ok(frames)
    }

    /// Extracts audio as WAV: one channel, 16 bits, 16,000 samples per second. Returns none for a video without sound.
    ///
    /// # Errors
    /// As [`Tool::frames`].
    pub async fn audio(&self, media: &Media) -> Result<Option<Stored>, MediaError> {
        if media.info().sample_rate.is_none() {
            return Ok(None);
        }
        let samples = self.samples(media.bytes(), media.media_type()).await?;
        if samples.is_empty() && media.kind() == Modality::Video {
            return Ok(None);
        }
        wav_of(samples, media.media_type()).await.map(Some)
    }

    /// Converts audio of a type that no provider supports to WAV, as [`Tool::audio`] does.
    ///
    /// # Errors
    /// As [`Tool::frames`], also if the file ends before its header says.
    pub(crate) async fn to_wav(
        &self,
        stored: &Stored,
        media_type: &'static str,
    ) -> Result<Stored, MediaError> {
        let samples = self.samples(stored, media_type).await?;
        let found_ms = samples.len() / 2 * 1000 / u64::from(RATE);
        let declared_ms = self.declared_duration(stored, media_type).await?.unwrap_or_default();
        // Encoders declare the silence that they add, and longer audio than the maximum is not decoded to its end.
        let missing_ms = declared_ms.min(MAX_DECODED_MS).saturating_sub(found_ms);
        if missing_ms > PADDING_MS + declared_ms / 100 {
            return Err(MediaError::Damaged { media_type, what: "the file is truncated" });
        }
        wav_of(samples, media_type).await
    }

    /// Returns the samples of an audio track.
    async fn samples(&self, stored: &Stored, media_type: &'static str) -> Result<Stored, MediaError> {
        let rate = RATE.to_string();
        let arguments = ["-map", "0:a:0", "-ac", "1", "-ar", &rate, "-f", "s16le", "pipe:1"];
        Ok(self.ffmpeg(stored, media_type, &arguments).await?.bytes)
    }

    /// Returns the tracks of a file with their codecs, without decoding any. A cover image is no track.
    ///
    /// # Errors
    /// As [`Tool::frames`].
    pub(crate) async fn tracks(
        &self,
        stored: &Stored,
        media_type: &'static str,
    ) -> Result<Vec<CodedTrack>, MediaError> {
        let written = self.ffmpeg(stored, media_type, &["-f", "ffmetadata", "pipe:1"]).await?;
        let log = String::from_utf8_lossy(&written.log);
        Ok(log.lines().filter_map(track_in).collect())
    }

    /// Converts a video with these tracks to MP4. Tracks are copied if MP4 has a place for their codec.
    ///
    /// # Errors
    /// As [`Tool::frames`].
    pub(crate) async fn to_mp4(
        &self,
        stored: &Stored,
        media_type: &'static str,
        tracks: &[CodedTrack],
        max_bytes: u64,
    ) -> Result<Stored, MediaError> {
        let video = match codec_of(tracks, Modality::Video) {
            Some("h264" | "hevc" | "av1" | "vp9" | "mpeg4" | "mpeg2video" | "mjpeg") => &["copy"][..],
            _ => &["libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p"],
        };
        // MP4 can also hold other codecs, but then few programs play the sound.
        let audio = match codec_of(tracks, Modality::Audio) {
            Some("aac" | "mp3") => "copy",
            _ => "aac",
        };
        let tracks = [&["-map", "0:v:0", "-map", "0:a:0?", "-c:v"][..], video, &["-c:a", audio][..]].concat();
        // The index follows the first packets, which some codecs are described by.
        let output = [
            "-map_metadata",
            "-1",
            "-movflags",
            "frag_keyframe+empty_moov+delay_moov+default_base_moof",
            "-f",
            "mp4",
            "pipe:1",
        ];
        let arguments = [&tracks[..], &output[..]].concat();
        self.ffmpeg_within(stored, media_type, &[], &arguments, max_bytes).await.map(|written| written.bytes)
    }

    /// Converts the picture that a HEIF or AVIF file shows to JPEG, as it is displayed.
    ///
    /// # Errors
    /// As [`Tool::frames`], also if this ffmpeg decodes another picture of the file.
    pub(crate) async fn to_jpeg(
        &self,
        stored: &Stored,
        media_type: &'static str,
        picture: &Picture,
        max_bytes: u64,
    ) -> Result<Stored, MediaError> {
        let sources = picture_sources(picture, media_type);
        let mut outcome = Err(MediaError::Damaged { media_type, what: "its picture cannot be decoded" });
        for Source { options, arguments, is_by_item } in sources {
            let arguments = arguments.iter().map(String::as_str).chain(JPEG).collect::<Vec<_>>();
            let written = self.ffmpeg_within(stored, media_type, options, &arguments, max_bytes).await;
            outcome = written.and_then(|written| {
                let log = String::from_utf8_lossy(&written.log);
                if shows(&log, picture, is_by_item) {
                    return Ok(written.bytes);
                }
                Err(MediaError::Damaged { media_type, what: "ffmpeg decodes another picture of the file" })
            });
            if !matches!(outcome, Err(MediaError::Damaged { .. })) {
                break;
            }
        }
        outcome
    }

    async fn ffmpeg(
        &self,
        stored: &Stored,
        media_type: &'static str,
        arguments: &[&str],
    ) -> Result<ChildOutput, MediaError> {
        self.ffmpeg_within(stored, media_type, &[], arguments, MAX_BYTES).await
    }

    async fn ffmpeg_within(
        &self,
        stored: &Stored,
        media_type: &'static str,
        input_options: &[&str],
        arguments: &[&str],
        max_bytes: u64,
    ) -> Result<ChildOutput, MediaError> {
        let Some(ffmpeg) = self.programs().ffmpeg.as_deref() else {
            let what = "frames, audio tracks and conversions require ffmpeg, which was not found".to_owned();
            return Err(MediaError::ReaderUnavailable { what });
        };
        let command = [input_options, &reading(media_type)[..], arguments].concat();
        let written = self.run_program(Purpose::Convert, ffmpeg, stored, &command, max_bytes).await;
        written.map_err(|failure| match failure {
            Failure::NotStarted => {
                let what = format!("ffmpeg cannot be started: {}", ffmpeg.display());
                MediaError::ReaderUnavailable { what }
            }
            failure => failed(failure, media_type),
        })
    }
}

/// Returns the input options: this file, this container format only, and no other protocol.
fn reading(media_type: &str) -> [&str; 17] {
    let container = match media_type {
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-rf64" => "wav",
        "audio/ogg" | "video/ogg" => "ogg",
        "audio/webm" | "video/webm" | "video/x-matroska" => "matroska",
        "video/x-msvideo" => "avi",
        "audio/aac" => "aac",
        "audio/flac" => "flac",
        _ => "mov",
    };
    [
        "-hide_banner",
        "-nostdin",
        "-nostats",
        "-loglevel",
        "info",
        "-threads",
        "2",
        "-max_alloc",
        "268435456",
        "-protocol_whitelist",
        "file,pipe",
        "-f",
        container,
        "-t",
        MAX_SECONDS,
        "-i",
        INPUT,
    ]
}

/// The options of an output that is one JPEG.
const JPEG: [&str; 11] =
    ["-frames:v", "1", "-pix_fmt", "yuvj420p", "-q:v", "2", "-c:v", "mjpeg", "-f", "image2pipe", "pipe:1"];

/// What ffmpeg decodes of a file with several pictures.
struct Source {
    /// The options of the input.
    options: &'static [&'static str],
    /// The arguments that select it and transform it.
    arguments: Vec<String>,
    /// Whether it is selected by the number of its item.
    is_by_item: bool,
}

/// Returns how the picture of a file is decoded, in the order in which it is tried.
///
/// Its items are tracks with their numbers, since ffmpeg 7.1. Earlier versions read AVIF only, and only the primary
/// item, as the one track.
fn picture_sources(picture: &Picture, media_type: &str) -> Vec<Source> {
    let filters = picture_filters(picture);
    // Later versions of ffmpeg rotate and crop by themselves, in part: what is done here would be done twice.
    const UNCHANGED: &[&str] = &["-noautorotate"];
    match &picture.coding {
        Coding::Item(item) => {
            let is_cropped = picture.transforms.iter().any(|change| matches!(change, Transform::Crop { .. }));
            let options = if is_cropped { &["-noautorotate", "-apply_cropping", "codec"] } else { UNCHANGED };
            let by_item = owned(&["-map", &format!("0:i:{item}"), "-vf", &filters]);
            let mut sources = vec![Source { options, arguments: by_item, is_by_item: true }];
            if media_type == "image/avif" {
                let only = owned(&["-map", "0:v:0", "-vf", &filters]);
                sources.push(Source { options: UNCHANGED, arguments: only, is_by_item: false });
            }
            sources
        }
        Coding::Grid { columns, tile, items } => {
            let tracks: String = items.iter().map(|item| format!("[0:i:{item}]")).collect();
            let places = (0_u32..).zip(items);
            let places = places.map(|(at, _)| format!("{}_{}", at % columns * tile.0, at / columns * tile.1));
            let places: Vec<_> = places.collect();
            let joined = match items.len() {
                1 => String::new(),
                count => format!("xstack=inputs={count}:layout={},", places.join("|")),
            };
            let graph = format!("{tracks}{joined}{filters}[picture]");
            let tiles = owned(&["-filter_complex", &graph, "-map", "[picture]"]);
            vec![Source { options: UNCHANGED, arguments: tiles, is_by_item: true }]
        }
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Returns the filters that log the size of a decoded picture and then make it what is displayed.
fn picture_filters(picture: &Picture) -> String {
    let mut filters = vec!["showinfo=checksum=0".to_owned()];
    if canvas_of(picture) != picture.size {
        filters.push(crop(picture.size.0, picture.size.1, 0, 0));
    }
    filters.extend(picture.transforms.iter().map(|transform| match *transform {
        Transform::Crop { width, height, left, top } => crop(width, height, left, top),
        Transform::Rotate(1) => "transpose=cclock".to_owned(),
        Transform::Rotate(2) => "hflip,vflip".to_owned(),
        Transform::Rotate(_) => "transpose=clock".to_owned(),
        Transform::MirrorSides => "hflip".to_owned(),
        Transform::MirrorTop => "vflip".to_owned(),
    }));
    filters.join(",")
}

fn crop(width: u32, height: u32, left: u32, top: u32) -> String {
    // Two pixels share a colour in most pictures, and a crop between them would move it. So every pixel gets its own
    // first.
    format!("format=yuv444p,crop={width}:{height}:{left}:{top}")
}

/// Returns the width and height of what is decoded: the picture, or its tiles together.
fn canvas_of(picture: &Picture) -> (u32, u32) {
    match &picture.coding {
        Coding::Item(_) => picture.size,
        Coding::Grid { columns, tile, items } => {
            let rows = u32::try_from(items.len()).unwrap_or(u32::MAX) / columns;
            (columns.saturating_mul(tile.0), rows.saturating_mul(tile.1))
        }
    }
}

/// Returns whether the log of `showinfo` is about this picture: one of its size, which is the item that ffmpeg was told
/// to decode, or the only one that it knows.
fn shows(log: &str, picture: &Picture, is_by_item: bool) -> bool {
    log.lines().find_map(size_in) == Some(canvas_of(picture)) && (is_by_item || has_one_track(log))
}

/// Returns the size in a line of the log of `showinfo`.
fn size_in(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("showinfo")?.1.split_once(" s:")?;
    let (width, height) = rest.split_whitespace().next()?.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// Returns whether the log lists one track with pictures of the input, and the one of the output.
fn has_one_track(log: &str) -> bool {
    let lines = log.lines().map(str::trim_start);
    lines.filter(|line| line.starts_with("Stream #0:") && line.contains(": Video:")).count() == 2
}

/// A track of a file, as ffmpeg lists it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CodedTrack {
    /// Audio or video.
    pub(crate) kind: Modality,
    /// The name of its codec, as ffmpeg writes it: `h264`, `pcm_s16le`.
    pub(crate) codec: String,
}

fn codec_of(tracks: &[CodedTrack], kind: Modality) -> Option<&str> {
    tracks.iter().find(|track| track.kind == kind).map(|track| track.codec.as_str())
}

/// Returns the track of the input in a line of the log: `Stream #0:1(eng): Audio: ac3, 48000 Hz, stereo`.
fn track_in(line: &str) -> Option<CodedTrack> {
    let (_, description) = line.trim_start().strip_prefix("Stream #0:")?.split_once(": ")?;
    let (kind, codec) = description.split_once(": ")?;
    let kind = match kind {
        "Video" if !line.contains("(attached pic)") => Modality::Video,
        "Audio" => Modality::Audio,
        _ => return None,
    };
    let codec = codec.split([' ', ',']).next().unwrap_or_default();
    Some(CodedTrack { kind, codec: codec.to_owned() })
}

/// Returns the frames, each with its time and its number from the log.
fn frames_of(written: &ChildOutput) -> Result<Vec<Frame>, MediaError> {
    let log = String::from_utf8_lossy(&written.log);
    let times = times_of(&log);
    let numbers = numbers_of(&log);
    let first = times.first().copied().unwrap_or_default();
    let is_numbered = numbers.len() == times.len();
    let images = images_of(BufReader::new(written.bytes.reader()))?;
    let frames = images.into_iter().zip(times).enumerate().map(|(index, (image, at))| Frame {
        at_ms: at.saturating_sub(first),
        number: numbers.get(index).copied().filter(|_| is_numbered),
        image,
    });
    Ok(frames.collect())
}

/// Returns the number of each selected frame, from the log of `print`: lines with only a number, such as `24.000000`.
/// Later versions of ffmpeg may write a context before it.
fn numbers_of(log: &str) -> Vec<u64> {
    log.lines().filter_map(number_in).collect()
}

fn number_in(line: &str) -> Option<u64> {
    let line = line.trim();
    let text = line.strip_prefix("[Eval @ ").and_then(|rest| rest.split_once("] ")).map_or(line, |it| it.1);
    text.strip_suffix(".000000")?.parse().ok()
}

/// Returns the time of each frame in milliseconds, from the log of `showinfo`.
fn times_of(log: &str) -> Vec<u64> {
    log.lines().filter_map(time_in).collect()
}

fn time_in(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("showinfo")?.1.split_once("pts_time:")?;
    let seconds = rest.split_whitespace().next()?.parse().ok()?;
    u64::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_millis()).ok()
}

/// Returns the JPEGs of a multipart stream with a length in each header.
fn images_of(mut stream: impl BufRead) -> Result<Vec<Stored>, MediaError> {
    let mut images = Vec::new();
    while let Some(length) = next_part(&mut stream)? {
        let mut store = Store::with_limit(length);
        store.push_all((&mut stream).take(length))?;
        let image = store.finish();
        if image.len() == length && sniff(image.head()) == Some("image/jpeg") {
            images.push(image);
        }
    }
    Ok(images)
}

/// Reads the header of the next part. Returns its content length.
fn next_part(stream: &mut impl BufRead) -> Result<Option<u64>, MediaError> {
    const MAX_LINE: u64 = 1000;
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if stream.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            None if line.trim_end().is_empty() && length.is_some() => return Ok(length),
            _ => {}
        }
    }
}

/// Returns a WAV file of these samples, if there are any.
async fn wav_of(samples: Stored, media_type: &'static str) -> Result<Stored, MediaError> {
    if samples.is_empty() {
        return Err(MediaError::Damaged { media_type, what: "no sound can be decoded" });
    }
    run_blocking(move || wav(&samples)).await
}

/// Returns a WAV file of these samples.
fn wav(samples: &Stored) -> Result<Stored, MediaError> {
    let length = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let mut header = Vec::with_capacity(44);
    header.write_all(b"RIFF")?;
    header.write_all(&length.saturating_add(36).to_le_bytes())?;
    header.write_all(b"WAVEfmt \x10\0\0\0\x01\0\x01\0")?;
    header.write_all(&RATE.to_le_bytes())?;
    header.write_all(&(RATE * 2).to_le_bytes())?;
    header.write_all(b"\x02\0\x10\0data")?;
    header.write_all(&length.to_le_bytes())?;
    let mut store = Store::with_limit(MAX_BYTES + 44);
    store.push(&header)?;
    store.push_all(samples.reader())?;
    Ok(store.finish())
}

fn damaged(media: &Media, what: &'static str) -> MediaError {
    MediaError::Damaged { media_type: media.media_type(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_frames_have_larger_intervals() {
        let plan = |selection, max_frames| FramePlan { selection, max_frames, ..FramePlan::default() };
        let second = FrameSelection::Every(Duration::from_secs(1));
        assert_eq!(plan(second, 60).interval(30_000), 1000);
        assert_eq!(plan(second, 60).interval(300_000), 5000);
        assert_eq!(plan(FrameSelection::Count(8), 60).interval(4_001), 501);
        assert_eq!(plan(FrameSelection::Count(0), 0).interval(0), 1);
        assert_eq!(plan(FrameSelection::Every(Duration::MAX), 1).interval(u64::MAX), u64::MAX);
    }

    #[test]
    fn reads_only_frame_times_from_the_log() {
        let log = "[mov @ 0x1] pts_time:9 is no frame\n\
                   [Parsed_showinfo_2 @ 0x2] n:   0 pts:  0 pts_time:0       duration:1\n\
                   [Parsed_showinfo_2 @ 0x2] n:   1 pts: 12 pts_time:1.25 pos:7\n\
                   [Parsed_showinfo_2 @ 0x2] pts_time:-1\n[Parsed_showinfo_2 @ 0x2] pts_time:NOPTS";
        assert_eq!(times_of(log), [0, 1250]);
    }

    #[test]
    fn reads_only_frame_numbers_from_the_log() {
        let log = "0.000000\n[Parsed_showinfo_2 @ 0x2] n:   0 pts:  0 pts_time:0\n 24.000000 \n\
                   [Eval @ 0x1] 48.000000\n1.5\nstart: 3.000000\n[mov @ 0x1] 7.000000\n-1.000000\n";
        assert_eq!(numbers_of(log), [0, 24, 48]);
    }

    #[test]
    fn reads_tracks_of_the_input_from_the_log() {
        let log = "  Stream #0:0(eng): Video: mjpeg (Baseline), yuvj420p, 320x240\n\
                   \x20 Stream #0:1[0x2](und): Audio: pcm_s16le ([1][0][0][0] / 0x0001), 8000 Hz\n\
                   \x20 Stream #0:2: Subtitle: subrip\n\x20 Stream #0:3: Video: png, rgb24 (attached pic)\n\
                   Output #0, ffmetadata, to 'pipe:1':";
        let tracks: Vec<_> =
            log.lines().filter_map(track_in).map(|track| (track.kind, track.codec)).collect();
        let expected = [(Modality::Video, "mjpeg"), (Modality::Audio, "pcm_s16le")];
        assert_eq!(tracks, expected.map(|(kind, codec)| (kind, codec.to_owned())));
    }

    #[test]
    fn reads_images_of_the_declared_length() {
        let jpeg = b"\xff\xd8\xff\xe0 and so on";
        let part = |length: &str, content: &[u8]| {
            [
                b"--ffmpeg\r\nContent-type: image/jpeg\r\nContent-length: ",
                length.as_bytes(),
                b"\r\n\r\n",
                content,
            ]
            .concat()
        };
        let lengths =
            |stream: &[u8]| -> Vec<u64> { images_of(stream).unwrap().iter().map(Stored::len).collect() };
        assert_eq!(lengths(&[part("14", jpeg), b"\r\n".to_vec(), part("14", jpeg)].concat()), [14, 14]);
        let bad =
            [part("18446744073709551615", jpeg), part("-1", jpeg), part("5", b"Hello"), vec![b'x'; 5000]];
        assert!(bad.iter().all(|stream| lengths(stream).is_empty()));
    }
}
