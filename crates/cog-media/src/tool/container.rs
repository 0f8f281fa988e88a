//! Reads audio and video containers: duration, dimensions, tracks.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
};

use symphonia::{
    core::{
        codecs::CodecParameters,
        common::Limit,
        errors::Error,
        formats::{
            FormatOptions, FormatReader, Track,
            probe::{Hint, Probe},
        },
        io::{MediaSource, MediaSourceStream, MediaSourceStreamOptions},
        meta::MetadataOptions,
        packet::Packet,
        units::{Duration, TimeBase},
    },
    default::{
        formats::{IsoMp4Reader, MkvReader, MpaReader, OggReader, WavReader},
        meta::Id3v2Reader,
    },
};

use super::{mp4, report::ReadError, wav, webm};
use crate::{
    MediaInfo,
    kind::{HEAD, end_of_tag, mpeg, ogg},
    rules::PADDING_MS,
    store::{read_at, seek_position},
};

/// The maximum bytes of a tag or cover image, none of which is used.
const MAX_TAG: usize = 1 << 20;

/// Reads a container as this type and no other.
pub(super) fn facts(mut input: Handle, media_type: &str) -> Result<MediaInfo, ReadError> {
    let index = match media_type {
        "video/mp4" | "video/quicktime" => mp4::index(&mut input),
        _ => mp4::Index::default(),
    };
    if index.is_encrypted || is_webm(media_type) && webm::is_encrypted(&mut input) {
        return Err(ReadError::Protected);
    }
    let wav = match media_type {
        "audio/wav" => wav::read(&mut input)?,
        _ => wav::Header::default(),
    };
    if media_type == "audio/ogg" {
        check_codec_of_ogg(&mut input)?;
    }
    let declares_duration = media_type != "audio/mpeg" || has_length_of_mpeg(&mut input);
    let recording = if is_webm(media_type) { webm::as_recording(&mut input) } else { Corrections::new() };
    let damage = match recording.is_empty() {
        // In order, but in a form that the reader of MP3 does not know.
        true if media_type == "audio/mpeg" && mpeg::is_layer_2(&audio_head(&mut input)) => {
            ReadError::Codec("MPEG layer 2 (MP2)".to_owned())
        }
        true => ReadError::Broken,
        false => ReadError::Truncated,
    };
    input.replace([index.corrections, wav.corrections, recording].concat());
    input.rewind().map_err(|_| ReadError::Broken)?;
    let stream = MediaSourceStream::new(Box::new(input), MediaSourceStreamOptions::default());
    let tags = MetadataOptions::default()
        .limit_tag_bytes(Limit::Maximum(MAX_TAG))
        .limit_visual_bytes(Limit::Maximum(MAX_TAG));
    let mut reader = readers(media_type)
        .probe(&Hint::new(), stream, FormatOptions::default(), tags)
        .map_err(|_| damage.clone())?;
    let tracks = reader.tracks().to_vec();
    let mut facts = tracks.iter().fold(MediaInfo::default(), with_track);
    // A track with an unknown codec has no parameters.
    if facts.width.is_none()
        && let Some((width, height)) = index.dimensions
    {
        facts.width = Some(width);
        facts.height = Some(height);
    }
    if facts.sample_rate.is_none()
        && let Some(sound) = index.sound
    {
        facts.sample_rate = Some(sound.rate);
        facts.channels = Some(sound.channels);
    }
    if facts.sample_rate.is_none() && facts.width.is_none() {
        return Err(ReadError::NoTracks);
    }
    if [facts.sample_rate, facts.channels, facts.width, facts.height].contains(&Some(0)) {
        return Err(ReadError::Broken);
    }
    let end = end_of_packets(&mut *reader, &tracks, media_type, &damage)?;
    if end == 0 && media_type == "audio/wav" {
        return Err(ReadError::NoTracks);
    }
    let declared = if declares_duration { declared_duration(&*reader, &tracks) } else { 0 };
    let missing_ms = match media_type {
        "audio/wav" => wav.missing_ms,
        // A container with an index must be complete, and others do not say how long they are.
        "audio/mpeg" | "audio/webm" | "video/webm" => declared.saturating_sub(end),
        _ => 0,
    };
    // Encoders declare the silence that they add, and round.
    let is_cut = missing_ms > PADDING_MS + declared / 100;
    Ok(MediaInfo { duration_ms: Some(declared.max(end)), missing_ms: is_cut.then_some(missing_ms), ..facts })
}

