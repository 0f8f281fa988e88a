//! MCP, over stdio and streamable HTTP: tools of servers, and modules as tools and skills.
//!
//! * [`McpServer`] is a server that the operator configured: a program or a URL. Nothing of it comes from a module, an input
//!   or a model.
//! * [`McpServer::start`] starts it and lists its tools. Each is a [`Tool`](cog_run::tools::Tool) with the name
//!   `SERVER__TOOL`. A server that dies is started again, once in each run; tools that change are listed again.
//!
//! The client accepts servers of both revisions of the protocol: 2026-07-28, and those with `initialize`. A server may ask for
//! what the operator allows: the model of the run, a person, and directories.
//!
//! With the feature `server`, [`ModuleServer`] serves modules as tools and skills, for clients of both revisions (docs/mcp.md).

mod asked;
mod calls;
mod connect;
mod http_client;
mod link;
mod oauth;
mod person;
#[cfg(feature = "server")]
mod serve;
mod server;
mod shared;
mod tls;
mod verbatim;

pub use link::McpTools;
pub use oauth::{Revocation, SignedOut};
pub use person::{Field, FieldKind, Person};
#[cfg(feature = "server")]
pub use serve::{CallSettings, HttpSettings, McpHttp, ModuleServer};
pub use server::{McpError, McpServer, McpTransport, OAuth, ToolRules};
