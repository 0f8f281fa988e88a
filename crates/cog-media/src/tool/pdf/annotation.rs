//! The text of annotations: filled form fields, text boxes and stamps (ISO 32000-1, 12.5 and 12.7).

use std::rc::Rc;

use lopdf::{Dictionary, Document, Object, ObjectId, Stream, decode_text_string};

use super::{parent_of, resources::Resources, text};

/// The maximum number of annotations of a page that are read.
const MAX_ANNOTATIONS: usize = 10_000;
/// The maximum number of ancestors of a field that are searched for an inherited entry.
const MAX_ANCESTORS: usize = 32;
/// The maximum bytes of a value.
const MAX_VALUE: usize = 1 << 20;
/// The maximum bytes of the texts of a page's annotations, which may all refer to one value.
const MAX_TEXTS: usize = 4 << 20;

/// The flags of an annotation that is not displayed: hidden, and no view.
const INVISIBLE: i64 = 2 | 32;
/// The flags of fields.
const PASSWORD: i64 = 1 << 13;
const RADIO: i64 = 1 << 15;
const PUSH_BUTTON: i64 = 1 << 16;

/// The text of the annotations of a page.
#[derive(Default)]
pub(super) struct Annotations {
    /// The text of each annotation that has any.
    pub(super) texts: Vec<String>,
    /// How many have text that cannot be read.
    pub(super) unread: u32,
}

/// Reads the annotations of a page.
pub(super) fn read<'a>(document: &'a Document, page: ObjectId, resources: &Rc<Resources<'a>>) -> Annotations {
    let mut found = Annotations::default();
    let all = document.get_dictionary(page).and_then(|page| page.get_deref(b"Annots", document));
    let Ok(all) = all.and_then(Object::as_array) else { return found };
    let mut left = MAX_TEXTS;
    for annotation in all.iter().take(MAX_ANNOTATIONS) {
        let annotation = document.dereference(annotation).and_then(|found| found.1.as_dict());
        let Ok(annotation) = annotation else { continue };
        let (text, is_complete) = Annotation { document, annotation }.text(resources);
        let fits = left.checked_sub(text.len());
        left = fits.unwrap_or(left);
        if fits.is_some() && !text.is_empty() {
            found.texts.push(text);
        }
        found.unread += u32::from(!is_complete || fits.is_none());
    }
    let rest = all.len().saturating_sub(MAX_ANNOTATIONS);
    found.unread = found.unread.saturating_add(u32::try_from(rest).unwrap_or(u32::MAX));
    found
}

/// An annotation, which can be a field of a form.
struct Annotation<'a> {
    document: &'a Document,
    annotation: &'a Dictionary,
}

