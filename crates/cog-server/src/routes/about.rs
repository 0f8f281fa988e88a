//! Health, capabilities and metrics of the server, and its modules.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use cog_json::{Array, ToJson, Value, Writer};
use cog_module::{
    ListedModule, Module,
    export::{CardServer, agent_card},
};
use cog_run::ModuleRef;
use cog_spec::{Code, ErrorBody, Manifest};

use crate::{
    BrokenModule, answer, broken_modules, capabilities,
    error::ApiError,
    metrics::{self, Live},
    offload,
    openapi::{Refused, RunFailed},
    state::{App, Caller, Name},
};

/// General information and the list of routes.
pub(crate) fn information(paths: &'static [String]) -> Response {
    answer::json(StatusCode::OK, &Index { paths })
}

/// Returns 200 while the process is alive (liveness).
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "health",
    tag = "about",
    responses(
        (status = 200, description = "The server is alive", body = ref("#/components/schemas/Status")),
        Refused,
    )
)]
pub(crate) async fn health() -> Response {
    answer::written(StatusCode::OK, "{\"status\":\"ok\"}\n")
}

/// Returns 200 while the server accepts requests (readiness), with the modules whose files cannot be loaded.
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "ready",
    tag = "about",
    responses(
        (status = 200, description = "The server accepts requests", body = ref("#/components/schemas/Readiness")),
        (status = 503, description = "E4001: the server is shutting down", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    if app.guard.drain.announced.is_cancelled() {
        return Err(shutting_down());
    }
    Ok(answer::json(StatusCode::OK, &Readiness { broken_modules: &app.checks.broken(&app.runtime).await }))
}

fn shutting_down() -> ApiError {
    let details = Value::from(serde_json::json!({ "retry_after_ms": 1000 }));
    let error = ErrorBody::new(Code::ProviderUnavailable, "the server is shutting down")
        .suggest("Retry in a moment; another instance may respond.")
        .with_details(details);
    ApiError::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// The state of a server that accepts requests. A broken module does not make the others unavailable.
struct Readiness<'a> {
    broken_modules: &'a [String],
}

/// Written by hand: the first member is a constant.
impl ToJson for Readiness<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("status", "ready");
            w.field("broken_modules", self.broken_modules);
        });
    }
}

/// Lists the capabilities of this runtime (SPEC 8.1).
#[utoipa::path(
    get,
    path = "/v1/capabilities",
    operation_id = "capabilities",
    tag = "about",
    responses(
        (status = 200, description = "The capabilities", body = ref("#/components/schemas/Capabilities")),
        Refused,
    )
)]
pub(crate) async fn declared() -> Response {
    answer::json(StatusCode::OK, &capabilities())
}

/// Returns the metrics for Prometheus. If the server has tokens, a client reads the metrics of its own runs.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "about",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text"),
        Refused,
    )
)]
pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Response {
    let sees_all = caller.grant.only_metrics || caller.grant.is_operator;
    let text = match app.guard.access.has_tokens() && !sees_all {
        true => {
            let streams = app.guard.slots.taken_by(&caller.client);
            app.guard.metrics.client(&caller.client.owner()).text(streams)
        }
        false => all_metrics(&app),
    };
    let mut response = answer::written(StatusCode::OK, text);
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Returns the metrics of all clients.
fn all_metrics(app: &App) -> String {
    let providers = app.runtime.providers().default_order().iter();
    let live = Live {
        streams: app.guard.slots.taken(),
        providers: providers.map(|one| (one.info().name.clone().into_owned(), one.is_available())).collect(),
        sessions: app.sessions.count_by_state(),
        sessions_not_on_disk: app.sessions.count_not_on_disk(),
    };
    app.guard.metrics.text(&live)
}

/// API information.
struct Index {
    paths: &'static [String],
}

/// Written by hand: most members are constants.
impl ToJson for Index {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", "cog");
            w.field("version", env!("CARGO_PKG_VERSION"));
            w.field("description", "Cognitive Modules over HTTP");
            w.field("openapi", "/openapi.json");
            w.field("docs", "/docs");
            w.key("routes").array(|w| {
                for path in self.paths {
                    w.item(path);
                }
            });
        });
    }
}

// The card of A2A, by which agents find the modules (docs/export.md).

/// Returns the card of A2A 1.0 with every module that agents may call.
#[utoipa::path(
    get,
    path = "/.well-known/agent-card.json",
    operation_id = "agentCard",
    tag = "about",
    responses((status = 200, description = "The card", body = Object), Refused)
)]
pub(crate) async fn card(State(app): State<App>, caller: Caller) -> Response {
    let url = app.base_url(&caller);
    let has_tokens = app.settings.access.tokens.is_some();
    let runtime = app.runtime.clone();
    let card = offload::blocking(move || {
        let mut names: Vec<String> = runtime.finder().offered().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        // A module that does not load is in the list of modules, with its error.
        let modules: Vec<Arc<Module>> =
            names.iter().filter_map(|name| runtime.load(ModuleRef::Name(name)).ok()).collect();
        let modules: Vec<&Module> = modules.iter().map(AsRef::as_ref).collect();
        agent_card(&modules, &CardServer { url: url.trim_end_matches('/'), has_tokens })
    });
    answer::json(StatusCode::OK, &Value::from(card.await))
}

