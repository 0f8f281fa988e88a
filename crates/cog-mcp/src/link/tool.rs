//! A tool of a server.

use std::sync::Arc;

use cog_json::{ToJson as _, Value};
use cog_run::{
    provider::Part,
    tools::{
        Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo, ToolOutput, matches,
        media_type_of_base64,
    },
};
use rmcp::{
    ErrorData, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, ErrorCode, ResourceContents, Tool as Listed,
    },
};
use serde_json::json;

use super::Link;
use crate::{
    asked::answering,
    http_client::HttpError,
    server::{McpServer, accepted, excerpt, prefix},
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

/// The tools of a server.
#[derive(Default)]
pub(super) struct Offered {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// The names of the tools that cannot be called, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
}

/// Returns the tools that a server lists and that the operator allows.
pub(super) fn offered(server: &McpServer, mut listed: Vec<Listed>, link: &Arc<Link>) -> Offered {
    // A tool does not take the name of another one by containing what vendors do not accept.
    listed.sort_by_key(|listed| accepted(&listed.name) != listed.name);
    let Offered { mut tools, mut skipped } = Offered::default();
    for listed in listed {
        let name = listed.name.to_string();
        if !server.tools.allow.iter().any(|pattern| matches(pattern, &name)) {
            continue;
        }
        match McpTool::new(server, listed, Arc::clone(link)) {
            Ok(tool) if tools.iter().any(|other| other.info().name == tool.info.name) => {
                skipped.push((name, "another tool of the server has the same name".to_owned()));
            }
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(reason) => skipped.push((name, reason.to_string())),
        }
    }
    Offered { tools, skipped }
}

impl McpTool {
    /// Creates the tool that a server listed.
    ///
    /// # Errors
    /// A name that is too long, or a schema that is not valid.
    fn new(server: &McpServer, listed: Listed, link: Arc<Link>) -> Result<Self, cog_run::tools::InvalidTool> {
        let schema = Value::from(serde_json::Value::Object(listed.input_schema.as_ref().clone()));
        let description = listed.description.as_deref().unwrap_or_default();
        let info = ToolInfo::new(qualified(&server.name, &listed.name), description, &schema)?;
        let mut info = info.with_effects(effects(server, &listed));
        let rules = &server.tools;
        info.needs_confirmation = rules.confirm.iter().any(|pattern| matches(pattern, &listed.name));
        info.timeout = rules.call_timeout;
        info.is_sequential = !rules.parallel || server.sampling;
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
            let _alone = match self.info.is_sequential {
                true => Some(self.link.alone.lock().await),
                false => None,
            };
            let asked = self.link.shared.calls.add();
            let reply = answering(self.reply(params, context), asked, context).await?;
            if reply.as_ref().is_err_and(may_be_unknown) {
                self.link.shared.note_change(); // the tool may be gone without a word
            }
            // The next request to the model offers what the call has added.
            self.link.list_changed().await;
            reply.map_err(|error| self.error(error)).and_then(output)
        })
    }
}

impl McpTool {
    /// Sends a call, and once again to a server that died, if the call changes nothing.
    async fn reply(
        &self,
        params: CallToolRequestParams,
        context: &ToolContext,
    ) -> Result<Result<CallToolResult, ServiceError>, ToolError> {
        let connection = self.link.connection(&context.session_id, None).await?;
        let reply = connection.call_tool(params.clone()).await;
        if !reply.as_ref().is_err_and(is_disconnected) || self.info.effects.changes_something() {
            return Ok(reply);
        }
        let connection = self.link.connection(&context.session_id, Some(&connection)).await?;
        Ok(connection.call_tool(params).await)
    }
}

/// Returns whether a server may no longer have the tool of a call: it says so with the code of wrong parameters.
fn may_be_unknown(error: &ServiceError) -> bool {
    let codes = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND];
    matches!(error, ServiceError::McpError(error) if codes.contains(&error.code))
}

/// Returns whether the server died during a call.
fn is_disconnected(error: &ServiceError) -> bool {
    match error {
        ServiceError::TransportSend(_) => http_answer(error).is_none(),
        error => matches!(error, ServiceError::TransportClosed),
    }
}

/// Returns what a server answers to the HTTP request of a call, if it is no result; none if it does not answer.
fn http_answer(error: &ServiceError) -> Option<String> {
    let ServiceError::TransportSend(error) = error else { return None };
    match error.error.downcast_ref::<HttpError>()? {
        HttpError::HttpStatus(status) => Some(status.to_string()),
        HttpError::UnexpectedServerResponse(message) => Some(message.to_string()),
        answer @ (HttpError::ResponseBodyTooLarge { .. }
        | HttpError::UnexpectedContentType(_)
        | HttpError::Deserialize(_)
        | HttpError::Auth(_)
        | HttpError::AuthRequired(_)
        | HttpError::InsufficientScope(_)) => Some(answer.to_string()),
        _ => None,
    }
}