fn is_webm(media_type: &str) -> bool {
    matches!(media_type, "video/webm" | "audio/webm")
}

/// Refuses an Ogg file whose only codec is known by its name and not read here.
fn check_codec_of_ogg(input: &mut Handle) -> Result<(), ReadError> {
    match ogg::codec(&head(input, 0)) {
        Some(codec) if !matches!(codec, "Opus" | "Vorbis" | "FLAC") => {
            Err(ReadError::Codec(codec.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns whether MPEG audio declares its length. Otherwise the length is only estimated, from the first frames.
fn has_length_of_mpeg(input: &mut Handle) -> bool {
    let first = audio_head(input);
    [&b"Xing"[..], b"Info", b"VBRI"].iter().any(|tag| memchr::memmem::find(&first, tag).is_some())
}

/// Returns the first bytes after a tag.
fn audio_head(input: &mut Handle) -> Vec<u8> {
    let start = end_of_tag(&head(input, 0)).unwrap_or_default();
    head(input, start as u64)
}

/// Returns the first bytes from a position, as many as decide a type.
fn head(input: &mut Handle, from: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = input
        .seek(SeekFrom::Start(from))
        .and_then(|_| input.by_ref().take(HEAD as u64).read_to_end(&mut bytes));
    if read.is_err() {
        bytes.clear();
    }
    bytes
}

fn readers(media_type: &str) -> Probe {
    let mut probe = Probe::new();
    match media_type {
        "audio/mpeg" => probe.register_format::<MpaReader<'_>>(),
        "audio/wav" => probe.register_format::<WavReader<'_>>(),
        "audio/ogg" => probe.register_format::<OggReader<'_>>(),
        "video/webm" | "audio/webm" => probe.register_format::<MkvReader<'_>>(),
        _ => probe.register_format::<IsoMp4Reader<'_>>(),
    }
    if media_type == "audio/mpeg" {
        probe.register_metadata::<Id3v2Reader<'_>>();
    }
    probe
}

/// Adds the facts of the first audio track or the first video track.
fn with_track(facts: MediaInfo, track: &Track) -> MediaInfo {
    match &track.codec_params {
        Some(CodecParameters::Audio(audio)) if facts.sample_rate.is_none() => MediaInfo {
            sample_rate: audio.sample_rate,
            channels: audio.channels.as_ref().and_then(|channels| u32::try_from(channels.count()).ok()),
            ..facts
        },
        Some(CodecParameters::Video(video)) if facts.width.is_none() => MediaInfo {
            width: Some(video.width.unwrap_or_default().into()),
            height: Some(video.height.unwrap_or_default().into()),
            ..facts
        },
        _ => facts,
    }
}

/// Returns the maximum duration in the headers, in milliseconds.
fn declared_duration(reader: &dyn FormatReader, tracks: &[Track]) -> u64 {
    let info = reader.media_info();
    let durations = tracks.iter().map(|track| (track.time_base, track.duration));
    let durations = durations.chain([(info.time_base, info.duration)]);
    let known = durations.filter_map(|(base, duration)| Some((base?, duration.filter(is_known)?)));
    known.map(|(base, duration)| milliseconds(base, duration)).max().unwrap_or_default()
}

/// Returns whether a duration is not all ones, which means unknown in MP4 (ISO 14496-12, 8.4.2).
fn is_known(duration: &Duration) -> bool {
    ![u64::from(u32::MAX), u64::MAX].contains(&duration.get())
}

/// Returns the end of the last packet in milliseconds: recorded streams have no duration in the header, and headers
/// can be wrong.
fn end_of_packets(
    reader: &mut dyn FormatReader,
    tracks: &[Track],
    media_type: &str,
    damage: &ReadError,
) -> Result<u64, ReadError> {
    let mut end = 0;
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => end = end.max(end_of(&packet, tracks)),
            Ok(None) => return Ok(end),
            // A recording may end anywhere; a container with an index must be complete.
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                let is_indexed = matches!(media_type, "video/mp4" | "video/quicktime");
                return if is_indexed || end == 0 { Err(ReadError::Truncated) } else { Ok(end) };
            }
            // The end of a cut WebM can look like a damaged element.
            Err(_) if is_webm(media_type) && end > 0 => return Ok(end),
            Err(_) => return Err(damage.clone()),
        }
    }
}

fn end_of(packet: &Packet, tracks: &[Track]) -> u64 {
    let base = tracks.iter().find(|track| track.id == packet.track_id).and_then(|track| track.time_base);
    let begin = u64::try_from(packet.pts.get()).unwrap_or_default();
    base.map_or(0, |base| milliseconds(base, Duration::new(begin.saturating_add(packet.dur.get()))))
}

fn milliseconds(base: TimeBase, duration: Duration) -> u64 {
    u64::try_from(base.calc_duration_saturating(duration).as_millis()).unwrap_or_default()
}

// The duration in the header of audio that is converted without being read here.

/// Returns the duration that the header of a file declares, if it does.
pub(super) fn declared_facts(mut input: Handle, media_type: &str) -> MediaInfo {
    let duration_ms = match media_type {
        "audio/mp4" => mp4::audio_duration(&mut input),
        "audio/flac" => flac_duration(&mut input),
        _ => None,
    };
    MediaInfo { duration_ms, ..MediaInfo::default() }
}

/// Reads the first block of a FLAC file (RFC 9639, section 8.2); zero samples mean that their number is unknown.
fn flac_duration(input: &mut Handle) -> Option<u64> {
    let start = end_of_tag(&head(input, 0)).unwrap_or_default();
    input.seek(SeekFrom::Start(start as u64)).ok()?;
    let mut head = [0; 26];
    input.read_exact(&mut head).ok()?;
    let Some((b"fLaC", rest)) = head.split_first_chunk::<4>() else { return None };
    // Rate (20 bits), channels (3), bits (5), samples (36).
    let packed = u64::from_be_bytes(*rest.last_chunk::<8>()?);
    let rate = packed >> 44;
    let samples = packed & ((1 << 36) - 1);
    if samples == 0 { None } else { samples.saturating_mul(1000).checked_div(rate) }
}

// The open file.

/// An open file that is read without moving the shared file position.
pub(super) struct Handle {
    file: File,
    length: u64,
    at: u64,
    replaced: Corrections,
}

/// The positions of four bytes, and what readers get instead.
pub(super) type Corrections = Vec<(u64, [u8; 4])>;

impl Handle {
    /// Starts to read a file.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length, at: 0, replaced: Vec::new() })
    }

    /// Makes readers get these bytes at these positions.
    pub(super) fn replace(&mut self, bytes: Corrections) {
        self.replaced = bytes;
    }

    /// Returns the complete content.
    pub(super) fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Handle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = read_at(&self.file, into, self.at)?;
        let replaced = self.replaced.iter().flat_map(|(start, bytes)| (*start..).zip(*bytes));
        for (position, new) in replaced {
            let at = position.checked_sub(self.at).and_then(|at| usize::try_from(at).ok());
            if let Some(byte) = at.and_then(|at| into.get_mut(..length)?.get_mut(at)) {
                *byte = new;
            }
        }
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = seek_position(self.at, self.length, to)?;
        Ok(self.at)
    }
}

impl MediaSource for Handle {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}
