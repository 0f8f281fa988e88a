//! The input of a run that is stored, with the content of media whose source can expire.

use cog_json::Value;
use cog_media::{Media, MediaError, MediaLocation, MediaSource, encode_base64};
use serde_json::{Map, json};

use super::Collected;
use crate::{
    RunInput,
    input::{CheckedInput, pointer_in_input},
};

impl Collected {
    /// Returns the input with the content of each media item that has a URL or an upload as its source. A link can expire
    /// before a stored run continues. Returns none if no item has such a source, if the content cannot be read, or if the
    /// module does not accept base64.
    pub(crate) async fn stored_input(&self) -> Option<Value> {
        let (media, input) = (self.media.clone(), self.sources.input.clone());
        if !input.media().iter().any(|(_, source)| can_expire(source)) {
            return None;
        }
        let work = move || with_content(&input, &media);
        let input = tokio::task::spawn_blocking(work).await.ok()?.ok()?;
        CheckedInput::new(&self.sources.module, RunInput::Json(input.clone())).is_ok().then_some(input)
    }

    /// Stores the media that can expire with the session, for a run that starts again.
    pub(super) async fn log_media(&self) {
        let Some(log) = &self.sources.log else { return };
        let stored = &self.sources.access.stored;
        let with_source = |(media, (_, source)): (&Media, &(_, MediaSource))| {
            let (MediaLocation::Url(from) | MediaLocation::Upload(from)) = &source.location else {
                return None;
            };
            (!stored.contains_key(from)).then(|| (from.clone(), media.clone()))
        };
        let media: Vec<_> = self.media.iter().zip(self.input().media()).filter_map(with_source).collect();
        if !media.is_empty() {
            log.add_media(media).await;
        }
    }
}

fn can_expire(source: &MediaSource) -> bool {
    matches!(source.location, MediaLocation::Url(_) | MediaLocation::Upload(_))
}

fn with_content(input: &CheckedInput, media: &[Media]) -> Result<Value, MediaError> {
    let mut json = input.original().to_serde();
    for (media, (path, source)) in media.iter().zip(input.media()) {
        let slot = json.pointer_mut(pointer_in_input(&path.pointer()));
        if let Some(slot) = slot.filter(|_| can_expire(source)) {
            *slot = base64_source(media)?;
        }
    }
    Ok(Value::from(json))
}

/// Returns the source of a media item with its content.
fn base64_source(media: &Media) -> Result<serde_json::Value, MediaError> {
    let mut source = Map::new();
    source.insert("type".to_owned(), json!("base64"));
    source.insert("media_type".to_owned(), json!(media.media_type()));
    source.insert("data".to_owned(), json!(encode_base64(media.bytes())?));
    source.extend(media.detail().map(|detail| ("detail".to_owned(), json!(detail.as_str()))));
    let rotation = media.rotation().degrees();
    source.extend((rotation != 0).then(|| ("rotation".to_owned(), json!(rotation))));
    Ok(serde_json::Value::Object(source))
}
