//! Portable documents: how many pages, and the text of each.

use lopdf::{Document, LoadOptions, Object};

use super::{handle::Handle, page::PageText, report::Fault};
use crate::Facts;

/// What one compressed part may grow to.
const MAX_INFLATED: usize = 64 << 20;

/// The most bytes of text of a whole document.
const MAX_TEXT: usize = 8 << 20;

/// How many pages a document has.
pub(super) fn facts(input: Handle) -> Result<Facts, Fault> {
    let document = open(input)?;
    let found = document.page_iter().count();
    if found == 0 {
        return Err(Fault::NoPages);
    }
    let pages = found.max(told_pages(&document));
    Ok(Facts { pages: Some(u32::try_from(pages).unwrap_or(u32::MAX)), ..Facts::default() })
}

/// How many pages the document itself says it has: other readers may find more of them than this one.
fn told_pages(document: &Document) -> usize {
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Pages", document));
    let count = root.and_then(Object::as_dict).and_then(|root| root.get_deref(b"Count", document));
    count.and_then(Object::as_i64).ok().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

/// The text of every page.
pub(super) fn text(input: Handle) -> Result<Vec<PageText>, Fault> {
    let document = open(input)?;
    let mut left = MAX_TEXT;
    let mut pages = Vec::new();
    for number in document.get_pages().into_keys() {
        let page = PageText { number, text: text_of(&document, number) };
        left = left.checked_sub(page.text.len()).ok_or(Fault::TooMuchText)?;
        pages.push(page);
    }
    if pages.is_empty() { Err(Fault::NoPages) } else { Ok(pages) }
}

fn open(input: Handle) -> Result<Document, Fault> {
    let bytes = input.bytes().map_err(|_| Fault::Broken)?;
    let options = LoadOptions::with_max_decompressed_size(MAX_INFLATED);
    let document = Document::load_mem_with_options(&bytes, options).map_err(|error| match error {
        lopdf::Error::InvalidPassword => Fault::Encrypted,
        _ => Fault::Broken,
    })?;
    if document.is_encrypted() { Err(Fault::Encrypted) } else { Ok(document) }
}

/// What can be read of a page. What cannot is left out: a font without a table says nothing of the next.
fn text_of(document: &Document, number: u32) -> String {
    let pieces = document.extract_text_chunks_with_limit(&[number], MAX_INFLATED);
    let text: String = pieces.into_iter().filter_map(Result::ok).collect();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}