impl<'a> Annotation<'a> {
    /// Returns the text, and whether that is all of it: a font may have no meaning, or the page has drawn too much.
    fn text(&self, resources: &Rc<Resources<'a>>) -> (String, bool) {
        let subtype = self.own(b"Subtype").and_then(|name| name.as_name().ok()).unwrap_or_default();
        if integer(self.own(b"F")) & INVISIBLE != 0 || matches!(subtype, b"Popup" | b"Link") {
            return (String::new(), true);
        }
        let flags = integer(self.inherited(b"Ff"));
        let value = match self.inherited(b"FT").and_then(|kind| kind.as_name().ok()) {
            Some(b"Btn") if flags & PUSH_BUTTON == 0 => {
                return (self.button(flags).unwrap_or_default(), true);
            }
            Some(b"Tx") if flags & PASSWORD == 0 => self.inherited(b"V").and_then(|value| self.string(value)),
            Some(b"Ch") => self.choice(),
            None if subtype == b"FreeText" => self.own(b"Contents").and_then(|text| self.string(text)),
            _ => None,
        };
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let appearance = self.appearance().map(|stream| text::text_of_form(resources, stream));
        let (shown, is_complete) = match appearance {
            Some(read) => read.unwrap_or_default(),
            None => (String::new(), true),
        };
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
    fn button(&self, flags: i64) -> Option<String> {
        let state = self.own(b"AS").or_else(|| self.inherited(b"V")).and_then(|state| state.as_name().ok());
        let state = String::from_utf8_lossy(state.filter(|state| !state.is_empty() && *state != b"Off")?);
        let name =
            [&b"TU"[..], b"T"].iter().find_map(|key| self.inherited(key).and_then(|it| self.string(it)));
        let name = name.unwrap_or_default();
        Some(match flags & RADIO != 0 {
            true => format!("[x] {name}: {state}"),
            false => format!("[x] {name}").trim_end().to_owned(),
        })
    }

    /// Returns the chosen items of a list, as they are displayed.
    fn choice(&self) -> Option<String> {
        let value = self.inherited(b"V")?;
        let chosen = match value {
            Object::Array(values) => values.iter().take(100).filter_map(|value| self.string(value)).collect(),
            value => vec![self.string(value)?],
        };
        let options = self.inherited(b"Opt").and_then(|options| options.as_array().ok());
        let options = options.map_or(&[][..], Vec::as_slice);
        let displayed = chosen.into_iter().map(|value| self.displayed(options, &value).unwrap_or(value));
        Some(displayed.collect::<Vec<_>>().join(", "))
    }

    /// Returns the text that is displayed for a value: an option may have one for the program and one for people.
    fn displayed(&self, options: &[Object], value: &str) -> Option<String> {
        options.iter().take(MAX_ANNOTATIONS).find_map(|option| {
            let option = self.document.dereference(option).ok()?.1.as_array().ok()?;
            let [exported, displayed] = option.as_slice() else { return None };
            (self.string(exported)? == value).then(|| self.string(displayed))?
        })
    }

    /// Returns the normal appearance, in the state of the annotation if there are several.
    fn appearance(&self) -> Option<&'a Stream> {
        let document = self.document;
        let normal = self.own(b"AP")?.as_dict().ok()?.get_deref(b"N", document).ok()?;
        if let Ok(stream) = normal.as_stream() {
            return Some(stream);
        }
        let state = self.own(b"AS")?.as_name().ok()?;
        normal.as_dict().ok()?.get_deref(state, document).ok()?.as_stream().ok()
    }

    fn own(&self, key: &[u8]) -> Option<&'a Object> {
        self.annotation.get_deref(key, self.document).ok()
    }

    /// Returns an entry of the field, or of the nearest ancestor that has it.
    fn inherited(&self, key: &[u8]) -> Option<&'a Object> {
        let document = self.document;
        let fields = std::iter::successors(Some(self.annotation), |field| parent_of(document, field));
        let mut fields = fields.take(MAX_ANCESTORS);
        fields.find_map(|field| field.get_deref(key, document).ok())
    }

    fn string(&self, value: &Object) -> Option<String> {
        let text = match self.document.dereference(value).ok()?.1 {
            Object::Stream(stream) => decode(&stream.get_plain_content_with_limit(MAX_VALUE).ok()?)?,
            Object::String(bytes, _) => decode(bytes)?,
            Object::Name(name) => String::from_utf8_lossy(name).into_owned(),
            _ => return None,
        };
        Some(text.replace("\r\n", "\n").replace('\r', "\n"))
    }
}

fn integer(value: Option<&Object>) -> i64 {
    value.and_then(|value| value.as_i64().ok()).unwrap_or_default()
}

/// Removes spaces and line ends.
fn letters(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Decodes a text string. The library leaves line ends out of PDFDocEncoding, which would join words.
fn decode(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xef\xbb\xbf") {
        return decode_line(bytes);
    }
    let lines = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).map(decode_line);
    Some(lines.collect::<Option<Vec<String>>>()?.join("\n"))
}

fn decode_line(bytes: &[u8]) -> Option<String> {
    decode_text_string(&Object::string_literal(bytes)).ok()
}
