//! The sources of citations.

use cog_harmony::citation::{Source, Sources};
use cog_host::settings::MediaSettings;
use cog_media::{Expected, MediaError, MediaRules, check, sniff};
use cog_run::media::citation_source;

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
    citation_source(&media, Some(&settings.tool())).await
}
