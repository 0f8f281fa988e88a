//! A language server for the files of Cognitive Modules: manifest, prompt, schema, golden tests and `MODULE.md`.
//!
//! Its diagnostics are those of `cog validate`, on the text as it is typed. It completes keys, values, placeholders, modules
//! and paths of fields, explains them, and finds and renames a field in all files of its module.
//!
//! * `server` speaks the protocol, and `frames` answers what is not a message of it; `workspace` has the open files and finds their
//!   modules; `text` counts positions;
//! * `diagnose`, `complete`, `navigate` are the answers; `manifest` and `yaml` know where a position of a manifest is.

mod complete;
mod diagnose;
mod frames;
mod manifest;
mod navigate;
mod server;
mod text;
mod workspace;
mod yaml;

use std::{path::Path, pin::pin};

use cog_module::Finder;
use tokio::{
    io::{AsyncRead, AsyncWrite, duplex},
    sync::mpsc::channel,
};
use tower_lsp_server::{LspService, Server};

use crate::server::LanguageServer;

/// The bytes that wait between the connection and the server, in each direction.
const WAITING_BYTES: usize = 64 << 10;
/// The answers to broken messages that wait until they are written.
const WAITING_REFUSALS: usize = 16;

/// Answers the requests of an editor until it closes the connection or sends `exit`.
///
/// `finder` returns what finds the modules that are called from a directory of the workspace.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    finder: impl Fn(&Path) -> Finder + Send + Sync + 'static,
) {
    let (service, socket) = LspService::new(|client| LanguageServer::new(client, Box::new(finder)));
    let (to_server, server_input) = duplex(WAITING_BYTES);
    let (server_output, from_server) = duplex(WAITING_BYTES);
    let (refusals, refused) = channel(WAITING_REFUSALS);
    let serving = async {
        let mut serving = pin!(Server::new(server_input, server_output, socket).serve(service));
        // After `exit`, nothing more is read. At the end of the input, the last answers are still written.
        tokio::select! {
            () = &mut serving => return,
            () = frames::pass_in(input, to_server, refusals) => {}
        }
        serving.await;
    };
    tokio::join!(serving, frames::pass_out(from_server, refused, output));
}
