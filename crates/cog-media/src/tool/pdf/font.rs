//! Fonts: how their strings are decoded, and how wide they are (ISO 32000-1, 9.6 to 9.7).

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::code::{CodeLengths, ONE_BYTE};

/// The width of a character of a font without widths.
const DEFAULT_WIDTH: f32 = 0.5;
/// The maximum number of characters whose widths are read.
const MAX_WIDTHS: usize = 1 << 16;

/// A font.
pub(super) struct Font<'a> {
    characters: Characters<'a>,
    /// The widths of characters in multiples of the font size.
    widths: HashMap<u32, f32>,
    default_width: f32,
}

/// What the codes of a font mean.
enum Characters<'a> {
    /// The text of each byte; empty if it has no meaning.
    Simple(Vec<String>),
    /// The map of codes that can have several bytes, and their lengths.
    Composite(Encoding<'a>, CodeLengths),
}

impl<'a> Font<'a> {
    /// Reads a font that can be decoded. No stream of it is larger than `max_inflated` bytes.
    pub(super) fn read(document: &'a Document, font: &'a Dictionary, max_inflated: usize) -> Option<Self> {
        let descendants = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
        let descendant = descendants.and_then(|fonts| Some(document.dereference(fonts.first()?).ok()?.1));
        let descendant = descendant.and_then(|font| font.as_dict().ok());
        let (widths, default_width) = match descendant {
            Some(font) => composite_widths(document, font),
            None => simple_widths(document, font),
        };
        let characters = match descendant {
            Some(_) => Characters::Composite(
                composite_encoding(document, font, max_inflated)?,
                CodeLengths::read(document, font, max_inflated),
            ),
            None => Characters::Simple(simple_characters(document, font, max_inflated)?),
        };
        Some(Self { characters, widths, default_width })
    }

    /// Decodes a string; an empty one if it has no meaning.
    pub(super) fn decode(&self, bytes: &[u8]) -> String {
        match &self.characters {
            Characters::Simple(texts) => {
                bytes.iter().filter_map(|byte| texts.get(usize::from(*byte))).map(String::as_str).collect()
            }
            Characters::Composite(map @ Encoding::UnicodeMapEncoding(_), lengths) => {
                let units = lengths.codes(bytes).flat_map(|code| units_of(map, code));
                char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
            Characters::Composite(encoding, _) => Document::decode_text(encoding, bytes).unwrap_or_default(),
        }
    }

    /// Returns the codes of a string.
    pub(super) fn codes<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let lengths = match &self.characters {
            Characters::Simple(_) => &ONE_BYTE,
            Characters::Composite(_, lengths) => lengths,
        };
        lengths.codes(bytes)
    }

    fn is_composite(&self) -> bool {
        matches!(self.characters, Characters::Composite(..))
    }

    /// Returns the width of a string in multiples of the font size, its characters and its spaces.
    pub(super) fn measure(&self, bytes: &[u8]) -> (f32, f32, f32) {
        let is_composite = self.is_composite();
        let codes = self.codes(bytes).map(number_of);
        codes.fold((0.0, 0.0, 0.0), |(width, characters, spaces), code| {
            let own = self.widths.get(&code).copied().unwrap_or(self.default_width);
            let is_space = !is_composite && code == u32::from(b' ');
            (width + own, characters + 1.0, spaces + f32::from(u8::from(is_space)))
        })
    }
}

/// Returns the UTF-16 text of a code. Some producers write a code in the map with another length than in the text.
fn units_of(map: &Encoding<'_>, code: &[u8]) -> Vec<u16> {
    let Encoding::UnicodeMapEncoding(map) = map else { return Vec::new() };
    let length = u8::try_from(code.len()).unwrap_or_default();
    let mut lengths = std::iter::once(length).chain((1..=4).filter(|other| *other != length));
    let number = number_of(code);
    lengths.find_map(|length| map.get(number, length)).unwrap_or_else(|| vec![0xfffd])
}

/// Returns a code of at most four bytes as a number.
fn number_of(code: &[u8]) -> u32 {
    code.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

/// Returns the map of a composite font to Unicode: its own, or the map of an encoding for Unicode. The codes of any
/// other font have no meaning.
fn composite_encoding<'a>(
    document: &'a Document,
    font: &'a Dictionary,
    max_inflated: usize,
) -> Option<Encoding<'a>> {
    to_unicode(document, font, max_inflated).or_else(|| {
        let encoding = font.get_font_encoding_with_limit(document, max_inflated).ok()?;
        matches!(encoding, Encoding::SimpleEncoding(_)).then_some(encoding)
    })
}

