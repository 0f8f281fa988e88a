//! Reads the boxes of MP4 and QuickTime that symphonia does not (ISO 14496-12).

use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::container::{Corrections, Handle};

/// The maximum size of the index of a file; a larger one is not read here.
const MAX_INDEX: u64 = 32 << 20;

/// The maximum configuration of a codec that symphonia reads. The one of x265 is larger, since it contains its
/// settings.
const MAX_CONFIGURATION: usize = 1024;

/// A kind of box that every reader skips.
const SKIPPED: [u8; 4] = *b"free";

/// What an index says, and how it must be changed for symphonia.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The dimensions of the first video track.
    pub(super) dimensions: Option<(u32, u32)>,
    /// The format of the first audio track.
    pub(super) sound: Option<Sound>,
    /// Whether a track is encrypted (ISO 23001-7).
    pub(super) is_encrypted: bool,
    /// The kinds of boxes that symphonia refuses, and the sizes of boxes that the file does not have.
    pub(super) corrections: Corrections,
}

/// The format of an audio track.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sound {
    pub(super) rate: u32,
    pub(super) channels: u32,
}

/// A box: its kind, and the position of its content in the index.
struct IsoBox<'a> {
    kind: &'a [u8],
    content: &'a [u8],
    at: usize,
}

/// Reads the index of a file; an empty one if it is damaged.
pub(super) fn index(input: &mut Handle) -> Index {
    let (from, bytes) = read_index(input).unwrap_or_default();
    let mut index = Index { corrections: sizes(input).unwrap_or_default(), ..Index::default() };
    for track in boxes(&bytes, 0).into_iter().filter(|found| found.kind == b"trak") {
        add_video(&track, from, &mut index);
        add_sound(&track, &mut index);
    }
    index
}

/// Returns how long the first audio track is in milliseconds, as the index says; none if it does not. What an edit list
/// leaves out is not played.
pub(super) fn audio_duration(input: &mut Handle) -> Option<u64> {
    let (_, bytes) = read_index(input).ok()?;
    let found = boxes(&bytes, 0);
    let track = found.iter().find(|found| found.kind == b"trak" && has_handler(found, b"soun"))?;
    let media = below(track, &[b"mdia", b"mdhd"])?;
    let all = milliseconds(number(media.content, 16, 24, true), time_scale(&media));
    let movie = found.iter().find(|found| found.kind == b"mvhd").and_then(time_scale);
    let played = below(track, &[b"tkhd"]).and_then(|header| number(header.content, 20, 28, true));
    all.into_iter().chain(milliseconds(played, movie)).min()
}

fn time_scale(header: &IsoBox<'_>) -> Option<u64> {
    number(header.content, 12, 20, false)
}

/// Returns whether a track is of this kind: `soun` or `vide`.
fn has_handler(track: &IsoBox<'_>, kind: &[u8; 4]) -> bool {
    let handler = below(track, &[b"mdia", b"hdlr"]);
    handler.is_some_and(|handler| handler.content.get(8..12) == Some(kind))
}

fn milliseconds(duration: Option<u64>, scale: Option<u64>) -> Option<u64> {
    duration?.saturating_mul(1000).checked_div(scale?)
}

/// Returns a number of a header, at one place in version 0 and at another in version 1, in which times have eight
/// bytes. None if it is zero or all ones, which means unknown.
fn number(header: &[u8], at: usize, later: usize, is_time: bool) -> Option<u64> {
    let is_first = *header.first()? == 0;
    let rest = header.get(if is_first { at } else { later }..)?;
    let (number, unknown) = match is_time && !is_first {
        true => (u64::from_be_bytes(*rest.first_chunk()?), u64::MAX),
        false => (u64::from(u32::from_be_bytes(*rest.first_chunk()?)), u64::from(u32::MAX)),
    };
    (number != 0 && number != unknown).then_some(number)
}

/// Returns the content of the box `moov`, and its position.
fn read_index(input: &mut Handle) -> io::Result<(u64, Vec<u8>)> {
    let end = input.seek(SeekFrom::End(0))?;
    let mut at = 0;
    loop {
        let found = top_box(input, at, end)?;
        if found.kind == *b"moov" {
            let mut bytes = Vec::new();
            input.seek(SeekFrom::Start(found.content))?;
            input.by_ref().take((found.end - found.content).min(MAX_INDEX)).read_to_end(&mut bytes)?;
            return Ok((found.content, bytes));
        }
        at = found.end;
    }
}

/// Returns the corrections of sizes: the last box may be open, or longer than the file, which is then as long as it is.
/// What is missing in it is found when its samples are read.
fn sizes(input: &mut Handle) -> io::Result<Corrections> {
    let end = input.seek(SeekFrom::End(0))?;
    let mut at = 0;
    while at < end {
        let found = top_box(input, at, end)?;
        if found.is_wrong && found.kind == *b"mdat" {
            let [a, b, c, d, low @ ..] = (end - at).to_be_bytes();
            return Ok(match found.content - at {
                16 => vec![(at + 8, [a, b, c, d]), (at + 12, low)],
                _ if [a, b, c, d] == [0; 4] => vec![(at, low)],
                _ => Vec::new(),
            });
        }
        at = found.end;
    }
    Ok(Vec::new())
}

