//! Modules as tools and skills of an MCP server (docs/mcp.md).

mod call;
mod catalog;
mod confirmation;
mod http;

use std::{any::Any, borrow::Cow, sync::Arc};

use ::http::request::Parts;
use cog_run::{
    ClientRules, Code, Envelope, Module, ModuleRef, RunContext, RunOptions, Runtime, ToJson as _,
    events::SpanContext, tools::ToolEffects,
};
use cog_spec::ErrorBody;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
        GetSkillRequestParams, GetSkillResult, Implementation, JsonRpcMessage, ListResourcesResult,
        ListSkillsResult, ListToolsResult, NumberOrString, PaginatedRequestParams, ProgressToken,
        ReadResourceRequestParams, ReadResourceResponse, RequestMetaObject, Resource, SKILLS_EXTENSION_ID,
        ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::{
    call::{Call, Progress, task_failed},
    catalog::{Catalog, ServedSkill, Skills, module_in, modules},
    confirmation::Confirmations,
};
use crate::verbatim;

pub use self::http::{HttpSettings, McpHttp};

/// What a client shows its model about the tools.
const INSTRUCTIONS: &str = "Each tool runs a module on a language model. Its result is an envelope: `data` is the answer, \
    checked against the output schema; `meta` has `confidence` (0 to 1), `risk` and `explain`. If `ok` is false, `error` has \
    a code, a message and a suggestion.";

/// Serves the modules of a runtime as tools, and optionally as skills (docs/mcp.md). Clones share everything.
#[derive(Clone)]
pub struct ModuleServer {
    shared: Arc<Shared>,
    serves_skills: bool,
}

struct Shared {
    runtime: Runtime,
    settings: Settings,
    catalog: Catalog,
    skills: Skills,
    confirmations: Confirmations,
}

impl ModuleServer {
    /// Serves the modules of this runtime as tools. `settings` returns what a call may use, given its HTTP request, or the
    /// error that refuses it.
    pub fn new(
        runtime: Runtime,
        settings: impl Fn(Option<&Parts>) -> Result<CallSettings, ErrorBody> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            runtime,
            settings: Box::new(settings),
            catalog: Catalog::default(),
            skills: Skills::default(),
            confirmations: Confirmations::new(),
        };
        Self { shared: Arc::new(shared), serves_skills: false }
    }

    /// Serves the modules as skills too, which show every client their prompts and files.
    #[must_use]
    pub fn with_skills(mut self) -> Self {
        self.serves_skills = true;
        self
    }

    /// Loads the module of a tool. `rules` decide what its client learns of an error.
    async fn module(&self, name: &str, rules: &ClientRules) -> Result<Arc<Module>, ErrorData> {
        let loaded = self.shared.runtime.load_async(ModuleRef::Name(name)).await;
        loaded.map_err(|error| invalid_params(&rules.shown(for_client(error))))
    }

    /// Returns what a function makes of the shared state, on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let shared = Arc::clone(&self.shared);
        let made = tokio::task::spawn_blocking(move || make(&shared)).await;
        made.map_err(|error| task_failed(&error))
    }

    async fn skills(&self) -> Result<Vec<Arc<ServedSkill>>, ErrorData> {
        if !self.serves_skills {
            return Ok(Vec::new());
        }
        self.blocking(|shared| {
            let modules = modules(&shared.runtime);
            modules.iter().filter_map(|(name, module)| shared.skills.skill(name, module)).collect()
        })
        .await
    }

    /// Returns the skill with a file of this URI; none without skills, or if no module that agents may call is meant.
    async fn skill_of(&self, uri: &str) -> Result<Option<Arc<ServedSkill>>, ErrorData> {
        let Some(name) = module_in(uri).filter(|_| self.serves_skills).map(str::to_owned) else {
            return Ok(None);
        };
        let Ok(module) = self.shared.runtime.load_async(ModuleRef::Name(&name)).await else {
            return Ok(None);
        };
        if !module.manifest.invocation.agent_invocable {
            return Ok(None);
        }
        self.blocking(move |shared| shared.skills.skill(&name, &module)).await
    }
}

