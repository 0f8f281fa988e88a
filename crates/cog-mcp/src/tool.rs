//! A tool of a server.

use std::sync::Arc;

use cog_json::{ToJson as _, Value};
use cog_run::{
    provider::Part,
    tools::{Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo, ToolOutput},
};
use rmcp::{
    ServiceError,
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents, Tool as Listed},
};

use crate::{
    link::Link,
    server::{McpServer, excerpt},
    verbatim,
};

/// A tool of a server, which stays connected as long as one of its tools exists.
pub(crate) struct McpTool {
    info: ToolInfo,
    /// The name at the server.
    name: String,
    server: String,
    /// Whether members of the arguments are also headers of the HTTP request (`x-mcp-header`, SEP-2243).
    has_headers: bool,
    link: Arc<Link>,
}

impl McpTool {
    /// Creates the tool that a server listed.
    ///
    /// # Errors
    /// A name that is too long, or a schema that is not valid.
    pub(crate) fn new(
        server: &McpServer,
        listed: Listed,
        link: Arc<Link>,
    ) -> Result<Self, cog_run::tools::InvalidTool> {
        let schema = Value::from(serde_json::Value::Object(listed.input_schema.as_ref().clone()));
        let description = listed.description.as_deref().unwrap_or_default();
        let info = ToolInfo::new(qualified(&server.name, &listed.name), description, &schema)?;
        let info = info.with_effects(effects(server, &listed));
        let has_headers = server.transport.uses_network() && schema.to_json().contains("\"x-mcp-header\"");
        let name = listed.name.into_owned();
        let server = server.name.clone();
        Ok(Self { info, name, server, has_headers, link })
    }
}

/// Returns what a call may do. Only a tool that its server marks as read-only has no side effects.
fn effects(server: &McpServer, listed: &Listed) -> ToolEffects {
    let hint = listed.annotations.as_ref().and_then(|annotations| annotations.read_only_hint);
    ToolEffects {
        network: server.transport.uses_network(),
        side_effects: hint != Some(true),
        ..ToolEffects::default()
    }
}

impl Tool for McpTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.name.clone());
            params.arguments = Some(verbatim::arguments(&arguments, self.has_headers));
            let connection = self.link.connection(&context.session_id, None).await?;
            let mut reply = connection.peer().call_tool(params.clone()).await;
            // Only a call that changes nothing can be repeated.
            if reply.as_ref().is_err_and(is_disconnected) && !self.info.effects.changes_something() {
                let connection = self.link.connection(&context.session_id, Some(&connection)).await?;
                reply = connection.peer().call_tool(params).await;
            }
            reply.map_err(|error| self.error(&error)).and_then(output)
        })
    }
}

/// Returns whether the server died during a call.
fn is_disconnected(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_))
}

impl McpTool {
    /// Describes the error of a call for the model.
    fn error(&self, error: &ServiceError) -> ToolError {
        let server = &self.server;
        match error {
            ServiceError::McpError(error) => ToolError::new("McpError", excerpt(&error.message)),
            error if is_disconnected(error) => {
                let outcome = match self.info.effects.changes_something() {
                    true => " It is unknown whether the call took effect; check that before you repeat it.",
                    false => "",
                };
                let message =
                    format!("The MCP server `{server}` closed the connection during the call.{outcome}");
                ToolError::new("ServerUnavailable", message)
            }
            ServiceError::UnexpectedResponse => {
                let message =
                    format!("The MCP server `{server}` sent a reply that is not the result of a call.");
                ToolError::new("UnexpectedReply", message)
            }
            other => ToolError::new("McpError", excerpt(&other.to_string())),
        }
    }
}

// The name of a tool, as vendors accept it.

/// Returns the name of a tool for models: `SERVER__TOOL`, with `_` for each character that vendors do not accept.
fn qualified(server: &str, tool: &str) -> String {
    format!("{}__{}", accepted(server), accepted(tool))
}

fn accepted(name: &str) -> String {
    name.replace(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-'), "_")
}

// The result of a call, for the model.

/// Converts the result of a call. Structured content replaces the text that repeats it.
fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let is_error = result.is_error == Some(true);
    let mut texts = Vec::new();
    let mut parts = Vec::new();
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
    Ok(ToolOutput { parts, ..ToolOutput::from(value) })
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
    if !is_media(kind) || data.is_empty() || !data.bytes().all(is_base64) {
        let message =
            format!("The result contains media of the type `{}` that is not valid base64.", excerpt(kind));
        return Err(ToolError::new("InvalidMedia", message));
    }
    Ok(Content::Media(Part::media(kind, data)))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(result: serde_json::Value) -> Result<ToolOutput, ToolError> {
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

    #[test]
    fn name_contains_only_what_vendors_accept() {
        assert_eq!(qualified("files", "read_file"), "files__read_file");
        assert_eq!(qualified("a b", "fs.read/ä"), "a_b__fs_read__");
    }
}
