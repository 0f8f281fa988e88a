use cog_json::{ToJson, Writer};

/// The media type of a PDF.
pub(super) const PDF: &str = "application/pdf";

/// The text of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// The page, from 1.
    pub number: u32,
    /// Its text, line by line, without space around it; empty where the page has none, as where it is a scan.
    pub text: String,
}

impl PageText {
    /// The pages as one text, each under a line that names it, for a model that reads no PDF.
    ///
    /// A page without text has its line too, so that numbers hold.
    pub fn marked(pages: &[Self]) -> String {
        let page = |page: &Self| {
            let text = if page.text.is_empty() { "(no text)" } else { &page.text };
            format!("[page {}]\n{text}\n", page.number)
        };
        pages.iter().map(page).collect::<Vec<_>>().join("\n")
    }
}

impl ToJson for PageText {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("page", &self.number);
            w.field("text", &self.text);
        });
    }
}
