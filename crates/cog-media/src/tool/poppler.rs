//! Extracts the text of a PDF with pdftotext, and renders its pages with pdftoppm.

use std::io::Read as _;

use super::{
    PageText, Tool,
    child::{ChildOutput, Failure, Purpose},
    failed,
    report::PDF,
};
use crate::{MediaError, Stored, sniff, store::run_blocking};

/// The input: standard input, as a seekable file if the system has a name for it.
const INPUT: &str = if cfg!(unix) { "/dev/fd/0" } else { "-" };

/// The maximum bytes of text of a document.
const MAX_TEXT: u64 = 8 << 20;

/// The maximum bytes of the image of a page.
const MAX_PAGE: u64 = 16 << 20;

/// The longer side of a page image, in pixels: vendors scale larger images down.
const SIDE: &str = "1568";

impl Tool {
    /// Returns the text of every page; none if pdftotext is not installed or cannot read the document.
    pub(super) async fn pdftotext(&self, stored: &Stored) -> Result<Option<Vec<PageText>>, MediaError> {
        let Some(program) = self.programs().pdftotext.as_deref() else { return Ok(None) };
        let arguments = ["-q", "-enc", "UTF-8", "-eol", "unix", INPUT, "-"];
        match self.run_program(Purpose::ReadDocument, program, stored, &arguments, MAX_TEXT).await {
            Ok(written) => run_blocking(move || pages_of(&written)).await.map(Some),
            Err(Failure::TooLarge) => Err(failed(Failure::TooLarge, PDF)),
            Err(_) => Ok(None),
        }
    }

    /// Renders a page of a PDF, from 1, as JPEG.
    ///
    /// # Errors
    /// [`MediaError::NoText`] without pdftoppm; [`MediaError::Damaged`] if the page cannot be rendered.
    pub(crate) async fn page_image(&self, stored: &Stored, page: u32) -> Result<Stored, MediaError> {
        let program = self.programs().pdftoppm.as_deref();
        let what = "page images require pdftoppm, which was not found";
        let program = program.ok_or(MediaError::NoText { what })?;
        let page = page.to_string();
        let arguments = ["-q", "-jpeg", "-scale-to", SIDE, "-f", &page, "-l", &page, "-singlefile", INPUT];
        let written = self.run_program(Purpose::ReadDocument, program, stored, &arguments, MAX_PAGE).await;
        let image = written.map_err(|failure| failed(failure, PDF))?.bytes;
        match sniff(image.head()) {
            Some("image/jpeg") => Ok(image),
            _ => Err(MediaError::Damaged { media_type: PDF, what: "a page cannot be rendered" }),
        }
    }
}

/// Splits the text at the form feeds that end each page.
fn pages_of(written: &ChildOutput) -> Result<Vec<PageText>, MediaError> {
    let mut text = Vec::new();
    written.bytes.reader().read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let pages = text.strip_suffix('\u{c}').unwrap_or(&text).split('\u{c}');
    Ok((1..).zip(pages).map(|(number, page)| PageText::new(number, page)).collect())
}
