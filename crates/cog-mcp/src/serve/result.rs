//! An envelope as the result of a call.

use cog_run::{Envelope, Module, ToJson as _};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde_json::Value;

use super::media;

/// Returns the result of a run: its envelope as structured content and as text, and its media. A failed run is an error
/// of the tool, which the model sees.
pub(super) fn result(module: Option<&Module>, envelope: &Envelope) -> CallToolResult {
    let text = envelope.to_json();
    let structured: Value = serde_json::from_str(&text).unwrap_or_default();
    let (text, media) = with_media(module, envelope, text, &structured);
    let content = std::iter::once(ContentBlock::text(text)).chain(media).collect();
    let mut result = match envelope.is_ok() {
        true => CallToolResult::success(content),
        false => CallToolResult::error(content),
    };
    result.structured_content = Some(structured);
    result
}

/// Returns the text and the media of a result. Base64 is not in the text, which a model reads.
fn with_media(
    module: Option<&Module>,
    envelope: &Envelope,
    text: String,
    structured: &Value,
) -> (String, Vec<ContentBlock>) {
    match (module, envelope.data()) {
        (Some(module), Some(data)) if module.contract.has_media_outputs() => {
            let mut shown = structured.clone();
            let blocks = media::take(module, data, &mut shown);
            (shown.to_string(), blocks)
        }
        _ => (text, Vec::new()),
    }
}

/// Returns an error of the protocol, with the code of the specification in its data.
pub(super) fn invalid_params(error: &cog_spec::ErrorBody) -> ErrorData {
    let mut data = serde_json::json!({ "code": error.code.to_string() });
    if let (Some(members), Some(suggestion)) = (data.as_object_mut(), &error.suggestion) {
        members.insert("suggestion".to_owned(), Value::from(suggestion.as_str()));
    }
    ErrorData::invalid_params(error.message.clone(), Some(data))
}