impl ServerHandler for ModuleServer {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.serves_skills {
            true => tools.enable_resources().enable_skills().build(),
            false => tools.build(),
        };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cog", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        check_page(request)?;
        let tools = self.blocking(|shared| shared.catalog.list(&shared.runtime)).await?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        check_page(request)?;
        let skills = self.skills().await?;
        Ok(ListSkillsResult::with_all_items(skills.iter().map(|skill| skill.entry().clone()).collect()))
    }

    async fn get_skill(
        &self,
        params: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let found = self.skill_of(&params.uri).await?.filter(|skill| skill.entry().uri == params.uri);
        found.map(|skill| GetSkillResult::new(skill.entry().clone())).ok_or_else(|| {
            let error =
                ErrorBody::new(Code::ModuleNotFound, format!("no skill has the URI `{}`", params.uri));
            invalid_params(&error.suggest("`skills/list` lists the skills."))
        })
    }

    /// The files of the skills are resources. Only a client that has skills gets a list.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        check_page(request)?;
        if !has_skills(&context) {
            return Ok(ListResourcesResult::with_all_items(Vec::new()));
        }
        let skills = self.skills().await?;
        Ok(ListResourcesResult::with_all_items(skills.iter().map(|skill| skill.resource()).collect()))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let file = self.skill_of(&params.uri).await?.and_then(|skill| skill.read(&params.uri));
        file.map(ReadResourceResponse::from).ok_or_else(|| {
            let data = serde_json::json!({ "uri": params.uri });
            ErrorData::resource_not_found(format!("no resource has the URI `{}`", params.uri), Some(data))
        })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let module = self.shared.runtime.cached(ModuleRef::Name(name))?;
        Some(self.shared.catalog.tool(name, &module))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let progress = context.meta.get_progress_token();
        check_progress_token(progress.as_ref())?;
        let mut settings = match (self.shared.settings)(context.extensions.get::<Parts>()) {
            Ok(settings) => settings,
            Err(refused) => return Ok(result(None, &Envelope::failure(refused)).into()),
        };
        let module = self.module(&params.name, &settings.options.client).await?;
        if let Some(parent) = parent_span(&context.meta) {
            settings.options.trace_id = Some(parent.trace_id());
            settings.context.parent_span = Some(parent);
        }
        let progress = progress.map(|token| Progress::new(token, context.peer.clone()));
        let Shared { runtime, confirmations, .. } = &*self.shared;
        Call { runtime, confirmations, module, settings, context, progress }.answer(params).await
    }
}

/// The maximum length of a `progressToken`, in bytes. Each notification of a call repeats it.
const MAX_PROGRESS_TOKEN: usize = 256;

/// Refuses a `progressToken` that is too long.
fn check_progress_token(token: Option<&ProgressToken>) -> Result<(), ErrorData> {
    match token {
        Some(ProgressToken(NumberOrString::String(token))) if token.len() > MAX_PROGRESS_TOKEN => {
            let message = format!("progressToken: at most {MAX_PROGRESS_TOKEN} bytes are allowed");
            Err(invalid_params(&ErrorBody::new(Code::InputTooLarge, message)))
        }
        _ => Ok(()),
    }
}

/// Refuses a cursor: each list has one page.
fn check_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    if request.is_none_or(|request| request.cursor.is_none()) {
        return Ok(());
    }
    let error = ErrorBody::new(Code::UnsupportedValue, "cursor: the list has one page");
    Err(invalid_params(&error.suggest("Leave out the cursor.")))
}

/// Returns whether the client declares the extension of SEP-2640.
fn has_skills(context: &RequestContext<RoleServer>) -> bool {
    let extensions = context.client_capabilities().and_then(|can| can.extensions);
    extensions.is_some_and(|declared| declared.contains_key(SKILLS_EXTENSION_ID))
}

/// Returns the span of the client (SEP-414). It is closer to the call than the span of its HTTP request.
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

// The first messages of a client.

/// A transport that drops what a client sends before its first request: notifications and responses that belong to
/// nothing, which would end the connection.
struct Opening<T> {
    transport: T,
    is_open: bool,
}

