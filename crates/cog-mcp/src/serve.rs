//! Modules as tools and skills of an MCP server (docs/mcp.md).

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
mod settings;
mod skills;
mod stdio;

pub use self::{
    handler::ModuleServer,
    http::{HttpSettings, McpHttp},
    settings::CallSettings,
};

#[cfg(test)]
mod tests;
