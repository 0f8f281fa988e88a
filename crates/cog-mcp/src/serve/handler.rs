//! The methods of the protocol.

use std::sync::Arc;

use cog_run::{Code, Envelope, ErrorBody, Module, Runtime, spans::SpanContext};
use http::request::Parts;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
        PaginatedRequestParams, RequestMetaObject, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use super::{
    call::Call,
    catalog::Catalog,
    confirmation::Confirmations,
    progress::Progress,
    result::{invalid_params, result},
    settings::{CallSettings, Settings},
};

/// What a client shows its model about the tools.
const INSTRUCTIONS: &str = "Each tool runs a module on a language model. Its result is an envelope: `data` is the answer, \
    checked against the output schema; `meta` has `confidence` (0 to 1), `risk` and `explain`. If `ok` is false, `error` has \
    a code, a message and a suggestion.";

/// Serves the modules of a runtime as tools (docs/mcp.md). Clones share everything.
#[derive(Clone)]
pub struct ModuleServer(Arc<Shared>);

struct Shared {
    runtime: Runtime,
    settings: Settings,
    catalog: Catalog,
    confirmations: Confirmations,
}

impl ModuleServer {
    /// Serves the modules of this runtime. `settings` returns what a call may use, given its HTTP request, or the error
    /// that refuses it.
    pub fn new(
        runtime: Runtime,
        settings: impl Fn(Option<&Parts>) -> Result<CallSettings, ErrorBody> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            runtime,
            settings: Box::new(settings),
            catalog: Catalog::default(),
            confirmations: Confirmations::new(),
        }))
    }

    async fn module(&self, name: &str) -> Result<Arc<Module>, ErrorData> {
        let loaded = self.0.runtime.load_name_async(name).await;
        loaded.map_err(|error| invalid_params(&for_client(error)))
    }
}

impl ServerHandler for ModuleServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("cog", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            let error = ErrorBody::new(Code::UnsupportedValue, "cursor: the list has one page")
                .suggest("Leave out the cursor.");
            return Err(invalid_params(&error));
        }
        let shared = Arc::clone(&self.0);
        let listed = tokio::task::spawn_blocking(move || shared.catalog.list(&shared.runtime)).await;
        let tools = listed.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let module = self.0.runtime.cached_name(name)?;
        Some(self.0.catalog.tool(name, &module))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let module = self.module(&params.name).await?;
        let mut settings = match (self.0.settings)(context.extensions.get::<Parts>()) {
            Ok(settings) => settings,
            Err(refused) => return Ok(result(None, &Envelope::failure(refused)).into()),
        };
        if let Some(parent) = parent_span(&context.meta) {
            settings.options.trace_id = Some(parent.trace_id());
            settings.options.parent_span = Some(parent);
        }
        let progress = context.meta.get_progress_token();
        let progress = progress.map(|token| Progress::new(token, context.peer.clone()));
        let Shared { runtime, confirmations, .. } = &*self.0;
        Call { runtime, confirmations, module, settings, context, progress }.answer(params).await
    }
}

/// Returns the span of the client (SEP-414). It is closer to the call than that of its HTTP request.
fn parent_span(meta: &RequestMetaObject) -> Option<SpanContext> {
    SpanContext::parse(meta.get_traceparent()?, meta.get_tracestate())
}

/// Replaces the advice to use the command line, unless it names a similar module.
fn for_client(error: ErrorBody) -> ErrorBody {
    let names_module = error.suggestion.as_deref().is_some_and(|text| text.starts_with("Did you mean"));
    match error.code == Code::ModuleNotFound.into() && !names_module {
        true => error.suggest("`tools/list` lists the modules."),
        false => error,
    }
}
