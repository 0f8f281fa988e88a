//! The media of an input whose source can expire before a stored run continues.

use cog_media::{Media, MediaLocation};

use super::Collected;

impl Collected {
    /// Returns the media that have a URL or an upload as their source, each with it.
    pub(crate) fn expiring(&self) -> Vec<(String, Media)> {
        let sources = self.input().media().iter().map(|(_, source)| &source.location);
        let with_source = |(media, location): (&Media, &MediaLocation)| match location {
            MediaLocation::Url(from) | MediaLocation::Upload(from) => Some((from.clone(), media.clone())),
            _ => None,
        };
        self.media.iter().zip(sources).filter_map(with_source).collect()
    }

    /// Stores the media that can expire with the log of the run, for a run that starts again.
    pub(super) async fn log_media(&self) {
        let Some(log) = &self.sources.log else { return };
        let media = self.expiring();
        if !media.is_empty() {
            log.add_media(media).await;
        }
    }
}
