//! The JSON output of a reader process.

use std::io::Read as _;

use cog_json::{Limits, Node, ToJson, Value, Writer};
use serde::Serialize;

use crate::{MediaError, MediaInfo, Stored};

/// The output of a reader process.
#[derive(Debug)]
pub(super) enum Report {
    /// What a header says.
    Info(MediaInfo),
    /// The text of a document.
    Pages(Vec<PageText>),
    /// The width and height of each page.
    Sizes(Vec<Option<(f64, f64)>>),
    /// Why it cannot be read.
    Error(ReadError),
}

/// Why a document or container cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadError {
    /// The structure is damaged.
    Broken,
    /// It ends before its index says.
    Truncated,
    /// It has no audio and no video.
    NoTracks,
    /// It has no pages.
    NoPages,
    /// It requires a password.
    Encrypted,
    /// It has more text than allowed.
    TooMuchText,
}

impl ReadError {
    const ALL: [Self; 6] =
        [Self::Broken, Self::Truncated, Self::NoTracks, Self::NoPages, Self::Encrypted, Self::TooMuchText];

    /// Returns the message.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Broken => "the structure is damaged",
            Self::Truncated => "the file is truncated",
            Self::NoTracks => "it contains no audio and no video",
            Self::NoPages => "it has no pages",
            Self::Encrypted => "it is encrypted with a password",
            Self::TooMuchText => "it contains too much text",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Truncated => "truncated",
            Self::NoTracks => "no_tracks",
            Self::NoPages => "no_pages",
            Self::Encrypted => "encrypted",
            Self::TooMuchText => "too_much_text",
        }
    }
}

impl Report {
    /// Reads the output of a process; none if it is invalid.
    ///
    /// # Errors
    /// If the stored output cannot be read.
    pub(super) fn from_output(written: &Stored) -> Result<Option<Self>, MediaError> {
        let mut bytes = Vec::new();
        written.reader().read_to_end(&mut bytes)?;
        let limits = Limits::model_output().with_bytes(written.len());
        Ok(Value::parse_within(&bytes, limits).ok().and_then(|value| Self::read(value.node())))
    }

    fn read(node: Node<'_>) -> Option<Self> {
        if let Some(facts) = node.get("facts") {
            return Some(Self::Info(facts_of(facts)));
        }
        if let Some(pages) = node.get("pages") {
            return pages.elements().map(page_of).collect::<Option<_>>().map(Self::Pages);
        }
        if let Some(sizes) = node.get("sizes") {
            return Some(Self::Sizes(sizes.elements().map(size_of).collect()));
        }
        let name = node.get("error")?.as_str()?;
        ReadError::ALL.into_iter().find(|error| error.name() == name).map(Self::Error)
    }
}

fn facts_of(node: Node<'_>) -> MediaInfo {
    MediaInfo {
        width: number(node, "width"),
        height: number(node, "height"),
        duration_ms: node.get("duration_ms").and_then(Node::as_u64),
        pages: number(node, "pages"),
        sample_rate: number(node, "sample_rate"),
        channels: number(node, "channels"),
        ..MediaInfo::default()
    }
}

fn number(node: Node<'_>, key: &str) -> Option<u32> {
    node.get(key)?.as_u64()?.try_into().ok()
}

fn page_of(node: Node<'_>) -> Option<PageText> {
    Some(PageText {
        number: number(node, "page")?,
        text: node.get("text")?.as_str()?.to_owned(),
        unread: number(node, "unread").unwrap_or_default(),
    })
}

fn size_of(node: Node<'_>) -> Option<(f64, f64)> {
    Some((node.at(0)?.as_f64()?, node.at(1)?.as_f64()?))
}

/// Written by hand: absent facts are not written.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| match self {
            Self::Info(facts) => {
                w.key("facts").object(|w| facts.write_fields(w));
            }
            Self::Pages(pages) => {
                w.field("pages", pages);
            }
            Self::Sizes(sizes) => {
                w.field("sizes", sizes);
            }
            Self::Error(error) => {
                w.field("error", error.name());
            }
        });
    }
}

// The text of a page.

/// The media type of a PDF.
pub(super) const PDF: &str = "application/pdf";

/// The text of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageText {
    /// The page number, from 1.
    #[serde(rename = "page")]
    pub number: u32,
    /// Its text, line by line, trimmed; empty for a page without text, such as a scan.
    pub text: String,
    /// The form fields and annotations whose text could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub unread: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl PageText {
    /// Joins pages into one text with a page mark before each, for models without PDF support.
    ///
    /// A page without text has its mark too, so that page numbers are right.
    pub fn marked(pages: &[Self]) -> String {
        let pages = pages.iter().map(|page| {
            let text = if page.text.is_empty() { "(no text)" } else { &page.text };
            format!("[page {}]\n{text}\n", page.number)
        });
        pages.collect::<Vec<_>>().join("\n")
    }
}
