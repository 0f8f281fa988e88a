//! What content refers to by name: fonts, and forms with content of their own (ISO 32000-1, 7.8.3 and 8.10).

use std::collections::BTreeMap;

use lopdf::{
    Dictionary, Document, Object, ObjectId, Stream,
    content::{Content, Operation},
};

use super::font::Font;

/// The resources of a page or of a form.
pub(super) struct Resources<'a> {
    document: &'a Document,
    fonts: BTreeMap<&'a [u8], Font<'a>>,
    forms: BTreeMap<&'a [u8], &'a Stream>,
}

/// A form: a part of a page, drawn by its name.
pub(super) struct Form<'a> {
    /// Its own resources, if it has any.
    pub(super) resources: Option<Resources<'a>>,
    pub(super) operations: Vec<Operation>,
    /// The operands of its transformation.
    pub(super) matrix: &'a [Object],
    /// The size of its content in bytes.
    pub(super) size: usize,
}

impl<'a> Resources<'a> {
    /// Returns the resources of a page, with those of its ancestors. No stream of a font is larger than `max_inflated` bytes.
    pub(super) fn from_page(document: &'a Document, page: ObjectId, max_inflated: usize) -> Self {
        let (own, shared) = document.get_page_resources(page).unwrap_or_default();
        let shared = shared.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        Self::read(document, own.into_iter().chain(shared), max_inflated)
    }

    /// Reads dictionaries of resources; the first one that has a name decides.
    fn read(
        document: &'a Document,
        dictionaries: impl Iterator<Item = &'a Dictionary>,
        max_inflated: usize,
    ) -> Self {
        let mut resources = Self { document, fonts: BTreeMap::new(), forms: BTreeMap::new() };
        for dictionary in dictionaries {
            for (name, font) in entries(document, dictionary, b"Font") {
                let font = || Font::read(document, font.as_dict().ok()?, max_inflated);
                if let Some(font) = (!resources.fonts.contains_key(name)).then(font).flatten() {
                    resources.fonts.insert(name, font);
                }
            }
            for (name, object) in entries(document, dictionary, b"XObject") {
                let stream = object.as_stream().ok().filter(|stream| is_form(stream));
                if let Some(stream) = stream {
                    resources.forms.entry(name).or_insert(stream);
                }
            }
        }
        resources
    }

    pub(super) fn font(&self, name: &[u8]) -> Option<&Font<'a>> {
        self.fonts.get(name)
    }

    /// Returns a form whose content, and each stream of its fonts, is not larger than `max_inflated` bytes.
    pub(super) fn form(&self, name: &[u8], max_inflated: usize) -> Option<Form<'a>> {
        let stream = *self.forms.get(name)?;
        let content = stream.get_plain_content_with_limit(max_inflated).ok()?;
        let own = stream.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let matrix = stream.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array).ok();
        Some(Form {
            resources: own.map(|own| Self::read(self.document, [own].into_iter(), max_inflated)),
            operations: Content::decode(&content).ok()?.operations,
            matrix: matrix.map_or(&[], Vec::as_slice),
            size: content.len(),
        })
    }
}

/// Returns the resolved entries of a category of resources.
fn entries<'a>(
    document: &'a Document,
    resources: &'a Dictionary,
    category: &[u8],
) -> impl Iterator<Item = (&'a [u8], &'a Object)> {
    let found = resources.get_deref(category, document).and_then(Object::as_dict);
    let entries = found.into_iter().flat_map(|entries| entries.iter());
    entries.filter_map(|(name, object)| Some((name.as_slice(), document.dereference(object).ok()?.1)))
}

fn is_form(stream: &Stream) -> bool {
    stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|subtype| subtype == b"Form")
}
