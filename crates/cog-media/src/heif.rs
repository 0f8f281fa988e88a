//! Reads which picture a HEIF or AVIF file shows, and how (ISO 23008-12).
//!
//! Such a file has many pictures: tiles, thumbnails, depth maps. Only one of them is the primary one, which may be a
//! grid of tiles, and which is cropped, rotated and mirrored for display. ffmpeg knows all, some or none of this,
//! depending on its version. It is therefore told what to decode, and what it decoded is compared with what is said
//! here.

#[cfg(test)]
mod tests;

use std::io::{Read as _, Seek as _, SeekFrom};

use crate::Stored;

/// The maximum size of the box that describes the pictures; a larger one is not read.
const MAX_META: u64 = 4 << 20;

/// The maximum number of tiles of a picture: one of 8192×8192 pixels has 256 of 512×512.
const MAX_TILES: usize = 256;

/// The picture that a file shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Its width and height before it is transformed for display.
    pub(crate) size: (u32, u32),
    /// How it is stored.
    pub(crate) coding: Coding,
    /// What is done for display, in this order.
    pub(crate) transforms: Vec<Transform>,
    /// Whether another picture of the file says where this one is transparent.
    pub(crate) has_alpha: bool,
}

/// How a picture is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As the item with this number.
    Item(u32),
    /// As tiles of the same size, row by row. The last ones may be larger than what is left of the picture.
    Grid {
        /// The tiles in each row.
        columns: u32,
        /// The width and height of each tile.
        tile: (u32, u32),
        /// The items of the tiles.
        items: Vec<u32>,
    },
}

/// A change of a picture for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    /// Only this part of it is shown.
    Crop {
        /// The width of the part.
        width: u32,
        /// The height of the part.
        height: u32,
        /// The columns to the left of it.
        left: u32,
        /// The rows above it.
        top: u32,
    },
    /// It is rotated anticlockwise by this number of right angles, from 1 to 3.
    Rotate(u8),
    /// Its left and right sides are exchanged.
    MirrorSides,
    /// Its top and bottom are exchanged.
    MirrorTop,
}

impl Picture {
    /// Reads the description of the primary picture; none if it is damaged or not supported.
    ///
    /// # Errors
    /// If the stored bytes cannot be read.
    pub(crate) fn read(stored: &Stored) -> std::io::Result<Option<Self>> {
        Ok(meta(stored)?
            .and_then(|meta| Description { boxes: boxes(meta.get(4..)?), file: stored }.picture()))
    }

    /// Returns its width and height as it is displayed.
    pub(crate) fn displayed(&self) -> (u32, u32) {
        self.transforms.iter().fold(self.size, |size, transform| transform.size_of(size))
    }
}

impl Transform {
    /// Returns the size of a picture of this size, after this change.
    fn size_of(self, size: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Crop { width, height, .. } => (width, height),
            Self::Rotate(1 | 3) => (size.1, size.0),
            Self::Rotate(_) | Self::MirrorSides | Self::MirrorTop => size,
        }
    }
}

/// Returns the content of the box `meta`; none if there is none, or if it is too large.
fn meta(stored: &Stored) -> std::io::Result<Option<Vec<u8>>> {
    let mut file = stored.reader();
    let mut at = 0_u64;
    while at.saturating_add(8) <= stored.len() {
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0; 8];
        file.read_exact(&mut head)?;
        let [a, b, c, d, kind @ ..] = head;
        // Only the media data, which follows, is so large that it has a size of 64 bits.
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let Some(content) = length.checked_sub(8) else { return Ok(None) };
        if &kind == b"meta" {
            if content > MAX_META {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            file.take(content).read_to_end(&mut bytes)?;
            return Ok((bytes.len() as u64 == content).then_some(bytes));
        }
        at += length;
    }
    Ok(None)
}

/// A box of the container format.
#[derive(Clone, Copy)]
struct IsoBox<'a> {
    kind: &'a [u8],
    content: &'a [u8],
}

