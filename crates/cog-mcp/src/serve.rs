//! Modules as tools of an MCP server (docs/mcp.md).

mod annotations;
mod call;
mod catalog;
mod confirmation;
mod handler;
mod http;
mod media;
mod opening;
mod progress;
mod result;
mod schema;
mod settings;
mod stdio;

pub use self::{
    handler::ModuleServer,
    http::{HttpSettings, McpHttp},
    settings::CallSettings,
};

#[cfg(test)]
mod tests;
