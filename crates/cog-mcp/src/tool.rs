//! A tool of a server.

use std::sync::Arc;

use cog_json::{ToJson as _, Value};
use cog_run::tools::{Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo};
use rmcp::{
    ServiceError,
    model::{CallToolRequestParams, Tool as Listed},
};

use crate::{error::excerpt, link::Link, name::qualified, output::output, server::McpServer, verbatim};

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
        let (name, server) = (listed.name.into_owned(), server.name.clone());
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
