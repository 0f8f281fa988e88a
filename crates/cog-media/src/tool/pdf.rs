//! Reads PDF documents: the number of pages, and the text of each.

mod annotation;
mod content;
mod font;
mod placed;
mod text;

use std::sync::Arc;

use hayro_syntax::{
    DecryptionError, LoadPdfError, Pdf,
    object::{Array, Dict, Name, Object},
};

use self::{annotation::Annotations, text::Drawing};
use super::{
    container::Handle,
    report::{PageText, ReadError},
};
use crate::{MediaInfo, Placeholder};

/// The maximum bytes of text of a document.
const MAX_TEXT: usize = 8 << 20;

/// Returns the number of pages, and whether they stand for something else.
pub(super) fn facts(input: Handle) -> Result<MediaInfo, ReadError> {
    let document = open(input)?;
    let pages = document.pages().len().max(declared_pages(&document));
    Ok(MediaInfo {
        pages: Some(u32::try_from(pages).unwrap_or(u32::MAX)),
        placeholder: placeholder(&document),
        ..MediaInfo::default()
    })
}

/// Returns the text of every page.
pub(super) fn text(input: Handle) -> Result<Vec<PageText>, ReadError> {
    let document = open(input)?;
    let mut drawing = Drawing::default();
    let mut left = MAX_TEXT;
    let mut texts = Vec::new();
    for (number, page) in (1..).zip(document.pages().iter()) {
        drawing.start_page();
        let shown = drawing.text_of_page(page);
        let Annotations { placed, unread } = annotation::read(page, &mut drawing);
        let page = PageText::new(number, &shown.with(&placed));
        let annotations = placed.iter().filter(|annotation| !annotation.text.is_empty()).count();
        let annotations = u32::try_from(annotations).unwrap_or(u32::MAX);
        let text = PageText { annotations, unread, ..page };
        left = left.checked_sub(text.text.len()).ok_or(ReadError::TooMuchText)?;
        texts.push(text);
    }
    Ok(texts)
}

/// Returns the width and height of every page in points, cropped and rotated as it is displayed.
pub(super) fn sizes(input: Handle) -> Result<Vec<Option<(f64, f64)>>, ReadError> {
    let document = open(input)?;
    let sizes = document.pages().iter().map(|page| page.render_dimensions());
    Ok(sizes.map(|(width, height)| Some((width.into(), height.into()))).collect())
}

/// Opens a document that has pages and needs no password.
fn open(input: Handle) -> Result<Pdf, ReadError> {
    let bytes = Arc::new(input.bytes().map_err(|_| ReadError::Broken)?);
    let opened = match Pdf::new(Arc::clone(&bytes)) {
        Err(LoadPdfError::Decryption(DecryptionError::MissingIDEntry)) => Pdf::new(with_identifier(&bytes)),
        opened => opened,
    };
    let document = opened.map_err(|error| match error {
        LoadPdfError::Decryption(_) => ReadError::Encrypted,
        LoadPdfError::Invalid => ReadError::Broken,
    })?;
    if document.pages().is_empty() { Err(ReadError::NoPages) } else { Ok(document) }
}

/// Adds an empty identifier to the last trailer, after everything that has an offset. The key of an encrypted document
/// depends on its identifier, and without one it is as if it were empty.
fn with_identifier(document: &[u8]) -> Vec<u8> {
    let trailer = memchr::memmem::rfind(document, b"trailer").unwrap_or(document.len());
    let dictionary = document.get(trailer..).and_then(|trailer| memchr::memmem::find(trailer, b"<<"));
    let start = dictionary.map_or(document.len(), |at| trailer + at + b"<<".len());
    let (before, after) = document.split_at(start);
    [before, b" /ID [<> <>] ", after].concat()
}

/// Returns the number of pages that the document declares: other readers may find more than this one.
fn declared_pages(document: &Pdf) -> usize {
    let count = catalog(document).get::<Dict<'_>>("Pages").and_then(|pages| pages.get::<i32>("Count"));
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

fn catalog(document: &Pdf) -> Dict<'_> {
    let xref = document.xref();
    xref.get(xref.root_id()).unwrap_or_default()
}

/// Returns what the pages stand for, if a viewer that knows more formats shows something else instead of them.
fn placeholder(document: &Pdf) -> Option<Placeholder> {
    let catalog = catalog(document);
    if catalog.contains_key("Collection") {
        return Some(Placeholder::Portfolio);
    }
    let form = catalog.get::<Dict<'_>>("AcroForm")?;
    let needs_rendering = catalog.get::<bool>("NeedsRendering").unwrap_or_default();
    // A static form has its fields on the pages too.
    let is_dynamic = form.contains_key("XFA") && (needs_rendering || !has_fields(document));
    is_dynamic.then_some(Placeholder::XfaForm)
}

/// Returns whether a page has a form field.
fn has_fields(document: &Pdf) -> bool {
    let annotations = document.pages().iter().filter_map(|page| page.raw().get::<Array<'_>>("Annots"));
    let mut dictionaries = annotations.flat_map(|all| all.iter::<Object<'_>>()).filter_map(Object::into_dict);
    dictionaries.any(|annotation| {
        annotation.get::<Name<'_>>("Subtype").is_some_and(|subtype| subtype.as_ref() == b"Widget")
    })
}
