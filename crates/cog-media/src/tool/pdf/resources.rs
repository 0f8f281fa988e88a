//! What content refers to by name: fonts, and forms with content of their own (ISO 32000-1, 7.8.3 and 8.10).

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};

use lopdf::{
    Dictionary, Document, Object, ObjectId, Stream,
    content::{Content, Operation},
};

use super::font::Font;

/// The maximum bytes of content of all forms that a page draws, each counted whenever it is drawn.
const MAX_DRAWN: usize = 32 << 20;
/// What drawing a form counts besides its content, so that the number of forms is bounded too.
const DRAWING: usize = 16 << 10;
/// The maximum number of fonts of a page with its forms.
const MAX_FONTS: usize = 1000;

/// The resources of a page or of a form.
pub(super) struct Resources<'a> {
    page: Rc<Page<'a>>,
    fonts: BTreeMap<&'a [u8], &'a Dictionary>,
    forms: BTreeMap<&'a [u8], &'a Stream>,
}

/// What the resources of a page and of its forms share: each object is read once, also if it is drawn often.
struct Page<'a> {
    document: &'a Document,
    /// The maximum bytes of a stream of a font.
    max_inflated: usize,
    fonts: RefCell<HashMap<*const Dictionary, Option<Rc<Font<'a>>>>>,
    resources: RefCell<HashMap<*const Dictionary, Rc<Resources<'a>>>>,
    /// The forms that cannot be read.
    broken: RefCell<HashSet<*const Stream>>,
    /// The bytes of content of forms that may still be drawn.
    left: Cell<usize>,
}

/// A form: a part of a page, drawn by its name.
pub(super) struct Form<'a> {
    /// Its own resources, if it has any.
    pub(super) resources: Option<Rc<Resources<'a>>>,
    pub(super) operations: Vec<Operation>,
    /// The operands of its transformation.
    pub(super) matrix: &'a [Object],
}

impl<'a> Resources<'a> {
    /// Returns the resources of a page and of its ancestors. No stream of a font is larger than `max_inflated` bytes.
    pub(super) fn from_page(document: &'a Document, page: ObjectId, max_inflated: usize) -> Rc<Self> {
        let (own, shared) = document.get_page_resources(page).unwrap_or_default();
        let shared = shared.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        let page = Page {
            document,
            max_inflated,
            fonts: RefCell::default(),
            resources: RefCell::default(),
            broken: RefCell::default(),
            left: Cell::new(MAX_DRAWN),
        };
        Rc::new(Self::read(&Rc::new(page), own.into_iter().chain(shared)))
    }

    /// Reads dictionaries of resources; the first one that has a name decides.
    fn read(page: &Rc<Page<'a>>, dictionaries: impl Iterator<Item = &'a Dictionary>) -> Self {
        let mut resources = Self { page: Rc::clone(page), fonts: BTreeMap::new(), forms: BTreeMap::new() };
        for dictionary in dictionaries {
            for (name, object) in entries(page.document, dictionary, b"Font") {
                if let Ok(font) = object.as_dict() {
                    resources.fonts.entry(name).or_insert(font);
                }
            }
            for (name, object) in entries(page.document, dictionary, b"XObject") {
                let stream = object.as_stream().ok().filter(|stream| is_form(stream));
                if let Some(stream) = stream {
                    resources.forms.entry(name).or_insert(stream);
                }
            }
        }
        resources
    }

