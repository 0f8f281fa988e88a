//! A language server for the files of Cognitive Modules: manifest, prompt, schema, golden tests and `MODULE.md`.
//!
//! Its diagnostics are those of `cog validate`, on the text as it is typed. It completes keys, values, placeholders, modules
//! and paths of fields, explains them, and finds and renames a field in all files of its module.
//!
//! * `server` speaks the protocol; `workspace` has the open files and finds their modules; `text` counts positions;
//! * `diagnose`, `complete`, `navigate` are the answers; `manifest` and `yaml` know where a position of a manifest is.

mod complete;
mod diagnose;
mod manifest;
mod navigate;
mod server;
mod text;
mod workspace;
mod yaml;

use std::path::Path;

use cog_module::Finder;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp_server::{LspService, Server};

use crate::server::LanguageServer;

/// Answers the requests of an editor until it closes the connection or sends `exit`.
///
/// `finder` returns what finds the modules that are called from a directory of the workspace.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    finder: impl Fn(&Path) -> Finder + Send + Sync + 'static,
) {
    let (service, socket) = LspService::new(|client| LanguageServer::new(client, Box::new(finder)));
    Server::new(input, output, socket).serve(service).await;
}