/// Returns the text of each byte in a simple font. Its map to Unicode has precedence over its encoding (9.10.2).
fn simple_characters(document: &Document, font: &Dictionary, max_inflated: usize) -> Option<Vec<String>> {
    let defined = with_defined_glyphs(document, font);
    let encoding = defined.get_font_encoding_with_limit(document, max_inflated).ok()?;
    let map = to_unicode(document, font, max_inflated);
    let texts = (0..=u8::MAX).map(|byte| {
        let mapped = map.as_ref().and_then(|map| mapped(map, byte));
        mapped.unwrap_or_else(|| Document::decode_text(&encoding, &[byte]).unwrap_or_default())
    });
    Some(texts.collect())
}

/// Returns the text of a byte, whose code is written with one byte or, by some producers, with two.
fn mapped(map: &Encoding<'_>, byte: u8) -> Option<String> {
    let Encoding::UnicodeMapEncoding(map) = map else { return None };
    let code = u32::from(byte);
    let units = map.get(code, 1).or_else(|| map.get(code, 2))?;
    Some(String::from_utf16_lossy(&units))
}

/// Returns the map of a font's codes to Unicode.
fn to_unicode(document: &Document, font: &Dictionary, max_inflated: usize) -> Option<Encoding<'static>> {
    font.get(b"ToUnicode").ok()?;
    // The library uses the map only where a font has no other encoding.
    let mut font = font.clone();
    font.remove(b"Encoding");
    match font.get_font_encoding_with_limit(document, max_inflated).ok()? {
        Encoding::UnicodeMapEncoding(map) => Some(Encoding::UnicodeMapEncoding(map)),
        _ => None,
    }
}

/// Returns a font without the glyphs called `.notdef` in its encoding, which the library takes for an error.
fn with_defined_glyphs(document: &Document, font: &Dictionary) -> Dictionary {
    let mut font = font.clone();
    let encoding = font.get_deref(b"Encoding", document).and_then(Object::as_dict).ok();
    if let Some(mut encoding) = encoding.cloned() {
        let differences = defined(list(document, &encoding, b"Differences"));
        encoding.set("Differences", differences);
        font.set("Encoding", encoding);
    }
    font
}

/// Returns differences, `code name name ...`, with a code before each name and without `.notdef`.
fn defined(differences: &[Object]) -> Vec<Object> {
    let mut code = 0;
    let mut defined = Vec::new();
    for object in differences {
        match object {
            Object::Integer(first) => code = *first,
            name => {
                if !matches!(name, Object::Name(name) if name == b".notdef") {
                    defined.extend([Object::Integer(code), name.clone()]);
                }
                code = code.saturating_add(1);
            }
        }
    }
    defined
}

fn number(document: &Document, font: &Dictionary, key: &[u8]) -> Option<f32> {
    font.get_deref(key, document).and_then(Object::as_float).ok()
}

