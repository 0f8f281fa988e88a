//! The sources of citations.

use cog_harmony::citation::{Source, SourcePage, Sources};
use cog_host::settings::MediaSettings;
use cog_media::{Expected, Media, MediaError, MediaRules, check, sniff};
use cog_spec::Modality;

use super::super::opened;
use crate::args::CiteSource;

/// Opens every source. One that cannot be read is a finding of the citations that name it.
pub(super) async fn open_all(sources: &[CiteSource], settings: &MediaSettings) -> Sources {
    let mut opened = Sources::new();
    for CiteSource { id, file } in sources {
        let source = open(file, settings).await;
        opened.insert(id.clone(), source.unwrap_or_else(|error| Source::unreadable(error.to_string())));
    }
    opened
}

async fn open(file: &str, settings: &MediaSettings) -> Result<Source, MediaError> {
    let rules = MediaRules::default();
    let stored = opened::open(file, settings, rules.max_bytes_of_any()).await?;
    let is_text = sniff(stored.head()).is_none_or(|media_type| media_type.starts_with("text/"));
    if is_text && let Some(text) = opened::text(&stored)? {
        return Ok(Source::from_text(&text));
    }
    let media = check(stored, &Expected::default(), &rules, Some(&settings.tool())).await?;
    from_media(&media, settings).await
}

async fn from_media(media: &Media, settings: &MediaSettings) -> Result<Source, MediaError> {
    let facts = media.facts();
    let size = facts.width.zip(facts.height).map(|(width, height)| (f64::from(width), f64::from(height)));
    Ok(match (media.kind(), size, facts.duration_ms) {
        (Modality::Document, ..) => document(media, settings).await?,
        (Modality::Image, Some(size), _) => Source::from_image(size),
        (_, _, Some(ms)) => Source::from_recording(ms as f64 / 1000.0),
        _ => Source::default(),
    })
}

async fn document(media: &Media, settings: &MediaSettings) -> Result<Source, MediaError> {
    let tool = settings.tool();
    let texts = tool.text(media.bytes()).await?;
    let sizes = tool.page_sizes(media.bytes()).await?;
    let size = |number: u32| {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        sizes.get(index).copied().flatten()
    };
    let pages = texts.into_iter().map(|page| SourcePage {
        size: size(page.number),
        number: page.number,
        text: page.text,
    });
    Ok(Source::from_pages(pages))
}
