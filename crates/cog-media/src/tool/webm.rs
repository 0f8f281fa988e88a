//! The elements of WebM that symphonia does not read (RFC 8794, RFC 9559).

use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::container::{Corrections, Handle};

/// The maximum size of the description of the tracks; a larger one is not read here.
const MAX_TRACKS: u64 = 1 << 20;
/// The maximum number of elements before the description of the tracks.
const MAX_ELEMENTS: usize = 1000;

const SEGMENT: u32 = 0x1853_8067;
const SEEK_HEAD: u32 = 0x114d_9b74;
const TRACKS: u32 = 0x1654_ae6b;
/// The first cluster: the tracks come before it.
const CLUSTER: u32 = 0x1f43_b675;
/// An identifier without a meaning, as long as [`SEEK_HEAD`].
const UNASSIGNED: [u8; 4] = [0x1f, 0xff, 0xff, 0xf0];
/// The elements from a track to the encryption of its frames.
const ENCRYPTION: [u32; 4] = [0xae, 0x6d80, 0x6240, 0x5035];

/// Returns whether the frames of a track are encrypted.
pub(super) fn is_encrypted(input: &mut Handle) -> bool {
    tracks(input).is_ok_and(|tracks| contains(&tracks, &ENCRYPTION))
}

/// Returns the content of the element that describes the tracks.
fn tracks(input: &mut Handle) -> io::Result<Vec<u8>> {
    input.rewind()?;
    for _ in 0..MAX_ELEMENTS {
        let at = input.stream_position()?;
        let element = read_start(input)?;
        let content = at + element.header as u64;
        match element.id {
            // Its content is read as what follows.
            SEGMENT => input.seek(SeekFrom::Start(content))?,
            TRACKS => {
                let mut bytes = Vec::new();
                input.seek(SeekFrom::Start(content))?;
                input.by_ref().take(element.size.min(MAX_TRACKS)).read_to_end(&mut bytes)?;
                return Ok(bytes);
            }
            CLUSTER => break,
            _ => input.seek(SeekFrom::Start(content.saturating_add(element.size)))?,
        };
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Returns what makes readers take a file that ends before its segment does for a live recording, which may end anywhere: a segment
/// of unknown size, without an index of elements that are missing. Empty for a complete file.
pub(super) fn as_recording(input: &mut Handle) -> Corrections {
    let mut corrections = Corrections::new();
    // What cannot be read ends the corrections; the reader finds out what is damaged.
    drop(correct_cut(input, &mut corrections));
    corrections
}

fn correct_cut(input: &mut Handle, corrections: &mut Corrections) -> io::Result<()> {
    let length = input.seek(SeekFrom::End(0))?;
    input.rewind()?;
    for _ in 0..MAX_ELEMENTS {
        let at = input.stream_position()?;
        let element = read_start(input)?;
        let content = at + element.header as u64;
        let end = content.saturating_add(element.size);
        match element.id {
            SEGMENT if end <= length || element.size == u64::MAX => break,
            SEGMENT => {
                let size = element.header - 4;
                let mut bytes = [0; 8];
                input.seek(SeekFrom::Start(at + 4))?;
                input.read_exact(&mut bytes)?;
                bytes.iter_mut().take(size).for_each(|byte| *byte = 0xff);
                bytes[0] >>= size - 1;
                let [a, b, c, d, e, f, g, h] = bytes;
                corrections.extend([(at + 4, [a, b, c, d]), (at + 8, [e, f, g, h])]);
                input.seek(SeekFrom::Start(content))?;
            }
            SEEK_HEAD => {
                corrections.push((at, UNASSIGNED));
                input.seek(SeekFrom::Start(end))?;
            }
            CLUSTER => break,
            _ => _ = input.seek(SeekFrom::Start(end))?,
        }
    }
    Ok(())
}

/// Reads the start of the element here.
fn read_start(input: &mut Handle) -> io::Result<Element> {
    let mut start = Vec::new();
    input.by_ref().take(12).read_to_end(&mut start)?;
    Ok(element(&start).ok_or(io::ErrorKind::InvalidData)?)
}

/// Returns whether there is an element at this path.
fn contains(mut bytes: &[u8], path: &[u32]) -> bool {
    let Some((wanted, below)) = path.split_first() else { return true };
    while let Some(Element { id, header, size }) = element(bytes) {
        let rest = bytes.get(header..).unwrap_or_default();
        let (content, after) = rest.split_at(usize::try_from(size).unwrap_or(usize::MAX).min(rest.len()));
        if id == *wanted && contains(content, below) {
            return true;
        }
        bytes = after;
    }
    false
}

/// The start of an element.
struct Element {
    id: u32,
    /// The length of the identifier and the size.
    header: usize,
    /// The size of the content; the highest possible one if it is unknown.
    size: u64,
}

fn element(bytes: &[u8]) -> Option<Element> {
    let id_length = length_of_number(*bytes.first()?).filter(|length| *length <= 4)?;
    let (id, rest) = bytes.split_at_checked(id_length)?;
    let first = *rest.first()?;
    let size_length = length_of_number(first)?;
    let (_, after) = rest.get(..size_length)?.split_first()?;
    let mask = if size_length == 8 { 0 } else { 0xff >> size_length };
    let is_unknown = first & mask == mask && after.iter().all(|byte| *byte == 0xff);
    let size = after.iter().fold(u64::from(first & mask), |size, byte| size << 8 | u64::from(*byte));
    Some(Element {
        id: id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte)),
        header: id_length + size_length,
        size: if is_unknown { u64::MAX } else { size },
    })
}

/// Returns how many bytes a number has that starts with this one.
fn length_of_number(first: u8) -> Option<usize> {
    (first != 0).then(|| first.leading_zeros() as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element_of(id: &[u8], content: &[u8]) -> Vec<u8> {
        [id, &[0x80 | u8::try_from(content.len()).unwrap()], content].concat()
    }

    #[test]
    fn encryption_is_found_at_its_place_only() {
        let encryption = element_of(&[0x50, 0x35], &[1, 2]);
        let encoding = element_of(&[0x62, 0x40], &encryption);
        let encodings = element_of(&[0x6d, 0x80], &encoding);
        let number = element_of(&[0xd7], &[1]);
        let track = element_of(&[0xae], &[&number[..], &encodings].concat());
        assert!(contains(&[&element_of(&[0xae], &number)[..], &track].concat(), &ENCRYPTION));
        let name = element_of(&[0xae], &element_of(&[0x86], &encryption));
        assert!(!contains(&name, &ENCRYPTION));
        assert!(!contains(&track[..track.len() / 2], &[0xae, 0xd7, 0x86]));
    }

    #[test]
    fn sizes_have_one_to_eight_bytes() {
        let size = |bytes: &[u8]| element(&[&[0xae], bytes].concat()).map(|found| (found.header, found.size));
        assert_eq!(size(&[0x82]), Some((2, 2)));
        assert_eq!(size(&[0x40, 0x02]), Some((3, 2)));
        assert_eq!(size(&[0x01, 0, 0, 0, 0, 0, 1, 0]), Some((9, 256)));
        for unknown in [&[0xff][..], &[0x7f, 0xff], &[0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(size(unknown), Some((1 + unknown.len(), u64::MAX)));
        }
        assert_eq!(size(&[0x01, 0]), None);
        assert_eq!(size(&[0]), None);
    }
}
