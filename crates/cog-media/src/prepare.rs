//! From a checked medium to the parts that a provider is sent.

use cog_spec::Modality;

use crate::{Media, MediaError, MediaRules, PageText, Part, Prepared, Store, Stored, Takes, Tool, normalise};

/// What the text of a document is sent as.
const TEXT: &str = "text/plain";

/// Makes of a medium what a provider takes. Pictures are normalised, a document that the provider does not read becomes
/// its text, and what is left goes as it is.
///
/// Decoding is left to threads that may wait, documents to the tool.
///
/// # Errors
/// As [`normalise`]; [`MediaError::NotTaken`] (E4011) where nothing can be made of it, such as of a document without text.
pub async fn prepare(
    media: &Media,
    takes: &Takes,
    rules: &MediaRules,
    tool: Option<&Tool>,
) -> Result<Vec<Prepared>, MediaError> {
    if media.kind() == Modality::Image {
        let (media, takes, rules) = (media.clone(), takes.clone(), rules.clone());
        let work = tokio::task::spawn_blocking(move || normalise(&media, &takes, &rules));
        return Ok(vec![work.await.map_err(std::io::Error::other)??]);
    }
    if takes.media_types.contains(&media.media_type()) {
        return Ok(vec![Prepared::whole(media)]);
    }
    match (media.kind(), tool) {
        (Modality::Document, Some(tool)) => Ok(vec![text_of(media, tool).await?]),
        _ => Err(MediaError::NotTaken { media_type: media.media_type() }),
    }
}

/// The text of a document, under marks of its pages.
async fn text_of(media: &Media, tool: &Tool) -> Result<Prepared, MediaError> {
    let pages = tool.text(media.bytes()).await?;
    if pages.iter().all(|page| page.text.is_empty()) {
        return Err(MediaError::NotTaken { media_type: media.media_type() });
    }
    let mut store = Store::unhashed(u64::MAX);
    store.push(PageText::marked(&pages).as_bytes())?;
    Ok(as_text(store.finish(), without_text(&pages)))
}

fn as_text(stored: Stored, warning: Option<String>) -> Prepared {
    Prepared { media_type: TEXT, stored, steps: Vec::new(), part: Part::Text, warning }
}

/// Which pages a model will not see, because they are pictures.
fn without_text(pages: &[PageText]) -> Option<String> {
    let empty = pages.iter().filter(|page| page.text.is_empty());
    let numbers: Vec<String> = empty.map(|page| page.number.to_string()).collect();
    match numbers.as_slice() {
        [] => None,
        [one] => Some(format!("page {one} has no text, and the model does not see it")),
        several => {
            Some(format!("pages {} have no text, and the model does not see them", several.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32, text: &str) -> PageText {
        PageText { number, text: text.to_owned() }
    }

    #[test]
    fn pages_without_text_are_named() {
        assert_eq!(without_text(&[page(1, "a")]), None);
        let told = without_text(&[page(1, ""), page(2, "a")]).unwrap();
        assert_eq!(told, "page 1 has no text, and the model does not see it");
        let told = without_text(&[page(1, ""), page(2, "a"), page(3, "")]).unwrap();
        assert_eq!(told, "pages 1, 3 have no text, and the model does not see them");
    }
}