/// Returns the boxes in these bytes, up to the first damaged one.
fn boxes(bytes: &[u8]) -> Vec<IsoBox<'_>> {
    let mut rest = Bytes(bytes);
    let mut found = Vec::new();
    while let Some(next) = next_box(&mut rest) {
        found.push(next);
    }
    found
}

fn next_box<'a>(bytes: &mut Bytes<'a>) -> Option<IsoBox<'a>> {
    let length = bytes.number(4)?.checked_sub(8)?;
    let kind = bytes.take(4)?;
    Some(IsoBox { kind, content: bytes.take(usize::try_from(length).ok()?)? })
}

/// The boxes of `meta`.
struct Description<'a> {
    boxes: Vec<IsoBox<'a>>,
    file: &'a Stored,
}

impl<'a> Description<'a> {
    fn picture(&self) -> Option<Picture> {
        let mut primary = Bytes(self.content(b"pitm")?);
        let item = primary.version().and_then(|version| primary.id(version > 0))?;
        let properties = self.properties(item)?;
        let size = size_of(&properties)?;
        let coding = match self.kind(item)? {
            b"grid" => self.grid(item, size)?,
            // An overlay of other pictures, or another picture under a second number.
            b"iovl" | b"iden" | b"tmap" => return None,
            _ => Coding::Item(item),
        };
        let transforms = transforms(&properties, size)?;
        Some(Picture { size, coding, transforms, has_alpha: self.has_alpha(item) })
    }

    fn content(&self, kind: &[u8]) -> Option<&'a [u8]> {
        Some(self.boxes.iter().find(|found| found.kind == kind)?.content)
    }

    /// Returns the kind of an item, such as `hvc1` or `grid`.
    fn kind(&self, item: u32) -> Option<&'a [u8]> {
        let mut entries = Bytes(self.content(b"iinf")?);
        let count_length = if entries.version()? == 0 { 2 } else { 4 };
        entries.take(count_length)?;
        boxes(entries.0).into_iter().find_map(|entry| {
            let mut entry = Bytes(entry.content);
            let version = entry.version().filter(|version| *version >= 2)?;
            let id = entry.id(version > 2)?;
            entry.take(2)?;
            entry.take(4).filter(|_| id == item)
        })
    }

    /// Returns the properties of an item, in the order in which they apply.
    fn properties(&self, item: u32) -> Option<Vec<IsoBox<'a>>> {
        let parts = boxes(self.content(b"iprp")?);
        let all = boxes(parts.iter().find(|part| part.kind == b"ipco")?.content);
        let maps = parts.iter().filter(|part| part.kind == b"ipma");
        let indexes = maps.filter_map(|map| associations(map.content, item)).next()?;
        // An index of 0 means no property.
        let used = indexes.into_iter().filter_map(|index| index.checked_sub(1));
        used.map(|index| all.get(index).copied()).collect()
    }

    /// Returns the tiles of a picture of this size, which is a grid.
    fn grid(&self, item: u32, size: (u32, u32)) -> Option<Coding> {
        let layout = self.data(item)?;
        let mut layout = Bytes(&layout);
        layout.take(1)?;
        let length = if layout.number(1)? & 1 == 0 { 2 } else { 4 };
        // Both numbers are stored less one.
        let rows = layout.small(1)? + 1;
        let columns = layout.small(1)? + 1;
        if (layout.small(length)?, layout.small(length)?) != size {
            return None;
        }
        let items = self.tiles(item)?;
        if items.len() > MAX_TILES || items.len() as u64 != u64::from(rows * columns) {
            return None;
        }
        let tile = self.tile_size(*items.first()?)?;
        let have_one_size = items.iter().all(|item| self.tile_size(*item) == Some(tile));
        let is_covered = covers(tile.0, columns, size.0) && covers(tile.1, rows, size.1);
        (have_one_size && is_covered).then_some(Coding::Grid { columns, tile, items })
    }

    /// Returns the size of a tile that is shown as it is stored.
    fn tile_size(&self, item: u32) -> Option<(u32, u32)> {
        let properties = self.properties(item)?;
        let size = size_of(&properties)?;
        let is_coded = !matches!(self.kind(item)?, b"grid" | b"iovl" | b"iden" | b"tmap");
        (is_coded && transforms(&properties, size)?.is_empty()).then_some(size)
    }

    /// Returns the items from which a picture is made.
    fn tiles(&self, item: u32) -> Option<Vec<u32>> {
        let mut made = self.references(b"dimg").into_iter();
        made.find(|reference| reference.from == item).map(|reference| reference.to)
    }

    /// Returns whether a picture has another one with its transparency.
    fn has_alpha(&self, item: u32) -> bool {
        self.references(b"auxl").iter().any(|reference| {
            reference.to.contains(&item)
                && self.properties(reference.from).is_some_and(|properties| properties.iter().any(is_alpha))
        })
    }

    /// Returns the references of a kind, up to the first damaged one.
    fn references(&self, kind: &[u8]) -> Vec<Reference> {
        let Some(mut references) = self.content(b"iref").map(Bytes) else { return Vec::new() };
        let Some(version) = references.version() else { return Vec::new() };
        let found = boxes(references.0).into_iter().filter(|reference| reference.kind == kind);
        found.map_while(|reference| Reference::read(Bytes(reference.content), version > 0)).collect()
    }

    /// Returns the data of an item that is stored in one piece: the layout of a grid has at most 12 bytes.
    fn data(&self, item: u32) -> Option<Vec<u8>> {
        let mut places = Bytes(self.content(b"iloc")?);
        let version = places.version()?;
        // Four lengths of later numbers, of four bits each; version 0 has only three.
        let sizes = usize::try_from(places.small(2)?).ok()?;
        let offset = sizes >> 12 & 15;
        let length = sizes >> 8 & 15;
        let base = sizes >> 4 & 15;
        let index = if version == 0 { 0 } else { sizes & 15 };
        for _ in 0..places.number(if version < 2 { 2 } else { 4 })? {
            let id = places.id(version > 1)?;
            let method = if version == 0 { 0 } else { places.number(2)? & 15 };
            places.take(2)?;
            let start = places.number(base)?;
            let mut extents = Vec::new();
            for _ in 0..places.number(2)? {
                places.take(index)?;
                extents.push((start.checked_add(places.number(offset)?)?, places.number(length)?));
            }
            if id != item {
                continue;
            }
            let [(from, length @ 1..=12)] = *extents.as_slice() else { return None };
            return match method {
                0 => self.in_file(from, length),
                1 => Bytes(self.content(b"idat")?).part(from, length),
                _ => None,
            };
        }
        None
    }

    fn in_file(&self, from: u64, length: u64) -> Option<Vec<u8>> {
        let mut file = self.file.reader();
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == length).then_some(bytes)
    }
}

