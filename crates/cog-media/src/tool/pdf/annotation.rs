//! The text of annotations: filled form fields, text boxes and stamps (ISO 32000-1, 12.5 and 12.7).

use hayro_syntax::{
    object::{Array, Dict, Name, Object, Stream},
    page::Page,
};

use super::{
    placed::{PlacedAnnotation, Rectangle},
    text::Drawing,
};

/// The maximum number of annotations of a page that are read.
const MAX_ANNOTATIONS: usize = 10_000;
/// The maximum number of ancestors of a field that are searched for an inherited entry.
const MAX_ANCESTORS: usize = 32;
/// The maximum number of chosen items of a list that are read.
const MAX_CHOSEN: usize = 100;
/// The maximum bytes of a value.
const MAX_VALUE: usize = 1 << 20;
/// The maximum bytes of the texts of a page's annotations, which may all refer to one value.
const MAX_TEXTS: usize = 4 << 20;

/// The flags of an annotation that is not displayed: hidden, and no view.
const INVISIBLE: i32 = 2 | 32;
/// The flags of fields.
const PASSWORD: i32 = 1 << 13;
const RADIO: i32 = 1 << 15;
const PUSH_BUTTON: i32 = 1 << 16;

/// The text of the annotations of a page.
#[derive(Default)]
pub(super) struct Annotations {
    /// Those that have text, and the fields of a form.
    pub(super) placed: Vec<PlacedAnnotation>,
    /// How many have text that cannot be read.
    pub(super) unread: u32,
}

/// Reads the annotations of a page.
pub(super) fn read<'a>(page: &Page<'a>, drawing: &mut Drawing<'a>) -> Annotations {
    let mut found = Annotations::default();
    let Some(all) = page.raw().get::<Array<'a>>("Annots") else { return found };
    let mut left = MAX_TEXTS;
    for (at, annotation) in all.iter::<Object<'a>>().enumerate() {
        if at >= MAX_ANNOTATIONS {
            found.unread = found.unread.saturating_add(1);
            continue;
        }
        let Some(annotation) = annotation.into_dict() else { continue };
        let subtype = annotation.get::<Name<'a>>("Subtype");
        let is_field = subtype.is_some_and(|subtype| subtype.as_ref() == b"Widget");
        let rectangle = annotation.get::<Array<'a>>("Rect").and_then(|corners| Rectangle::read(&corners));
        let (text, is_complete) = Annotation { annotation }.text(page, drawing);
        let fits = left.checked_sub(text.len());
        left = fits.unwrap_or(left);
        if fits.is_some() && (is_field || !text.is_empty()) {
            found.placed.push(PlacedAnnotation { text, rectangle: rectangle.unwrap_or_default() });
        }
        found.unread += u32::from(!is_complete || fits.is_none());
    }
    found
}

/// An annotation, which can be a field of a form.
struct Annotation<'a> {
    annotation: Dict<'a>,
}

impl<'a> Annotation<'a> {
    /// Returns the text, and whether that is all of it: a font may have no meaning, or the page has drawn too much.
    fn text(&self, page: &Page<'a>, drawing: &mut Drawing<'a>) -> (String, bool) {
        let subtype = self.annotation.get::<Name<'a>>("Subtype");
        let subtype = subtype.as_deref().unwrap_or_default();
        let flags = self.annotation.get::<i32>("F").unwrap_or_default();
        if flags & INVISIBLE != 0 || matches!(subtype, b"Popup" | b"Link") {
            return (String::new(), true);
        }
        let flags = self.inherited("Ff").and_then(Object::into_i32).unwrap_or_default();
        let value = match self.inherited("FT").and_then(Object::into_name).as_deref() {
            Some(b"Btn") if flags & PUSH_BUTTON == 0 => {
                return (self.button(flags).unwrap_or_default(), true);
            }
            Some(b"Tx") if flags & PASSWORD == 0 => self.inherited("V").and_then(string),
            Some(b"Ch") => self.choice(),
            None if subtype == b"FreeText" => self.annotation.get::<Object<'a>>("Contents").and_then(string),
            _ => None,
        };
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let appearance = self.appearance().map(|form| drawing.text_of_form(page, &form));
        let (shown, is_complete) = match appearance {
            Some(read) => read.unwrap_or_default(),
            None => (String::new(), true),
        };
        // Characters without a meaning are counted, and not shown among the others.
        let shown = shown.replace(char::REPLACEMENT_CHARACTER, "");
        let shown = shown.trim();
        match value {
            // Characters may be shown one by one, at their places.
            Some(value) if shown.is_empty() || !is_complete || letters(shown) == letters(&value) => {
                (value, true)
            }
            Some(_) => (shown.to_owned(), true),
            None => (shown.to_owned(), is_complete),
        }
    }