impl McpTool {
    /// Describes the error of a call for the model.
    fn error(&self, error: ServiceError) -> ToolError {
        let server = &self.server;
        let unknown = match self.info.effects.changes_something() {
            true => " It is unknown whether the call took effect; check that before you repeat it.",
            false => "",
        };
        if let ServiceError::TransportSend(sent) = &error
            && let Some(problem) = self.link.server.sign_in_error(sent.error.as_ref())
        {
            tracing::warn!(server, "{problem}; {}", problem.suggestion());
            return ToolError::new("ServerUnavailable", problem.to_string());
        }
        if let Some(answer) = http_answer(&error) {
            let message =
                format!("The MCP server `{server}` answers the call with {}.{unknown}", excerpt(&answer));
            return ToolError::new("McpError", message);
        }
        match error {
            ServiceError::McpError(ErrorData { code, message, data, .. }) => {
                let details = json!({ "code": code.0, "data": data });
                let details = Some(Value::from(details));
                ToolError { details, ..ToolError::new("McpError", message) }
            }
            error if is_disconnected(&error) => {
                let message =
                    format!("The MCP server `{server}` closed the connection during the call.{unknown}");
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
    prefix(server) + &accepted(tool)
}

// The result of a call, for the model.

/// Converts the result of a call, or its error. Media are parts, wherever the server repeats them, and text is sent unless the
/// structured content repeats it.
fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for block in result.content {
        match content(block) {
            Content::Text(text) => texts.push(text),
            Content::Media(part) => parts.push(part),
        }
    }
    let text = texts.join("\n");
    let structured = result.structured_content.map(|content| without_media(verbatim::structured(content)));
    if result.is_error == Some(true) {
        let message = if text.is_empty() { "The tool reports an error.".to_owned() } else { text };
        return Err(ToolError { details: structured, parts, ..ToolError::new("ToolError", message) });
    }
    let value = match structured {
        Some(content) if text.is_empty() || repeats(&content, &texts) => content,
        Some(content) => with_text(&content, text),
        None => verbatim::result(text),
    };
    Ok(ToolOutput { parts, ..ToolOutput::from(value) })
}

/// Returns whether structured content has each text: as its own JSON, as the JSON of a member, or as one of its strings.
fn repeats(content: &Value, texts: &[String]) -> bool {
    let same = |text: &String| {
        Value::parse(text).is_ok_and(|value| {
            value == *content || content.members().any(|(_, member)| member.to_value() == value)
        })
    };
    texts.iter().all(|text| same(text) || strings(content).any(|string| string == text))
}

/// Returns the strings of a value.
fn strings(value: &Value) -> impl Iterator<Item = &str> {
    let mut open = vec![value.node()];
    std::iter::from_fn(move || {
        loop {
            let node = open.pop()?;
            open.extend(node.elements());
            open.extend(node.members().map(|(_, member)| member));
            if let Some(text) = node.as_str() {
                return Some(text);
            }
        }
    })
}

/// Adds the text of a result to its structured content.
fn with_text(content: &Value, text: String) -> Value {
    let is_free = content.is_object() && content.get("text").is_none();
    let mut joined = String::new();
    cog_json::Writer::compact(&mut joined).object(|w| {
        match is_free {
            true => content.members().for_each(|(key, member)| {
                w.field(key, &member);
            }),
            false => {
                w.field("result", content);
            }
        }
        w.field("text", &text);
    });
    Value::parse(&joined).unwrap_or_default()
}

/// The length from which a string of structured content may be the base64 of a media file.
const MIN_MEDIA: usize = 64;

/// Returns structured content with a note instead of each string that is the base64 of a media file: the model receives the
/// file as a part, and its text would cost thousands of tokens.
fn without_media(content: Value) -> Value {
    let mut text = content.to_json();
    let media: Vec<(&str, &'static str)> =
        strings(&content).filter_map(|string| Some((string, media_type_of(string)?))).collect();
    if media.is_empty() {
        return content;
    }
    for (data, kind) in media {
        let note = format!("[{kind}, {} bytes of base64]", data.len());
        text = text.replace(&data.to_json(), &note.to_json());
    }
    Value::parse(&text).unwrap_or(content)
}

/// Returns the type of a media file from its base64, with or without the beginning of a `data:` URL.
fn media_type_of(text: &str) -> Option<&'static str> {
    media_type_of_base64(bare(text)).filter(|_| text.len() >= MIN_MEDIA)
}

enum Content {
    Text(String),
    Media(Part),
}

fn content(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => media(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => media(&audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => {
            let details = [link.description.as_deref(), link.mime_type.as_deref()];
            let details: Vec<&str> = details.into_iter().flatten().collect();
            Content::Text(format!("{}: {} ({})", link.name, link.uri, details.join(", ")).replace(" ()", ""))
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => Content::Text(text),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                match media_type_of_base64(bare(&blob)) {
                    Some(kind) => media(mime_type.as_deref().unwrap_or(kind), &blob),
                    None => Content::Text(format!("{uri}: {} bytes of base64", blob.len())),
                }
            }
            _ => Content::Text("[content of an unknown kind]".to_owned()),
        },
        _ => Content::Text("[content of an unknown kind]".to_owned()),
    }
}

/// Returns media as a part; the runtime checks it by its content.
fn media(kind: &str, data: &str) -> Content {
    let data: String = bare(data).split_ascii_whitespace().collect();
    Content::Media(Part::media(kind, data))
}

/// Returns base64 without the beginning of a `data:` URL.
fn bare(data: &str) -> &str {
    let (scheme, rest) = data.split_once(";base64,").unwrap_or(("", data));
    if scheme.starts_with("data:") { rest } else { data }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(result: serde_json::Value) -> Result<ToolOutput, ToolError> {
        output(serde_json::from_value(result).unwrap())
    }

    fn text(text: &str) -> serde_json::Value {
        json!({ "type": "text", "text": text })
    }

    #[test]
    fn text_is_sent_unless_the_structured_content_repeats_it() {
        let value = |result| converted(result).unwrap().value.unwrap().to_json();
        assert_eq!(value(json!({ "content": [text("{\"a\":1}")] })), r#"{"a":1}"#);
        assert_eq!(value(json!({ "content": [text("a"), text("{\"a\":1}")] })), r#""a\n{\"a\":1}""#);
        for (content, structured, expected) in [
            (json!([text("{\"rows\": 2}")]), json!({ "rows": 2 }), r#"{"rows":2}"#),
            (json!([text("fine")]), json!({ "result": "fine" }), r#"{"result":"fine"}"#),
            (json!([text("5")]), json!({ "result": 5 }), r#"{"result":5}"#),
            (json!([]), json!([1]), "[1]"),
            (
                json!([text("row 3 was skipped")]),
                json!({ "rows": 2 }),
                r#"{"rows":2,"text":"row 3 was skipped"}"#,
            ),
            (json!([text("b")]), json!({ "text": "a" }), r#"{"result":{"text":"a"},"text":"b"}"#),
            (json!([text("b")]), json!([1]), r#"{"result":[1],"text":"b"}"#),
        ] {
            assert_eq!(value(json!({ "content": content, "structuredContent": structured })), expected);
        }
    }

    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    #[test]
    fn media_are_parts_only() {
        let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
        let result = json!({ "content": [image], "structuredContent": {
            "content": [image], "url": format!("data:image/png;base64,{PNG}"), "id": "a".repeat(100),
        } });
        let ToolOutput { value, parts, .. } = converted(result).unwrap();
        let value = value.unwrap().to_json();
        assert!(!value.contains(PNG) && value.contains("[image/png, 96 bytes of base64]"), "{value}");
        assert!(value.contains(&"a".repeat(100)), "{value}");
        assert_eq!(parts, [Part::media("image/png", PNG.to_owned())]);
        let url = json!({ "type": "image", "data": format!("data:image/png;base64,{PNG}"), "mimeType": "image/png" });
        assert_eq!(converted(json!({ "content": [url] })).unwrap().parts, parts);
        let blob = |blob: &str, kind: &str| {
            let resource = json!({ "uri": "file:///a", "mimeType": kind, "blob": blob });
            converted(json!({ "content": [{ "type": "resource", "resource": resource }] })).unwrap()
        };
        assert_eq!(blob("JVBERi0xLjc=", "application/pdf").parts.len(), 1);
        assert_eq!(
            blob("AAAA", "application/x").value.unwrap().to_json(),
            r#""file:///a: 4 bytes of base64""#
        );
    }

    #[test]
    fn error_keeps_its_lines_images_and_structured_content() {
        let lines = "Traceback:\n  File \"a.py\"\n    x = [";
        let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
        let error = converted(json!({ "content": [text(lines), image], "isError": true })).unwrap_err();
        assert_eq!((error.error_type.as_str(), error.message.as_str()), ("ToolError", lines));
        assert_eq!(error.parts.len(), 1);
        let quota = json!({ "content": [], "structuredContent": { "code": "QUOTA" }, "isError": true });
        let error = converted(quota).unwrap_err();
        assert_eq!(error.details.unwrap().to_json(), r#"{"code":"QUOTA"}"#);
        assert!(!error.message.is_empty());
    }

    #[test]
    fn name_contains_only_what_vendors_accept() {
        assert_eq!(qualified("files", "read_file"), "files__read_file");
        assert_eq!(qualified("a b", "fs.read/ä"), "a_b__fs_read__");
    }
}