/// A reference from an item to others.
struct Reference {
    from: u32,
    to: Vec<u32>,
}

impl Reference {
    fn read(mut content: Bytes<'_>, is_long: bool) -> Option<Self> {
        let from = content.id(is_long)?;
        let count = content.number(2)?;
        let to = (0..count).map(|_| content.id(is_long)).collect::<Option<_>>()?;
        Some(Self { from, to })
    }
}

/// Returns whether a property says that its item is the transparency of another: in HEVC or AV1.
fn is_alpha(property: &IsoBox<'_>) -> bool {
    const TYPES: [&[u8]; 2] =
        [b"urn:mpeg:hevc:2015:auxid:1\0", b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0"];
    let name = property.content.get(4..).filter(|_| property.kind == b"auxC");
    name.is_some_and(|name| TYPES.iter().any(|alpha| name.starts_with(alpha)))
}

/// Returns the numbers of the properties of an item, from a box `ipma`.
fn associations(map: &[u8], item: u32) -> Option<Vec<usize>> {
    let mut map = Bytes(map);
    let head = map.number(4)?;
    let version = head >> 24;
    let is_wide = head & 1 == 1;
    for _ in 0..map.number(4)? {
        let id = map.id(version > 0)?;
        let count = map.number(1)?;
        let mut indexes = Vec::new();
        for _ in 0..count {
            // The highest bit says whether a reader must know the property.
            indexes.push(match is_wide {
                true => map.number(2)? & 0x7fff,
                false => map.number(1)? & 0x7f,
            });
        }
        if id == item {
            return indexes.into_iter().map(|index| usize::try_from(index).ok()).collect();
        }
    }
    None
}

/// Returns the size among the properties of an item.
fn size_of(properties: &[IsoBox<'_>]) -> Option<(u32, u32)> {
    let mut size = Bytes(properties.iter().find(|property| property.kind == b"ispe")?.content);
    size.take(4)?;
    let size = (size.small(4)?, size.small(4)?);
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Returns the changes among the properties of an item of this size; none if one is not possible.
fn transforms(properties: &[IsoBox<'_>], size: (u32, u32)) -> Option<Vec<Transform>> {
    let mut size = size;
    let mut transforms = Vec::new();
    for property in properties {
        let mut content = Bytes(property.content);
        let transform = match property.kind {
            b"irot" => match content.number(1)? & 3 {
                0 => continue,
                turns => Transform::Rotate(u8::try_from(turns).ok()?),
            },
            b"imir" if content.number(1)? & 1 == 0 => Transform::MirrorTop,
            b"imir" => Transform::MirrorSides,
            b"clap" => crop(content, size)?,
            _ => continue,
        };
        size = transform.size_of(size);
        transforms.push(transform);
    }
    Some(transforms)
}

/// Returns the part of a picture in a box `clap`, which has its size and the distance between the centres, as
/// fractions.
fn crop(mut content: Bytes<'_>, size: (u32, u32)) -> Option<Transform> {
    let width = content.fraction()?;
    let height = content.fraction()?;
    let right = content.distance()?;
    let down = content.distance()?;
    Some(Transform::Crop {
        width,
        height,
        left: before(size.0, width, right)?,
        top: before(size.1, height, down)?,
    })
}

/// How far the centre of a part is from the centre of the picture, as a fraction.
#[derive(Clone, Copy)]
struct Distance {
    numerator: i64,
    divisor: i64,
}

/// Returns the pixels before a part of a side; none if the part is not within it.
fn before(whole: u32, part: u32, Distance { numerator, divisor }: Distance) -> Option<u32> {
    let left = i64::from(whole.checked_sub(part)?);
    let before = (left * divisor + 2 * numerator).div_euclid(2 * divisor);
    u32::try_from(before).ok().filter(|before| i64::from(*before) <= left)
}

/// Returns whether tiles of this side cover a side of the picture, and none of them lies outside.
fn covers(tile: u32, count: u32, side: u32) -> bool {
    tile.checked_mul(count).is_some_and(|covered| covered >= side && covered - tile < side)
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns a number of at most eight bytes.
    fn number(&mut self, length: usize) -> Option<u64> {
        let bytes = self.take(length).filter(|bytes| bytes.len() <= 8)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Returns a number of at most four bytes.
    fn small(&mut self, length: usize) -> Option<u32> {
        u32::try_from(self.number(length)?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(i64::from(i32::from_be_bytes(*bytes)))
    }

    /// Returns the integer part of a fraction of two numbers, which is not 0.
    fn fraction(&mut self) -> Option<u32> {
        let length = self.number(4)?;
        u32::try_from(length.checked_div(self.number(4)?)?).ok().filter(|length| *length > 0)
    }

    fn distance(&mut self) -> Option<Distance> {
        let numerator = self.signed()?;
        let divisor = i64::try_from(self.number(4)?).ok().filter(|divisor| *divisor > 0)?;
        Some(Distance { numerator, divisor })
    }

    /// Returns the number of an item.
    fn id(&mut self, is_long: bool) -> Option<u32> {
        self.small(if is_long { 4 } else { 2 })
    }

    /// Returns the version of a box; its flags follow.
    fn version(&mut self) -> Option<u64> {
        Some(self.number(4)? >> 24)
    }

    fn part(&self, from: u64, length: u64) -> Option<Vec<u8>> {
        let from = usize::try_from(from).ok()?;
        let end = from.checked_add(usize::try_from(length).ok()?)?;
        Some(self.0.get(from..end)?.to_vec())
    }
}