impl<T> Opening<T> {
    fn new(transport: T) -> Self {
        Self { transport, is_open: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opening<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.transport.receive().await?;
            self.is_open |= matches!(message, JsonRpcMessage::Request(_));
            if self.is_open {
                return Some(message);
            }
            tracing::warn!("ignored a message before the first request");
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

// The policies of a module as hints for clients.

/// Returns the hints of a module. The policies say nothing about repeated calls, so `idempotentHint` is absent.
fn annotations(module: &Module) -> ToolAnnotations {
    let effects = ToolEffects::from(&*module.manifest);
    let changes = effects.changes_something();
    ToolAnnotations::new().read_only(!changes).destructive(changes).open_world(effects.network)
}

// Generated media as content of a result.

/// Moves the images and audio clips of an envelope to content of their own. In the envelope for the model, each is
/// replaced by its position.
fn take(module: &Module, data: &cog_run::Value, envelope: &mut Value) -> Vec<ContentBlock> {
    let slots = module.contract.media_outputs(data.node());
    let mut blocks = Vec::new();
    for slot in slots {
        let Some(media) = envelope.pointer_mut(&slot.path.pointer()) else { continue };
        if let Some(block) = block(media) {
            blocks.push(block);
            if let Some(text) = media.get_mut("data") {
                *text = Value::from(format!("content block {}", blocks.len() + 1));
            }
        }
    }
    blocks
}

fn block(media: &Value) -> Option<ContentBlock> {
    let kind = text(media, "media_type").unwrap_or_default();
    match (text(media, "data"), text(media, "url")) {
        (Some(data), _) if kind.starts_with("image/") => Some(ContentBlock::image(data, kind)),
        (Some(data), _) if kind.starts_with("audio/") => Some(ContentBlock::audio(data, kind)),
        (None, Some(url)) => {
            let name = url.rsplit('/').next().unwrap_or(url);
            Some(ContentBlock::resource_link(Resource::new(url, name).with_mime_type(kind)))
        }
        _ => None,
    }
}

fn text<'a>(media: &'a Value, name: &str) -> Option<&'a str> {
    media.get(name).and_then(Value::as_str)
}

// An envelope as the result of a call.

/// Returns the result of a run: its envelope as structured content and as text, and its media. A failed run is an error
/// of the tool, which the model sees.
fn result(module: Option<&Module>, envelope: &Envelope) -> CallToolResult {
    let structured = envelope.to_json();
    let (text, media) = with_media(module, envelope, &structured);
    let content = std::iter::once(ContentBlock::text(text)).chain(media).collect();
    let mut result = match envelope.is_ok() {
        true => CallToolResult::success(content),
        false => CallToolResult::error(content),
    };
    result.structured_content = Some(verbatim::content(structured));
    result
}

/// Returns the text and the media of a result. Base64 is not in the text, which a model reads.
fn with_media(module: Option<&Module>, envelope: &Envelope, text: &str) -> (String, Vec<ContentBlock>) {
    match (module, envelope.data()) {
        (Some(module), Some(data)) if module.contract.has_media_outputs() => {
            let mut shown = serde_json::from_str(text).unwrap_or_default();
            let blocks = take(module, data, &mut shown);
            (shown.to_string(), blocks)
        }
        _ => (text.to_owned(), Vec::new()),
    }
}

/// Returns an error of the protocol, with the code of the specification in its data.
fn invalid_params(error: &cog_spec::ErrorBody) -> ErrorData {
    let mut data = serde_json::json!({ "code": error.code.to_string() });
    if let (Some(members), Some(suggestion)) = (data.as_object_mut(), &error.suggestion) {
        members.insert("suggestion".to_owned(), Value::from(suggestion.as_str()));
    }
    ErrorData::invalid_params(error.message.clone(), Some(data))
}

// What the program that serves the modules decides for each call.

/// What a call may use, and whose run it is.
#[derive(Default)]
pub struct CallSettings {
    /// The options of its run.
    pub options: RunOptions,
    /// What surrounds the run.
    pub context: RunContext,
    /// What is in use until the run has ended, such as a slot.
    pub held: Option<Box<dyn Any + Send + Sync>>,
    /// Stops the run when the program shuts down.
    pub shutdown: CancellationToken,
    /// How a person continues a run that waits for a confirmation, if the client has no elicitation. By default the
    /// suggestion of the run.
    pub confirmation_advice: Option<String>,
}

/// Returns the settings of a call. The argument is the HTTP request; none over stdio. An error refuses the call.
type Settings = Box<dyn Fn(Option<&Parts>) -> Result<CallSettings, ErrorBody> + Send + Sync>;

#[cfg(test)]
mod tests;