    /// Returns the name of a check box or radio button that is on.
    fn button(&self, flags: i32) -> Option<String> {
        let state = self.annotation.get::<Name<'a>>("AS");
        let state = state.or_else(|| self.inherited("V").and_then(Object::into_name))?;
        if state.is_empty() || state.as_ref() == b"Off" {
            return None;
        }
        let name = ["TU", "T"].iter().find_map(|key| self.inherited(key).and_then(string));
        let name = name.unwrap_or_default();
        Some(match flags & RADIO != 0 {
            true => format!("[x] {name}: {}", String::from_utf8_lossy(&state)),
            false => format!("[x] {name}").trim_end().to_owned(),
        })
    }

    /// Returns the chosen items of a list, as they are displayed.
    fn choice(&self) -> Option<String> {
        let chosen = match self.inherited("V")? {
            Object::Array(values) => {
                values.iter::<Object<'a>>().take(MAX_CHOSEN).filter_map(string).collect()
            }
            value => vec![string(value)?],
        };
        let options = self.inherited("Opt").and_then(Object::into_array).unwrap_or_default();
        let displayed = chosen.into_iter().map(|value| displayed(&options, &value).unwrap_or(value));
        Some(displayed.collect::<Vec<_>>().join(", "))
    }

    /// Returns the normal appearance, in the state of the annotation if there are several.
    fn appearance(&self) -> Option<Stream<'a>> {
        match self.annotation.get::<Dict<'a>>("AP")?.get::<Object<'a>>("N")? {
            Object::Stream(stream) => Some(stream),
            Object::Dict(states) => states.get(self.annotation.get::<Name<'a>>("AS")?),
            _ => None,
        }
    }

    /// Returns an entry of the field, or of the nearest ancestor that has it.
    fn inherited(&self, key: &str) -> Option<Object<'a>> {
        // A damaged document may be its own ancestor, so the number is limited.
        let fields =
            std::iter::successors(Some(self.annotation.clone()), |field| field.get::<Dict<'a>>("Parent"));
        fields.take(MAX_ANCESTORS).find_map(|field| field.get::<Object<'a>>(key))
    }
}

/// Returns the text that is displayed for a value: an option may have one for the program and one for people.
fn displayed(options: &Array<'_>, value: &str) -> Option<String> {
    options.iter::<Object<'_>>().take(MAX_ANNOTATIONS).find_map(|option| {
        let mut option = option.into_array()?.iter::<Object<'_>>().collect::<Vec<_>>().into_iter();
        let exported = option.next().and_then(string)?;
        let displayed = option.next()?;
        (exported == value).then(|| string(displayed))?
    })
}

/// Returns a value as text.
fn string(value: Object<'_>) -> Option<String> {
    let text = match value {
        Object::Stream(stream) => {
            decode(stream.decoded_data().ok().filter(|data| data.len() <= MAX_VALUE)?.as_ref())
        }
        Object::String(bytes) => decode(&bytes),
        Object::Name(name) => String::from_utf8_lossy(&name).into_owned(),
        _ => return None,
    };
    Some(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Removes spaces and line ends.
fn letters(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Decodes a text string (7.9.2.2): UTF-16, UTF-8, or the encoding of PDF itself.
fn decode(bytes: &[u8]) -> String {
    if let Some(units) = bytes.strip_prefix(b"\xfe\xff") {
        let units =
            units.chunks_exact(2).map(|unit| unit.iter().fold(0, |all, byte| all << 8 | u16::from(*byte)));
        return char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    }
    match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => bytes.iter().map(|byte| character(*byte)).collect(),
    }
}

/// Returns the character of a byte in PDFDocEncoding (annex D.2), which is Latin-1 with more marks.
fn character(byte: u8) -> char {
    const ACCENTS: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const MARKS: [char; 33] = [
        '•',
        '†',
        '‡',
        '…',
        '—',
        '–',
        'ƒ',
        '⁄',
        '‹',
        '›',
        '−',
        '‰',
        '„',
        '“',
        '”',
        '‘',
        '’',
        '‚',
        '™',
        'ﬁ',
        'ﬂ',
        'Ł',
        'Œ',
        'Š',
        'Ÿ',
        'Ž',
        'ı',
        'ł',
        'œ',
        'š',
        'ž',
        char::REPLACEMENT_CHARACTER,
        '€',
    ];
    let special = match byte {
        0x18..=0x1f => ACCENTS.get(usize::from(byte - 0x18)),
        0x80..=0xa0 => MARKS.get(usize::from(byte - 0x80)),
        _ => None,
    };
    special.copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_strings_have_three_encodings() {
        assert_eq!(decode(b"\xfe\xff\x00\xc4\xd8\x3d\xde\x00"), "Ä😀");
        assert_eq!(decode("\u{feff}Ä".as_bytes()), "Ä");
        assert_eq!(decode(b"1 \xa0 \x84 \xc4\n\x1f"), "1 € — Ä\n˜");
    }
}
