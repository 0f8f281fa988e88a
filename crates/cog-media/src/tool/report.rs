//! The JSON output of a reader process.

use std::io::Read as _;

use cog_json::{Limits, Node, ToJson, Value, Writer};
use serde::Serialize;

use crate::{MediaError, MediaInfo, Placeholder, Stored};

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// It is encrypted for the players of its publisher.
    Protected,
    /// It has more text than allowed.
    TooMuchText,
    /// It is in order, but in a codec that providers do not read, which has this name.
    Codec(String),
}

impl ReadError {
    /// Returns the message.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Broken => "the structure is damaged",
            Self::Truncated => "the file is truncated",
            Self::NoTracks => "it contains no audio and no video",
            Self::NoPages => "it has no pages",
            Self::Encrypted => "it is encrypted with a password",
            Self::Protected => "it is encrypted (DRM)",
            Self::TooMuchText => "it contains too much text",
            Self::Codec(_) => "its codec is not supported",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Truncated => "truncated",
            Self::NoTracks => "no_tracks",
            Self::NoPages => "no_pages",
            Self::Encrypted => "encrypted",
            Self::Protected => "protected",
            Self::TooMuchText => "too_much_text",
            Self::Codec(_) => "codec",
        }
    }

    fn read(node: Node<'_>) -> Option<Self> {
        Some(match node.get_str("error")? {
            "broken" => Self::Broken,
            "truncated" => Self::Truncated,
            "no_tracks" => Self::NoTracks,
            "no_pages" => Self::NoPages,
            "encrypted" => Self::Encrypted,
            "protected" => Self::Protected,
            "too_much_text" => Self::TooMuchText,
            "codec" => Self::Codec(node.get_str("codec")?.to_owned()),
            _ => return None,
        })
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
        ReadError::read(node).map(Self::Error)
    }
}

fn facts_of(node: Node<'_>) -> MediaInfo {
    MediaInfo {
        width: number(node, "width"),
        height: number(node, "height"),
        duration_ms: node.get("duration_ms").and_then(Node::as_u64),
        pages: number(node, "pages"),
        placeholder: node.get_str("placeholder").and_then(Placeholder::read),
        sample_rate: number(node, "sample_rate"),
        channels: number(node, "channels"),
        missing_ms: node.get("missing_ms").and_then(Node::as_u64),
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
        annotations: number(node, "annotations").unwrap_or_default(),
        unread: number(node, "unread").unwrap_or_default(),
        unknown: number(node, "unknown").unwrap_or_default(),
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
                if let ReadError::Codec(codec) = error {
                    w.field("codec", codec);
                }
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
    /// The form fields and annotations whose text is part of it, if they were looked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub annotations: u32,
    /// The form fields and annotations whose text could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub unread: u32,
    /// The characters of the text that have no meaning. Each is U+FFFD.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown: u32,
}

/// What stands for a character without a meaning.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// Returns whether a character says nothing: a control character, or one of the private ones that fonts without names
/// for their glyphs use.
fn is_unknown(letter: char) -> bool {
    let is_private = matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    is_private || letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl PageText {
    /// Creates the text of a page. A font may show glyphs and not say which characters they are: each becomes U+FFFD,
    /// and nothing remains of a text in which every fifth character has no meaning.
    pub(super) fn new(number: u32, text: &str) -> Self {
        let text: String =
            text.chars().map(|letter| if is_unknown(letter) { UNKNOWN } else { letter }).collect();
        let unknown = text.chars().filter(|letter| *letter == UNKNOWN).count();
        let letters = text.chars().filter(|letter| !letter.is_whitespace()).count();
        if unknown > 0 && unknown * 5 >= letters {
            return Self { number, text: String::new(), annotations: 0, unread: 0, unknown: 0 };
        }
        let text = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned();
        Self { number, text, annotations: 0, unread: 0, unknown: u32::try_from(unknown).unwrap_or(u32::MAX) }
    }

    /// Whether it has the text of fields or annotations, and all of it.
    pub(super) fn has_annotations(&self) -> bool {
        self.annotations > 0 && self.unread == 0 && self.unknown == 0
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_meaning_is_left_out() {
        let text = |text: &str| {
            let page = PageText::new(1, text);
            (page.text, page.unknown)
        };
        assert_eq!(text(" One \n two\t3 \r\n"), ("One\n two\t3".to_owned(), 0));
        for unknown in ['\u{fffd}', '\u{2}', '\u{f0b7}', '\u{98}'] {
            let few = text(&format!("The {unknown}rst of many words"));
            assert_eq!(few, ("The \u{fffd}rst of many words".to_owned(), 1));
            assert_eq!(text(&format!("a{unknown}{unknown}{unknown}")), (String::new(), 0));
        }
        assert_eq!(text(""), (String::new(), 0));
    }
}