fn list<'a>(document: &'a Document, font: &'a Dictionary, key: &[u8]) -> &'a [Object] {
    font.get_deref(key, document).and_then(Object::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the widths of a font whose characters are bytes. The widths of a Type 3 font have a unit of their own.
fn simple_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let unit = list(document, font, b"FontMatrix").first().and_then(|unit| unit.as_float().ok());
    let unit = unit.unwrap_or(0.001);
    let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0);
    let codes = u32::try_from(first).unwrap_or_default()..;
    let widths = list(document, font, b"Widths").iter().take(256);
    let known = codes.zip(widths).filter_map(|(code, width)| {
        let width = document.dereference(width).ok()?.1.as_float().ok()?;
        Some((code, width * unit))
    });
    (known.collect(), DEFAULT_WIDTH)
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

#[cfg(test)]
mod tests {
    use lopdf::{Stream, dictionary};

    use super::*;

    /// Maps the code of `A` to `ffi`.
    fn map(codes: &str) -> Stream {
        let text = format!(
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapType 2 def\n\
             1 begincodespacerange\n<{codes}00> <{codes}FF>\nendcodespacerange\n\
             1 beginbfchar\n<{codes}41> <006600660069>\nendbfchar\n\
             endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
        );
        Stream::new(Dictionary::new(), text.into_bytes())
    }

    fn decode(document: &Document, font: &Dictionary, bytes: &[u8]) -> String {
        Font::read(document, font, 1 << 20).map(|font| font.decode(bytes)).unwrap_or_default()
    }

    #[test]
    fn map_to_unicode_has_precedence_over_the_encoding() {
        let mut document = Document::new();
        let differences = dictionary! { "Differences" => vec![66.into(), Object::Name(b"C".to_vec())] };
        let encodings = [Object::Null, Object::Name(b"WinAnsiEncoding".to_vec()), differences.into()];
        for (encoding, rest) in encodings.into_iter().zip(["BC", "BC", "CC"]) {
            for codes in ["", "00"] {
                let map = document.add_object(map(codes));
                let font =
                    dictionary! { "Type" => "Font", "Encoding" => encoding.clone(), "ToUnicode" => map };
                assert_eq!(decode(&document, &font, b"ABC"), format!("ffi{rest}"), "{encoding:?} {codes}");
            }
        }
    }

    #[test]
    fn composite_font_with_an_embedded_encoding_is_decoded_by_its_map() {
        let mut document = Document::new();
        let (map, encoding) = (document.add_object(map("00")), document.add_object(map("00")));
        let descendants = vec![Object::Dictionary(dictionary! { "Type" => "Font" })];
        let font = dictionary! {
            "Type" => "Font", "Encoding" => encoding, "ToUnicode" => map, "DescendantFonts" => descendants
        };
        assert_eq!(decode(&document, &font, b"\0A"), "ffi");
        for encoding in [Object::Name(b"Identity-H".to_vec()), encoding.into()] {
            let mut without = font.clone();
            without.remove(b"ToUnicode");
            without.set("Encoding", encoding);
            assert_eq!(decode(&document, &without, b"\0A"), "", "a code without a meaning");
        }
    }

    #[test]
    fn code_has_the_length_that_the_encoding_says() {
        let text = |encoding: &str, space: &str, codes: [&str; 2], bytes: &[u8]| {
            let mut document = Document::new();
            let map = format!(
                "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapType 2 def\n\
                 1 begincodespacerange\n{space}\nendcodespacerange\n\
                 2 beginbfchar\n<{}> <0037>\n<{}> <D83DDE00>\nendbfchar\n\
                 endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n",
                codes[0], codes[1]
            );
            let map = document.add_object(Stream::new(Dictionary::new(), map.into_bytes()));
            let encoding = match encoding.strip_prefix('<') {
                Some(_) => {
                    let space = format!("1 begincodespacerange {encoding} endcodespacerange");
                    document.add_object(Stream::new(Dictionary::new(), space.into_bytes()))
                }
                None => document.add_object(Object::Name(encoding.as_bytes().to_vec())),
            };
            let descendants = vec![Object::Dictionary(dictionary! { "Type" => "Font" })];
            let font = dictionary! {
                "Type" => "Font", "Encoding" => encoding, "ToUnicode" => map, "DescendantFonts" => descendants
            };
            decode(&document, &font, bytes)
        };
        // The map declares less than it contains, or another length.
        assert_eq!(text("Identity-H", "<0003> <0003>", ["0014", "0105"], b"\0\x14\x01\x05\0\x14"), "7😀7");
        assert_eq!(text("Identity-V", "<00> <FF>", ["0014", "0105"], b"\0\x14\x01\x05"), "7😀");
        assert_eq!(text("Identity-H", "<00> <FF>", ["14", "15"], b"\0\x14\0\x15"), "7😀");
        assert_eq!(text("<00> <FF>", "<0000> <FFFF>", ["0014", "0015"], b"\x14\x15\x14"), "7😀7");
        // A code without a meaning is one character.
        assert_eq!(text("Identity-H", "<0000> <FFFF>", ["0014", "0015"], b"\0\x16\0\x14"), "\u{fffd}7");
    }

    #[test]
    fn glyph_without_a_definition_leaves_the_others() {
        let names = [".notdef", "udieresis", ".notdef", "eacute"];
        let names = names.map(|name| Object::Name(name.as_bytes().to_vec()));
        let differences: Vec<Object> = [Object::Integer(64)].into_iter().chain(names).collect();
        let font =
            dictionary! { "Type" => "Font", "Encoding" => dictionary! { "Differences" => differences } };
        assert_eq!(decode(&Document::new(), &font, b"ACD"), "üéD");
    }
}
