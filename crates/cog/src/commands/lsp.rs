//! `cog lsp`: the language server, over stdin and stdout.

use std::path::Path;

use cog_host::settings::{Environment, Flags, Settings};
use cog_module::Finder;
use cog_spec::{Code, ErrorBody};

use crate::error::{CliError, Exit};

/// Serves until the editor sends `exit` or closes its end.
pub(crate) fn lsp(environment: Environment) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let home = settings.directories.home.clone();
    let extra = settings.modules.value.clone();
    let finder = move |directory: &Path| Finder::new(directory, extra.clone(), home.as_deref());
    let events = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let events = events.map_err(|error| {
        ErrorBody::new(Code::InternalError, format!("cannot start the async runtime: {error}"))
    })?;
    events.block_on(cog_lsp::serve(tokio::io::stdin(), tokio::io::stdout(), finder));
    // A read of stdin cannot be cancelled: do not wait for it.
    events.shutdown_background();
    Ok(Exit::Ok)
}