/// A box of the file itself.
struct TopBox {
    kind: [u8; 4],
    /// Where its content begins.
    content: u64,
    /// Where it ends, within the file.
    end: u64,
    /// Whether its size says something else.
    is_wrong: bool,
}

/// Reads the header of the box at a position of a file with this end.
fn top_box(input: &mut Handle, at: u64, end: u64) -> io::Result<TopBox> {
    input.seek(SeekFrom::Start(at))?;
    let mut head = [0; 8];
    input.read_exact(&mut head)?;
    let [a, b, c, d, kind @ ..] = head;
    let mut size = u64::from(u32::from_be_bytes([a, b, c, d]));
    let mut header = 8;
    // A size of 1 means that the size follows, as 64 bits; a size of 0 means the rest of the file.
    if size == 1 {
        let mut large = [0; 8];
        input.read_exact(&mut large)?;
        size = u64::from_be_bytes(large);
        header = 16;
    }
    let is_open = size == 0;
    let declared = at.checked_add(if is_open { end - at } else { size });
    let declared = declared.filter(|declared| *declared >= at + header).ok_or(io::ErrorKind::InvalidData)?;
    let is_wrong = is_open || declared > end;
    Ok(TopBox { kind, content: at + header, end: declared.min(end), is_wrong })
}

/// Returns the boxes in these bytes, which begin at `start` of the index, up to the first damaged one.
fn boxes(bytes: &[u8], start: usize) -> Vec<IsoBox<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((kind, length)) = bytes.get(at..at + 8).and_then(header) {
        let Some(content) = length.checked_sub(8).and_then(|_| bytes.get(at + 8..at.checked_add(length)?))
        else {
            break;
        };
        found.push(IsoBox { kind, content, at: start + at + 8 });
        at += length;
    }
    found
}

fn header(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (length, kind) = bytes.split_first_chunk::<4>()?;
    Some((kind, usize::try_from(u32::from_be_bytes(*length)).ok()?))
}

/// Returns the box at a path below another.
fn below<'a>(parent: &IsoBox<'a>, path: &[&[u8]]) -> Option<IsoBox<'a>> {
    let (kind, rest) = path.split_first()?;
    let child = boxes(parent.content, parent.at).into_iter().find(|child| child.kind == *kind)?;
    if rest.is_empty() { Some(child) } else { below(&child, rest) }
}

/// Adds what a track declares, if it is a video track.
fn add_video(track: &IsoBox<'_>, from: u64, index: &mut Index) {
    if !has_handler(track, b"vide") {
        return;
    }
    let size = below(track, &[b"tkhd"]).and_then(|header| dimensions(header.content));
    index.dimensions = index.dimensions.or(size);
    for entry in sample_entries(track) {
        index.is_encrypted |= entry.kind == b"encv";
        // 78 bytes come before the boxes of an entry.
        let parts = boxes(entry.content.get(78..).unwrap_or_default(), entry.at + 78);
        let oversized = parts.iter().filter(|part| part.content.len() > MAX_CONFIGURATION);
        let kinds = oversized.filter(|part| matches!(part.kind, b"hvcC" | b"avcC"));
        index.corrections.extend(kinds.map(|part| (from + part.at as u64 - 4, SKIPPED)));
    }
}

/// Adds what a track declares, if it is an audio track. symphonia knows no format of most codecs.
fn add_sound(track: &IsoBox<'_>, index: &mut Index) {
    if !has_handler(track, b"soun") {
        return;
    }
    for entry in sample_entries(track) {
        index.is_encrypted |= entry.kind == b"enca";
        index.sound = index.sound.or_else(|| sound(entry.content));
    }
}

/// Returns the descriptions of the samples of a track, after a version and a count.
fn sample_entries<'a>(track: &IsoBox<'a>) -> Vec<IsoBox<'a>> {
    let samples = below(track, &[b"mdia", b"minf", b"stbl", b"stsd"]);
    let entries = samples.map(|all| boxes(all.content.get(8..).unwrap_or_default(), all.at + 8));
    entries.unwrap_or_default()
}

/// Returns the format in the description of audio samples: a rate as a fixed-point number.
fn sound(entry: &[u8]) -> Option<Sound> {
    let channels = u16::from_be_bytes(*entry.get(16..)?.first_chunk()?);
    let rate = u16::from_be_bytes(*entry.get(24..)?.first_chunk()?);
    (channels > 0 && rate > 0).then_some(Sound { rate: rate.into(), channels: channels.into() })
}

/// Returns the width and height of a track header, which ends with them as fixed-point numbers.
fn dimensions(header: &[u8]) -> Option<(u32, u32)> {
    // The lengths of version 0 and 1.
    if !matches!(header.len(), 84 | 96) {
        return None;
    }
    let [.., a, b, _, _, c, d, _, _] = header else { return None };
    let size = (u32::from(u16::from_be_bytes([*a, *b])), u32::from(u16::from_be_bytes([*c, *d])));
    (size.0 > 0 && size.1 > 0).then_some(size)
}
