//! Reads PDF documents: the number of pages, and the text of each.

mod annotation;
mod code;
mod font;
mod resources;
mod text;

use std::rc::Rc;

use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId, content::Content};

use self::{annotation::Annotations, resources::Resources};
use super::{
    container::Handle,
    report::{PageText, ReadError},
};
use crate::MediaInfo;

/// The maximum size of a decompressed stream.
const MAX_INFLATED: usize = 64 << 20;

/// The maximum bytes of text of a document.
const MAX_TEXT: usize = 8 << 20;

/// Returns the number of pages.
pub(super) fn facts(input: Handle) -> Result<MediaInfo, ReadError> {
    let document = open(input)?;
    let found = document.page_iter().count();
    if found == 0 {
        return Err(ReadError::NoPages);
    }
    let pages = found.max(declared_pages(&document));
    Ok(MediaInfo { pages: Some(u32::try_from(pages).unwrap_or(u32::MAX)), ..MediaInfo::default() })
}

/// Returns the number of pages that the document declares: other readers may find more than this one.
fn declared_pages(document: &Document) -> usize {
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Pages", document));
    let count = root.and_then(Object::as_dict).and_then(|root| root.get_deref(b"Count", document));
    count.and_then(Object::as_i64).ok().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

/// Returns the text of every page.
pub(super) fn text(input: Handle) -> Result<Vec<PageText>, ReadError> {
    let document = open(input)?;
    let mut left = MAX_TEXT;
    let mut pages = Vec::new();
    for (number, page) in document.get_pages() {
        let page = page_text(&document, number, page);
        left = left.checked_sub(page.text.len()).ok_or(ReadError::TooMuchText)?;
        pages.push(page);
    }
    if pages.is_empty() { Err(ReadError::NoPages) } else { Ok(pages) }
}

/// Returns the width and height of every page in points.
pub(super) fn sizes(input: Handle) -> Result<Vec<Option<(f64, f64)>>, ReadError> {
    let document = open(input)?;
    Ok(document.page_iter().map(|page| size_of(&document, page)).collect())
}

fn open(input: Handle) -> Result<Document, ReadError> {
    let bytes = input.bytes().map_err(|_| ReadError::Broken)?;
    let options = LoadOptions::with_max_decompressed_size(MAX_INFLATED);
    let document = Document::load_mem_with_options(&bytes, options).map_err(|error| match error {
        lopdf::Error::InvalidPassword => ReadError::Encrypted,
        _ => ReadError::Broken,
    })?;
    if document.is_encrypted() { Err(ReadError::Encrypted) } else { Ok(document) }
}

/// Returns the readable text of a page and then of its annotations. Text in a font without a mapping table is
/// skipped.
fn page_text(document: &Document, number: u32, page: ObjectId) -> PageText {
    let content = document.get_page_content_with_limit(page, MAX_INFLATED);
    let content = content.and_then(|content| Content::decode(&content));
    let operations = content.map(|content| content.operations).unwrap_or_default();
    let resources = Resources::from_page(document, page, MAX_INFLATED);
    let text = text::text_of(Rc::clone(&resources), &operations);
    let Annotations { texts, unread } = annotation::read(document, page, &resources);
    resources.release_forms();
    let text = [text, texts.join("\n")].join("\n");
    let text = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned();
    PageText { number, text, unread }
}

// The size of a page.

/// The maximum number of ancestors of a page that are searched for an inherited box.
const MAX_ANCESTORS: usize = 64;

/// Returns the width and height of a page in points, cropped and rotated as it is displayed.
fn size_of(document: &Document, page: ObjectId) -> Option<(f64, f64)> {
    let page = document.get_dictionary(page).ok()?;
    let dimensions =
        inherited(document, page, b"CropBox").or_else(|| inherited(document, page, b"MediaBox"))?;
    let (width, height) = dimensions_of(document, dimensions)?;
    let rotation =
        inherited(document, page, b"Rotate").and_then(|turn| turn.as_i64().ok()).unwrap_or_default();
    Some(if rotation.rem_euclid(180) == 90 { (height, width) } else { (width, height) })
}

/// Returns an entry of a page, or of the nearest ancestor that has it.
fn inherited<'a>(document: &'a Document, page: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    // A damaged document may be its own ancestor, so the number is limited.
    let mut nodes = std::iter::successors(Some(page), |node| parent_of(document, node)).take(MAX_ANCESTORS);
    nodes.find_map(|node| node.get_deref(key, document).ok())
}

/// Returns the parent of a node of the page tree, or of a field.
fn parent_of<'a>(document: &'a Document, node: &'a Dictionary) -> Option<&'a Dictionary> {
    node.get_deref(b"Parent", document).ok()?.as_dict().ok()
}

fn dimensions_of(document: &Document, rectangle: &Object) -> Option<(f64, f64)> {
    let corners = rectangle.as_array().ok()?.iter().map(|corner| {
        let (_, corner) = document.dereference(corner).ok()?;
        corner.as_float().ok().map(f64::from)
    });
    let [x1, y1, x2, y2] = corners.collect::<Option<Vec<f64>>>()?.try_into().ok()?;
    let width = f64::abs(x2 - x1);
    let height = f64::abs(y2 - y1);
    (width.is_finite() && height.is_finite()).then_some((width, height))
}