// Modules as JSON, without their path on disk.

/// An entry of the list of modules.
struct Entry<'a> {
    listed: &'a ListedModule,
    /// Why its files cannot be loaded, if they cannot.
    broken: Option<&'a BrokenModule>,
}

/// Written by hand: a module that does not load has an error, and describes the version that is in use.
impl ToJson for Entry<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let served = self.broken.and_then(|broken| broken.served.as_ref()).map(|module| &*module.manifest);
        let manifest = served.or(self.listed.manifest.as_ref().ok());
        w.object(|w| {
            w.field("name", &self.listed.name);
            if let Some(manifest) = manifest {
                facts(w, manifest);
            }
            if let Some(broken) = self.broken {
                w.field("error", broken.error.code.as_str());
                w.field("outdated", &broken.served.is_some());
            }
        });
    }
}

/// A module: its description and its contract.
struct ModuleDescription<'a>(&'a Module);

/// Written by hand: its members come from the manifest and the contract.
impl ToJson for ModuleDescription<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Module { manifest, contract, .. } = self.0;
        w.object(|w| {
            w.field("name", &manifest.name);
            facts(w, manifest);
            w.field("excludes", &manifest.excludes);
            w.field("chunk_type", manifest.response.chunk_type.as_str());
            w.field("input_modalities", &manifest.modalities.input);
            w.field("output_modalities", &manifest.modalities.output);
            w.optional("input", &contract.input_schema().map(Value::from));
            w.optional("data", &contract.data_schema().map(Value::from));
            w.optional("meta", &contract.meta_schema().map(Value::from));
            w.optional("error", &contract.error_schema().map(Value::from));
        });
    }
}

fn facts(w: &mut Writer<'_>, manifest: &Manifest) {
    w.field("version", &manifest.version);
    w.field("format", manifest.format.as_str());
    w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
    w.field("responsibility", &manifest.responsibility);
    w.field("response_mode", manifest.response.mode.as_str());
}

/// Lists the modules. One whose files cannot be loaded has an error.
#[utoipa::path(
    get,
    path = "/v1/modules",
    operation_id = "listModules",
    tag = "modules",
    responses(
        (status = 200, description = "The modules, sorted by name", body = ref("#/components/schemas/ModuleList")),
        Refused,
    )
)]
pub(crate) async fn list_modules(State(app): State<App>) -> Response {
    let runtime = app.runtime.clone();
    let (listed, broken) =
        offload::blocking(move || (runtime.finder().list_offered(), broken_modules(&runtime))).await;
    let entries: Vec<Entry<'_>> = listed
        .iter()
        .map(|listed| Entry { listed, broken: broken.iter().find(|one| one.name == listed.name) })
        .collect();
    answer::json(StatusCode::OK, &List(&entries))
}

/// Describes a module with its schemas.
#[utoipa::path(
    get,
    path = "/v1/modules/{name}",
    operation_id = "showModule",
    tag = "modules",
    params(("name" = String, Path, description = "The name of the module")),
    responses(
        (status = 200, description = "The module", body = ref("#/components/schemas/Module")),
        RunFailed,
    )
)]
pub(crate) async fn show_module(State(app): State<App>, Name(name): Name) -> Result<Response, ApiError> {
    let module = app.load(&name).await?;
    Ok(answer::json(StatusCode::OK, &ModuleDescription(&module)))
}

struct List<'a>(&'a [Entry<'a>]);

/// Written by hand, as its entries are.
impl ToJson for List<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("modules", &Array(self.0));
        });
    }
}

// The same for older clients.

/// Lists the modules, as `GET /v1/modules` does.
#[utoipa::path(
    get,
    path = "/modules",
    operation_id = "listModulesOlder",
    tag = "older clients",
    responses(
        (status = 200, description = "The modules", body = ref("#/components/schemas/ModuleList")),
        Refused,
    )
)]
pub(crate) async fn list_modules_older(app: State<App>) -> Response {
    list_modules(app).await
}

/// Describes a module, as `GET /v1/modules/{name}` does.
#[utoipa::path(
    get,
    path = "/modules/{name}",
    operation_id = "showModuleOlder",
    tag = "older clients",
    params(("name" = String, Path, description = "The name of the module")),
    responses(
        (status = 200, description = "The module", body = ref("#/components/schemas/Module")),
        RunFailed,
    )
)]
pub(crate) async fn show_module_older(app: State<App>, name: Name) -> Result<Response, ApiError> {
    show_module(app, name).await
}
