use serde::Serialize;

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
        let page = |page: &Self| {
            let text = if page.text.is_empty() { "(no text)" } else { &page.text };
            format!("[page {}]\n{text}\n", page.number)
        };
        pages.iter().map(page).collect::<Vec<_>>().join("\n")
    }
}
