//! Generated media as content of a result.

use cog_run::{Module, Value};
use rmcp::model::{ContentBlock, Resource};
use serde_json::Value as Json;

/// Moves the images and audio clips of an envelope to content of their own. In the envelope for the model, each is
/// replaced by its position.
pub(super) fn take(module: &Module, data: &Value, envelope: &mut Json) -> Vec<ContentBlock> {
    let slots = module.contract.media_outputs(data.node());
    let mut blocks = Vec::new();
    for slot in slots {
        let Some(media) = envelope.pointer_mut(&slot.path.pointer()) else { continue };
        if let Some(block) = block(media) {
            blocks.push(block);
            if let Some(text) = media.get_mut("data") {
                *text = Json::from(format!("content block {}", blocks.len() + 1));
            }
        }
    }
    blocks
}

fn block(media: &Json) -> Option<ContentBlock> {
    let member = |name| media.get(name).and_then(Json::as_str);
    let kind = member("media_type").unwrap_or_default();
    match (member("data"), member("url")) {
        (Some(data), _) if kind.starts_with("image/") => Some(ContentBlock::image(data, kind)),
        (Some(data), _) if kind.starts_with("audio/") => Some(ContentBlock::audio(data, kind)),
        (None, Some(url)) => {
            let name = url.rsplit('/').next().unwrap_or(url);
            Some(ContentBlock::resource_link(Resource::new(url, name).with_mime_type(kind)))
        }
        _ => None,
    }
}
