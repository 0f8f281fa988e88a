//! The MCP servers of the operator.

use std::sync::Arc;

use cog_host::{
    mcp::{self, CallableTools},
    settings::Settings,
};
use cog_module::Module;
use cog_run::{RunOptions, Runtime, tools::Tool};
use cog_spec::ErrorBody;
use tokio::sync::OnceCell;

use crate::callback::warn;

/// The tools of each server, in the order of the settings, once it is connected.
pub(crate) struct Servers(Vec<OnceCell<Vec<Arc<dyn Tool>>>>);

impl Servers {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(settings.mcp.iter().map(|_| OnceCell::new()).collect())
    }

    /// Adds the tools of the servers that a module may call.
    ///
    /// # Errors
    /// A server cannot be started or reached.
    pub(crate) async fn add_tools(
        &self,
        settings: &Settings,
        runtime: &Runtime,
        module: &Arc<Module>,
        mut options: RunOptions,
    ) -> Result<RunOptions, ErrorBody> {
        if settings.mcp.is_empty() {
            return Ok(options);
        }
        let callable = CallableTools::from_module(module, |name| runtime.load_name(name).ok());
        for (server, tools) in settings.mcp.iter().zip(&self.0) {
            if callable.need(server) {
                let connect = async || Ok::<_, ErrorBody>(mcp::connect(server, warn).await?.tools);
                let tools = tools.get_or_try_init(connect).await?;
                options = tools.iter().fold(options, |options, tool| options.tool(Arc::clone(tool)));
            }
        }
        Ok(options)
    }
}
