use std::sync::Arc;

use cog_media::{Delivery, Media, Publish, Published};
use cog_spec::ErrorBody;

use super::MediaStore;

/// Keeps what runs make, below an address of the server.
struct Publisher {
    store: MediaStore,
    /// Without a slash at its end.
    base: String,
}

impl MediaStore {
    /// Where runs have their media go so that they can be fetched here, below this address of the server:
    /// `https://cog.example`.
    pub fn delivery(&self, base: &str) -> Delivery {
        let base = base.trim_end_matches('/').to_owned();
        Delivery::Publisher(Arc::new(Publisher { store: self.clone(), base }))
    }
}

impl Publish for Publisher {
    fn publish(&self, owner: Option<&str>, media: &Media) -> Result<Published, ErrorBody> {
        let media = media.on_disk().map_err(|error| ErrorBody::from(&error))?;
        let kept = self.store.publish(owner.unwrap_or_default(), media);
        let (id, expires_at) = kept.map_err(|error| ErrorBody::from(&error))?;
        Ok(Published { url: format!("{}/v1/media/{id}", self.base), expires_at })
    }
}
