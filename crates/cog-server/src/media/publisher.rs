use std::sync::Arc;

use cog_media::{Delivery, Media, Publish, Published};
use cog_spec::ErrorBody;

use super::MediaStore;

/// Stores generated media, under a base URL of the server.
struct Publisher {
    store: MediaStore,
    /// Without a trailing slash.
    base: String,
}

impl MediaStore {
    /// Returns a delivery that stores the media of runs here, under this base URL: `https://cog.example`.
    pub fn delivery(&self, base: &str) -> Delivery {
        let base = base.trim_end_matches('/').to_owned();
        Delivery::Publisher(Arc::new(Publisher { store: self.clone(), base }))
    }
}

impl Publish for Publisher {
    fn publish(&self, owner: Option<&str>, media: &Media) -> Result<Published, ErrorBody> {
        let media = media.on_disk().map_err(|error| ErrorBody::from(&error))?;
        let stored = self.store.publish(owner.unwrap_or_default(), media);
        let (id, expires_at) = stored.map_err(|error| ErrorBody::from(&error))?;
        Ok(Published { url: format!("{}/v1/media/{id}", self.base), expires_at })
    }
}
