//! The fonts of a page: how their strings are decoded, and how wide they are (ISO 32000-1, 9.6 to 9.7).

use std::collections::{BTreeMap, HashMap};

use lopdf::{Dictionary, Document, Encoding, Object, ObjectId};

/// The width of a character of a font without widths.
const DEFAULT_WIDTH: f32 = 0.5;
/// The maximum number of characters whose widths are read.
const MAX_WIDTHS: usize = 1 << 16;

/// The fonts of a page by their names.
pub(super) struct Fonts<'a>(BTreeMap<Vec<u8>, Font<'a>>);

/// A font.
pub(super) struct Font<'a> {
    encoding: Encoding<'a>,
    /// The widths of characters in multiples of the font size.
    widths: HashMap<u32, f32>,
    default_width: f32,
    /// Whether a character is two bytes.
    is_composite: bool,
}

impl<'a> Fonts<'a> {
    /// Returns the fonts of a page that can be decoded. No stream is larger than `max_inflated` bytes.
    pub(super) fn read(document: &'a Document, page: ObjectId, max_inflated: usize) -> Self {
        let fonts = document.get_page_fonts(page).unwrap_or_default().into_iter();
        let read = |(name, font)| Some((name, Font::read(document, font, max_inflated)?));
        Self(fonts.filter_map(read).collect())
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Font<'a>> {
        self.0.get(name)
    }
}

impl<'a> Font<'a> {
    fn read(document: &'a Document, font: &'a Dictionary, max_inflated: usize) -> Option<Self> {
        let encoding = font.get_font_encoding_with_limit(document, max_inflated).ok()?;
        let descendants = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
        let descendant = descendants.and_then(|fonts| Some(document.dereference(fonts.first()?).ok()?.1));
        let descendant = descendant.and_then(|font| font.as_dict().ok());
        let (widths, default_width) = match descendant {
            Some(font) => composite_widths(document, font),
            None => simple_widths(document, font),
        };
        Some(Self { encoding, widths, default_width, is_composite: descendant.is_some() })
    }

    /// Decodes a string; an empty one if it has no meaning.
    pub(super) fn decode(&self, bytes: &[u8]) -> String {
        Document::decode_text(&self.encoding, bytes).unwrap_or_default()
    }

    /// Returns the width of a string in multiples of the font size, its characters and its spaces.
    pub(super) fn measure(&self, bytes: &[u8]) -> (f32, f32, f32) {
        let size = if self.is_composite { 2 } else { 1 };
        let codes =
            bytes.chunks(size).map(|code| code.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)));
        codes.fold((0.0, 0.0, 0.0), |(width, characters, spaces), code| {
            let own = self.widths.get(&code).copied().unwrap_or(self.default_width);
            let is_space = !self.is_composite && code == u32::from(b' ');
            (width + own, characters + 1.0, spaces + f32::from(u8::from(is_space)))
        })
    }
}

fn number(document: &Document, font: &Dictionary, key: &[u8]) -> Option<f32> {
    font.get_deref(key, document).and_then(Object::as_float).ok()
}

fn list<'a>(document: &'a Document, font: &'a Dictionary, key: &[u8]) -> &'a [Object] {
    font.get_deref(key, document).and_then(Object::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the widths of a font whose characters are bytes. Those of a Type 3 font have a unit of their own.
fn simple_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let unit = list(document, font, b"FontMatrix").first().and_then(|unit| unit.as_float().ok());
    let unit = unit.unwrap_or(0.001);
    let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0);
    let codes = u32::try_from(first).unwrap_or_default()..;
    let widths = list(document, font, b"Widths").iter().take(256);
    let width = |width: &Object| document.dereference(width).ok()?.1.as_float().ok();
    let known = codes.zip(widths).filter_map(|(code, it)| Some((code, width(it)? * unit))).collect();
    (known, DEFAULT_WIDTH)
}

/// Returns the widths of a composite font: `first [w w ...]` or `first last w`.
fn composite_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let default = number(document, font, b"DW").unwrap_or(1000.0) / 1000.0;
    let mut widths = HashMap::new();
    let mut items =
        list(document, font, b"W").iter().filter_map(|item| Some(document.dereference(item).ok()?.1));
    while let (Some(first), Some(next)) = (items.next().and_then(code), items.next()) {
        if let Ok(list) = next.as_array() {
            let list = list.iter().filter_map(|width| width.as_float().ok());
            widths.extend((first..).zip(list.map(|width| width / 1000.0)).take(MAX_WIDTHS));
        } else if let (Some(last), Some(Ok(width))) = (code(next), items.next().map(Object::as_float)) {
            widths.extend((first..=last).take(MAX_WIDTHS).map(|code| (code, width / 1000.0)));
        }
        if widths.len() >= MAX_WIDTHS {
            break;
        }
    }
    (widths, default)
}

/// Returns the code of a character, which has at most two bytes.
fn code(object: &Object) -> Option<u32> {
    u16::try_from(object.as_i64().ok()?).ok().map(u32::from)
}
