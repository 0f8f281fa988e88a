//! The result of a call, for the model.

use cog_run::{
    provider::Part,
    tools::{ToolError, ToolOutput},
};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::{error::excerpt, verbatim};

/// Converts the result of a call. Structured content replaces the text that repeats it.
pub(crate) fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let is_error = result.is_error == Some(true);
    let (mut texts, mut parts) = (Vec::new(), Vec::new());
    for block in result.content {
        match content(block)? {
            Content::Text(text) => texts.push(text),
            Content::Media(part) => parts.push(part),
        }
    }
    let text = texts.join("\n");
    if is_error {
        return Err(ToolError::new("ToolError", excerpt(&text)));
    }
    let value = match result.structured_content {
        Some(content) => verbatim::structured(content),
        None => verbatim::result(text),
    };
    Ok(parts.into_iter().fold(ToolOutput::from(value), ToolOutput::with_part))
}

enum Content {
    Text(String),
    Media(Part),
}

fn content(block: ContentBlock) -> Result<Content, ToolError> {
    match block {
        ContentBlock::Text(text) => Ok(Content::Text(text.text)),
        ContentBlock::Image(image) => media(&image.mime_type, image.data),
        ContentBlock::Audio(audio) => media(&audio.mime_type, audio.data),
        ContentBlock::ResourceLink(link) => Ok(Content::Text(link.uri.clone())),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => Ok(Content::Text(text)),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => match mime_type {
                Some(kind) if is_media(&kind) => media(&kind, blob),
                _ => Ok(Content::Text(format!("{uri}: {} bytes of base64", blob.len()))),
            },
            _ => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

fn unknown() -> ToolError {
    ToolError::new("UnsupportedContent", "The result contains an unknown kind of content.")
}

fn is_media(kind: &str) -> bool {
    kind.starts_with("image/") || kind.starts_with("audio/")
}

fn media(kind: &str, data: String) -> Result<Content, ToolError> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if !is_media(kind) || data.is_empty() || !data.bytes().all(is_base64) {
        let message =
            format!("The result contains media of the type `{}` that is not valid base64.", excerpt(kind));
        return Err(ToolError::new("InvalidMedia", message));
    }
    Ok(Content::Media(Part::media(kind, data)))
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;
    use serde_json::{Value, json};

    use super::*;

    fn converted(result: Value) -> Result<ToolOutput, ToolError> {
        output(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn structured_content_replaces_the_text() {
        let text = json!({ "type": "text", "text": "{\"a\":1}" });
        let result = converted(json!({ "content": [text], "structuredContent": { "b": 2 } })).unwrap();
        assert_eq!(result.value.unwrap().to_json(), r#"{"b":2}"#);
        let result = converted(json!({ "content": [text] })).unwrap();
        assert_eq!(result.value.unwrap().to_json(), r#"{"a":1}"#);
        let result = converted(json!({ "content": [{ "type": "text", "text": "a" }, text] })).unwrap();
        assert_eq!(result.value.unwrap().to_json(), r#""a\n{\"a\":1}""#);
    }

    #[test]
    fn error_and_media_are_converted() {
        let text = json!({ "type": "text", "text": "no such file" });
        let error = converted(json!({ "content": [text], "isError": true })).unwrap_err();
        assert_eq!((error.error_type.as_str(), error.message.as_str()), ("ToolError", "no such file"));
        let image =
            |data: &str| json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }] });
        assert_eq!(converted(image("QQ==")).unwrap().parts, [Part::media("image/png", "QQ==".to_owned())]);
        for data in ["", "\u{0}\u{1}", "a b"] {
            assert_eq!(converted(image(data)).unwrap_err().error_type, "InvalidMedia");
        }
    }
}
