//! Reads audio and video containers: duration, dimensions, tracks.

use std::io::{ErrorKind, Seek as _};

use symphonia::{
    core::{
        codecs::CodecParameters,
        common::Limit,
        errors::Error,
        formats::{
            FormatOptions, FormatReader, Track,
            probe::{Hint, Probe},
        },
        io::{MediaSourceStream, MediaSourceStreamOptions},
        meta::MetadataOptions,
        packet::Packet,
        units::{Duration, TimeBase},
    },
    default::{
        formats::{IsoMp4Reader, MkvReader, MpaReader, OggReader, WavReader},
        meta::Id3v2Reader,
    },
};

use super::{handle::Handle, mp4, report::ReadError, wav};
use crate::Facts;

/// The maximum bytes of a tag or cover image, none of which is used.
const MAX_TAG: usize = 1 << 20;

/// A kind of box that every reader skips.
const SKIPPED: [u8; 4] = *b"free";

/// Reads a container as this type and no other.
pub(super) fn facts(mut input: Handle, media_type: &str) -> Result<Facts, ReadError> {
    let index = match media_type {
        "video/mp4" | "video/quicktime" => mp4::index(&mut input),
        _ => mp4::Index::default(),
    };
    let replaced = match media_type {
        "audio/wav" => wav::sizes(&mut input),
        _ => index.oversized.iter().map(|kind| (*kind, SKIPPED)).collect(),
    };
    input.replace(replaced);
    input.rewind().map_err(|_| ReadError::Broken)?;
    let stream = MediaSourceStream::new(Box::new(input), MediaSourceStreamOptions::default());
    let tags = MetadataOptions::default()
        .limit_tag_bytes(Limit::Maximum(MAX_TAG))
        .limit_visual_bytes(Limit::Maximum(MAX_TAG));
    let mut reader = readers(media_type)
        .probe(&Hint::new(), stream, FormatOptions::default(), tags)
        .map_err(|_| ReadError::Broken)?;
    let tracks = reader.tracks().to_vec();
    let mut facts = tracks.iter().fold(Facts::default(), with_track);
    // A track with an unknown codec has no parameters.
    if let (None, Some((width, height))) = (facts.width, index.dimensions) {
        (facts.width, facts.height) = (Some(width), Some(height));
    }
    if facts.sample_rate.is_none() && facts.width.is_none() {
        return Err(ReadError::NoTracks);
    }
    if [facts.sample_rate, facts.channels, facts.width, facts.height].contains(&Some(0)) {
        return Err(ReadError::Broken);
    }
    let end = end_of_packets(&mut *reader, &tracks, media_type)?;
    if end == 0 && media_type == "audio/wav" {
        return Err(ReadError::NoTracks);
    }
    let duration_ms = declared_duration(&*reader, &tracks).max(end);
    Ok(Facts { duration_ms: Some(duration_ms), ..facts })
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
fn with_track(facts: Facts, track: &Track) -> Facts {
    match &track.codec_params {
        Some(CodecParameters::Audio(audio)) if facts.sample_rate.is_none() => Facts {
            sample_rate: audio.sample_rate,
            channels: audio.channels.as_ref().and_then(|channels| u32::try_from(channels.count()).ok()),
            ..facts
        },
        Some(CodecParameters::Video(video)) if facts.width.is_none() => Facts {
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
    let of_tracks = tracks.iter().map(|track| (track.time_base, track.duration));
    let durations = of_tracks.chain([(info.time_base, info.duration)]);
    durations.filter_map(|(base, duration)| Some(milliseconds(base?, duration?))).max().unwrap_or_default()
}

/// Returns the end of the last packet in milliseconds: recorded streams have no duration in the header, and headers
/// can be wrong.
fn end_of_packets(
    reader: &mut dyn FormatReader,
    tracks: &[Track],
    media_type: &str,
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
            Err(_) => return Err(ReadError::Broken),
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