    /// Returns a font that can be decoded.
    pub(super) fn font(&self, name: &[u8]) -> Option<Rc<Font<'a>>> {
        let font = *self.fonts.get(name)?;
        let Page { document, max_inflated, fonts, .. } = &*self.page;
        let mut fonts = fonts.borrow_mut();
        if fonts.len() >= MAX_FONTS && !fonts.contains_key(&std::ptr::from_ref(font)) {
            return None;
        }
        let font_of = fonts.entry(std::ptr::from_ref(font));
        font_of.or_insert_with(|| Font::read(document, font, *max_inflated).map(Rc::new)).clone()
    }

    /// Returns a form to draw, unless the page has drawn too much.
    pub(super) fn form(&self, name: &[u8]) -> Option<Form<'a>> {
        self.form_of(*self.forms.get(name)?)
    }

    /// Returns a form that has no name, such as the appearance of an annotation.
    pub(super) fn form_of(&self, stream: &'a Stream) -> Option<Form<'a>> {
        let Page { document, left, broken, .. } = &*self.page;
        left.set(left.get().checked_sub(DRAWING)?);
        if broken.borrow().contains(&std::ptr::from_ref(stream)) {
            return None;
        }
        let Some(operations) = self.operations(stream) else {
            broken.borrow_mut().insert(std::ptr::from_ref(stream));
            return None;
        };
        let own = stream.dict.get_deref(b"Resources", document).and_then(Object::as_dict).ok();
        let matrix = stream.dict.get_deref(b"Matrix", document).and_then(Object::as_array).ok();
        Some(Form {
            resources: own.map(|own| self.within(own)),
            operations,
            matrix: matrix.map_or(&[], Vec::as_slice),
        })
    }

    /// Releases the resources of forms, each of which refers to the page, so that both are freed.
    pub(super) fn release_forms(&self) {
        self.page.resources.borrow_mut().clear();
    }

    /// Reads the content of a form.
    fn operations(&self, stream: &Stream) -> Option<Vec<Operation>> {
        let left = &self.page.left;
        let content = stream.get_plain_content_with_limit(left.get()).ok()?;
        left.set(left.get().saturating_sub(content.len()));
        Some(Content::decode(&content).ok()?.operations)
    }

    /// Returns the resources of a form.
    fn within(&self, own: &'a Dictionary) -> Rc<Self> {
        let mut known = self.page.resources.borrow_mut();
        let resources = known.entry(std::ptr::from_ref(own));
        Rc::clone(resources.or_insert_with(|| Rc::new(Self::read(&self.page, std::iter::once(own)))))
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

#[cfg(test)]
mod tests {
    use lopdf::dictionary;

    use super::*;

    /// Returns a document with a page that has the form `X`, of this content, and the resources of that form.
    fn with_form(content: &[u8]) -> (Document, ObjectId) {
        let mut document = Document::new();
        let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "Encoding" => "WinAnsiEncoding" };
        let own = dictionary! { "Font" => dictionary! { "F" => font } };
        let form = Stream::new(dictionary! { "Subtype" => "Form", "Resources" => own }, content.to_vec());
        let form = document.add_object(form);
        let resources = dictionary! { "XObject" => dictionary! { "X" => form } };
        let page = document.add_object(dictionary! { "Type" => "Page", "Resources" => resources });
        (document, page)
    }

    #[test]
    fn font_of_a_form_is_read_once() {
        let (document, page) = with_form(b"BT ET");
        let page = Resources::from_page(&document, page, 1 << 20);
        let draw = || page.form(b"X").unwrap().resources.unwrap().font(b"F").unwrap();
        assert!(Rc::ptr_eq(&draw(), &draw()));
    }

    #[test]
    fn page_with_a_form_is_freed() {
        let (document, page) = with_form(b"BT ET");
        let resources = Resources::from_page(&document, page, 1 << 20);
        let page = Rc::downgrade(&resources.page);
        drop(resources.form(b"X").unwrap());
        resources.release_forms();
        drop(resources);
        assert!(page.upgrade().is_none());
    }

    #[test]
    fn empty_and_broken_forms_are_bounded() {
        for content in [&b""[..], b"(", b"BT ET"] {
            let (document, page) = with_form(content);
            let page = Resources::from_page(&document, page, 1 << 20);
            let drawn = (0..1_000_000).take_while(|_| page.form(b"X").is_some()).count();
            assert!(drawn <= MAX_DRAWN / DRAWING, "{drawn}");
        }
    }
}
