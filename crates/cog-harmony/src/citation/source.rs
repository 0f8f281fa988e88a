use std::{collections::BTreeMap, sync::Arc};

use super::snippet::Words;

/// The sources that are available, by `source_id`.
pub type Sources = BTreeMap<String, Source>;

/// A source with its text, prepared for comparisons. Clones share the text.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub(super) pages: Arc<[Page]>,
    pub(super) is_text: bool,
    pub(super) duration_sec: Option<f64>,
    pub(super) unreadable: Option<String>,
}

/// A page of a source.
#[derive(Debug, Clone, Default)]
pub struct SourcePage {
    /// The number of the page, from 1.
    pub number: u32,
    /// The text of the page.
    pub text: String,
    /// Width and height, in the unit of `bbox`; none if they are unknown.
    pub size: Option<(f64, f64)>,
}

#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) number: u32,
    pub(super) words: Words,
    pub(super) size: Option<(f64, f64)>,
}

impl Source {
    /// Creates a source from plain text. A form feed ends a page.
    pub fn from_text(text: &str) -> Self {
        let pages = (1..).zip(text.split('\u{c}'));
        Self::from_pages(pages.map(|(number, text)| SourcePage { number, text: text.to_owned(), size: None }))
    }

    /// Creates a source from the pages of a document.
    pub fn from_pages(pages: impl IntoIterator<Item = SourcePage>) -> Self {
        let page =
            |page: SourcePage| Page { number: page.number, words: Words::new(&page.text), size: page.size };
        Self { pages: pages.into_iter().map(page).collect(), is_text: true, ..Self::default() }
    }

    /// Creates a source without text from an image of this width and height.
    pub fn from_image(size: (f64, f64)) -> Self {
        let page = Page { number: 1, words: Words::new(""), size: Some(size) };
        Self { pages: Arc::from([page]), ..Self::default() }
    }

    /// Creates a source without text from audio or video of this length.
    pub fn from_recording(duration_sec: f64) -> Self {
        Self { duration_sec: Some(duration_sec), ..Self::default() }
    }

    /// Creates a source that cannot be read, with the reason.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        Self { unreadable: Some(reason.into()), ..Self::default() }
    }
}
