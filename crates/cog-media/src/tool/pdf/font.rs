//! Fonts: what the codes of their strings mean, and how wide they are (ISO 32000-1, 9.6 to 9.10).

use std::{cell::RefCell, collections::HashMap, rc::Rc, sync::Arc};

use hayro_cmap::BfString;
use hayro_font::{CMapResolverFn, FontCache, FontGlyph, FontQuery, FontResolverFn};
use hayro_syntax::object::{Dict, Name};

/// The fonts of a document, each of which is read once.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    programs: FontResolverFn,
    maps: CMapResolverFn,
}

/// A font.
#[derive(Clone)]
pub(super) struct Font<'a> {
    font: hayro_font::Font<'a>,
    /// Whether its codes are UTF-16.
    is_unicode: bool,
    /// The characters that were shown, by their codes and the lengths of these: long texts have few different ones.
    shown: Rc<RefCell<HashMap<(u32, usize), Character>>>,
}

/// A character of a string.
#[derive(Clone)]
pub(super) struct Character {
    /// Its text; none if it has no meaning.
    pub(super) text: Option<Rc<str>>,
    /// Its width in multiples of the font size.
    pub(super) width: f32,
    /// Whether the spacing of words applies to it: a code of one byte, 32.
    pub(super) is_space: bool,
}

impl Default for Fonts<'_> {
    fn default() -> Self {
        Self {
            cache: FontCache::new(),
            // Fonts that are not embedded have the names and the widths of the standard ones.
            programs: Arc::new(|query| {
                Some(match query {
                    FontQuery::Standard(font) => font.get_font_data(),
                    FontQuery::Fallback(query) => query.pick_standard_font().get_font_data(),
                })
            }),
            maps: Arc::new(hayro_cmap::load_embedded),
        }
    }
}

impl<'a> Fonts<'a> {
    /// Returns the font that a dictionary describes, if its strings can be split into codes.
    pub(super) fn font(&self, dictionary: &Dict<'a>) -> Option<Font<'a>> {
        let font = self.cache.font(dictionary, &self.programs, &self.maps)?;
        let encoding = dictionary.get::<Name<'_>>("Encoding");
        let is_unicode = encoding.is_some_and(|name| is_unicode(&name));
        Some(Font { font, is_unicode, shown: Rc::default() })
    }
}

/// Returns whether the codes of an encoding are UTF-16, such as `UniGB-UCS2-H` (table 118).
fn is_unicode(name: &[u8]) -> bool {
    name.starts_with(b"Uni")
        && [&b"UCS2"[..], b"UTF16"].iter().any(|part| memchr::memmem::find(name, part).is_some())
}

impl Font<'_> {
    /// Returns the characters of a string.
    pub(super) fn characters(&self, string: &[u8]) -> Vec<Character> {
        let mut characters = Vec::new();
        let mut at = 0;
        while at < string.len() {
            let (code, length) = self.font.read_code(string, at);
            let mut shown = self.shown.borrow_mut();
            let character = shown.entry((code, length)).or_insert_with(|| self.character(code, length));
            characters.push(character.clone());
            at += length.max(1);
        }
        characters
    }

    fn character(&self, code: u32, length: usize) -> Character {
        let text = match self.font.glyph(self.font.map_code(code), code) {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let text = text.or_else(|| char::from_u32(code).filter(|_| self.is_unicode).map(BfString::Char));
        Character {
            text: text.map(|text| match text {
                // The narrow space of Chinese, Japanese and Korean fonts.
                BfString::Char('\u{2002}') => " ".into(),
                BfString::Char(character) => character.to_string().into(),
                BfString::String(text) => text.into(),
            }),
            width: narrowed(self.font.code_advance(code).x / f64::from(hayro_font::UNITS_PER_EM)),
            is_space: code == u32::from(b' ') && length == 1,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the precision of a width in a page")]
fn narrowed(width: f64) -> f32 {
    width as f32
}
