//! The routes of the workbench (docs/workbench.md). They exist only if the server was started for it: they show prompts and the log
//! of runs, run tests at the operator's expense, and may write files of modules.

mod body;
mod document;

use std::sync::{Arc, PoisonError};

use axum::{
    extract::{FromRequestParts, RawPathParams, Request},
    http::{StatusCode, Uri, request::Parts},
    response::Response,
};
use bytes::Bytes;
use cog_json::Value;
use cog_module::{
    LoadError, Module, Origin,
    files::FileError,
    golden::{self, import::is_case_name},
    load,
    parts::{ModulePart, WritePartError, parts, with_parts, write_part},
};
use cog_run::{RunInput, RunOptions, feedback::Feedback};
use cog_schema::nearest;
use cog_spec::{Code, ErrorBody};
use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    body::{Edit, Rendering, RunFilter, Subject, Tests, read_case},
    document::{About, Added, Finding, Findings, Hash, Lines, ModuleFiles, Shown, described_cases},
};
use crate::{
    NewCase, TestRequest, answer,
    error::ApiError,
    offload,
    openapi::{Refused, RunFailed},
    request,
    state::{App, Caller, Name, for_client},
    transport::Wire,
    workbench::Bench,
};

/// The routes with the descriptions of their handlers.
pub(crate) fn described() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(about))
        .routes(routes!(module))
        .routes(routes!(check))
        .routes(routes!(save))
        .routes(routes!(render))
        .routes(routes!(test))
        .routes(routes!(add_case))
        .routes(routes!(runs))
        .routes(routes!(run))
        .routes(routes!(label))
        .routes(routes!(insights))
        .routes(routes!(trust))
}

/// Returns what the workbench of this server can do, and the providers that a run can name.
#[utoipa::path(
    get,
    path = "/v1/workbench",
    operation_id = "workbench",
    tag = "workbench",
    responses((status = 200, description = "What it can do", body = Object), Refused)
)]
pub(crate) async fn about(desk: Desk) -> Response {
    let Bench { workbench, can_edit, .. } = desk.bench;
    let about = offload::blocking(move || About {
        can_edit,
        has_logs: workbench.has_logs(),
        providers: workbench.providers(),
    });
    answer::json(StatusCode::OK, &about.await)
}

/// Returns the files of a module as they are on disk, and its golden tests, also if the files cannot be loaded.
#[utoipa::path(
    get,
    path = "/v1/workbench/modules/{name}",
    operation_id = "workbenchModule",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "The files and the golden tests", body = Object), Refused)
)]
pub(crate) async fn module(desk: Desk, Name(name): Name) -> Result<Response, ApiError> {
    let origin = desk.origin(&name).await?;
    let is_editable = desk.bench.can_edit && matches!(origin, Origin::Directory(_));
    let files = offload::blocking(move || {
        // A module that does not load has no cases; its files are shown nevertheless, so that they can be corrected.
        let module = load(&origin).ok();
        let cases = module.as_ref().map(described_cases).unwrap_or_default();
        ModuleFiles { name, files: parts(&origin), cases, is_editable }
    });
    Ok(answer::json(StatusCode::OK, &files.await))
}

/// Checks the files of a module with these texts, or an input.
#[utoipa::path(
    post,
    path = "/v1/workbench/modules/{name}/check",
    operation_id = "workbenchCheck",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    request_body(content = Object),
    responses((status = 200, description = "What is wrong", body = Object), Refused)
)]
pub(crate) async fn check(desk: Desk, Name(name): Name, request: Request) -> Result<Response, ApiError> {
    let subject = desk.read(request, |body| Subject::read(&body)).await?;
    let origin = desk.origin(&name).await?;
    let workbench = Arc::clone(&desk.bench.workbench);
    let checked = offload::blocking(move || -> Result<Vec<Finding>, ApiError> {
        match subject {
            Subject::Files(texts) => {
                let edited = with_parts(&origin, texts).map_err(unwritten)?;
                let found = workbench.check(&edited).into_iter();
                Ok(found.map(|found| Finding::of_file(found, &origin)).collect())
            }
            Subject::Input(input) => {
                let module = load(&origin).map_err(|error| invalid(&error))?;
                let violations = module.contract.check_input(input.node()).into_iter();
                Ok(violations.map(Finding::of_input).collect())
            }
        }
    });
    Ok(answer::json(StatusCode::OK, &Findings(&checked.await?)))
}

/// Replaces a file of a module, if it still has the text that was edited.
#[utoipa::path(
    put,
    path = "/v1/workbench/modules/{name}/files/{part}",
    operation_id = "workbenchSave",
    tag = "workbench",
    params(
        ("name" = String, Path, description = "The name of the module"),
        ("part" = String, Path, description = "The file", pattern = "^(manifest|prompt|schema)$"),
    ),
    request_body(content = Object),
    responses(
        (status = 200, description = "The file is written; its new hash", body = Object),
        (status = 409, description = "E1006: the file was changed on disk; `details.hash` is that of its text", body = ref("#/components/schemas/Envelope")),
        (status = 413, description = "E1005: the text is too large", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn save(desk: Desk, file: FileName, request: Request) -> Result<Response, ApiError> {
    desk.check_edit()?;
    let Edit { text, hash } = desk.read(request, |body| Edit::read(&body)).await?;
    let part = file.part()?;
    let origin = desk.origin(&file.module).await?;
    let runtime = desk.app.runtime.clone();
    let writing = Arc::clone(&desk.bench.writing);
    let written = offload::blocking(move || {
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = write_part(&origin, part, &text, &hash);
        // The next run uses the new text, and does not wait until it has stayed the same for a while.
        runtime.reload(&file.module);
        written.map_err(unwritten)
    });
    Ok(answer::json(StatusCode::OK, &Hash(&written.await?)))
}

/// Returns the messages and the schema that a run would send, without sending them.
#[utoipa::path(
    post,
    path = "/v1/workbench/modules/{name}/render",
    operation_id = "workbenchRender",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    request_body(content = Object),
    responses((status = 200, description = "What would be sent", body = Object), RunFailed)
)]
pub(crate) async fn render(desk: Desk, Name(name): Name, request: Request) -> Result<Response, ApiError> {
    let Rendering { input, model } = desk.read(request, |body| Rendering::read(&body)).await?;
    let module = desk.load(&name).await?;
    let options = RunOptions {
        provider: model.provider,
        model: model.model,
        owner: Some(desk.caller.client.owner()),
        client: desk.caller.rules(&desk.app),
        ..RunOptions::default()
    };
    let runtime = desk.app.runtime.clone();
    let events = Handle::current();
    // The time of the check grows with the input, which must not delay other requests.
    let rendered =
        offload::blocking(move || events.block_on(runtime.render(&module, RunInput::Json(input), options)));
    let rendered = rendered.await?;
    Ok(answer::json(StatusCode::OK, &Shown(&rendered)))
}

/// Runs golden tests. The response has one line for each case, and one for all.
#[utoipa::path(
    post,
    path = "/v1/workbench/modules/{name}/tests",
    operation_id = "workbenchTest",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    request_body(content = Object),
    responses(
        (status = 200, description = "The results, one per line", body = String, content_type = "application/x-ndjson"),
        RunFailed,
    )
)]
pub(crate) async fn test(desk: Desk, Name(name): Name, request: Request) -> Result<Response, ApiError> {
    let Tests { cases, model } = desk.read(request, |body| Tests::read(&body)).await?;
    if desk.caller.rules(&desk.app).models.is_some() && (model.provider.is_some() || model.model.is_some()) {
        return Err(ApiError::new(Code::PermissionDenied, "this client may not choose the model of a test")
            .suggest("Leave out `provider` and `model`."));
    }
    let slot = desk.app.slot(&desk.caller.client)?;
    let module = desk.load(&name).await?;
    check_cases(&module, &cases).await?;
    let request = TestRequest { module, cases, provider: model.provider, model: model.model };
    let lines = desk.bench.workbench.test(request).await?;
    let over = desk.app.guard.drain.over.clone();
    let lines = lines.take_until(async move { over.cancelled().await }).boxed();
    let lines = Lines { lines, keepalive: desk.app.settings.keepalive_interval, _slot: slot };
    Ok(Wire::Ndjson.response_of(lines.into_body()))
}

/// Writes a golden test of an input and its right answer.
#[utoipa::path(
    post,
    path = "/v1/workbench/modules/{name}/cases",
    operation_id = "workbenchAddCase",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    request_body(content = Object),
    responses(
        (status = 200, description = "The test is written; the path of its expected file", body = Object),
        (status = 409, description = "E1006: a test has this name or this input", body = ref("#/components/schemas/Envelope")),
        RunFailed,
    )
)]
pub(crate) async fn add_case(desk: Desk, Name(name): Name, request: Request) -> Result<Response, ApiError> {
    desk.check_edit()?;
    let case = desk.read(request, |body| read_case(&body)).await?;
    let module = desk.load(&name).await?;
    let Bench { workbench, writing, .. } = desk.bench;
    let added = offload::blocking(move || -> Result<String, ApiError> {
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        check_new(&module, &case)?;
        Ok(workbench.add_case(&module, case)?)
    });
    Ok(answer::json(StatusCode::OK, &Added(&added.await?)))
}

/// Lists the newest runs of the log.
#[utoipa::path(
    get,
    path = "/v1/workbench/runs",
    operation_id = "workbenchRuns",
    tag = "workbench",
    params(
        ("module" = Option<String>, Query, description = "Only runs of this module"),
        ("limit" = Option<u32>, Query, description = "The maximum number of runs", maximum = 200),
    ),
    responses((status = 200, description = "The runs, the newest first", body = Object), Refused)
)]
pub(crate) async fn runs(desk: Desk, uri: Uri) -> Result<Response, ApiError> {
    let RunFilter { module, limit } = RunFilter::read(&uri)?;
    let workbench = desk.bench.workbench;
    let runs = offload::blocking(move || workbench.runs(module.as_deref(), limit)).await?;
    Ok(answer::written(StatusCode::OK, format!("{{\"runs\":{runs}}}\n")))
}

/// Returns a run of the log with its input and its answer, if they are stored.
#[utoipa::path(
    get,
    path = "/v1/workbench/runs/{id}",
    operation_id = "workbenchRun",
    tag = "workbench",
    params(("id" = String, Path, description = "The ID of the run")),
    responses((status = 200, description = "The run", body = Object), Refused)
)]
pub(crate) async fn run(desk: Desk, Name(id): Name) -> Result<Response, ApiError> {
    let workbench = desk.bench.workbench;
    let sought = id.clone();
    let found = offload::blocking(move || workbench.run(&sought)).await?;
    found.map(written).ok_or_else(|| no_run(&id))
}

/// Says whether the answer of a run was right.
#[utoipa::path(
    post,
    path = "/v1/workbench/runs/{id}/label",
    operation_id = "workbenchLabel",
    tag = "workbench",
    params(("id" = String, Path, description = "The ID of the run")),
    request_body(content((ref("#/components/schemas/Feedback") = "application/json"))),
    responses(
        (status = 200, description = "The label is stored", body = Object),
        (status = 413, description = "E1005: the corrected answer or the note is too large", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn label(desk: Desk, Name(id): Name, request: Request) -> Result<Response, ApiError> {
    // Each label reads the log, which is more than most requests cost.
    desk.app.guard.feedback.check(&desk.caller.client)?;
    let feedback = desk.read(request, |body| Ok(Feedback::read(request::object(&body)?.node())?)).await?;
    let workbench = desk.bench.workbench;
    let sought = id.clone();
    let stored = offload::blocking(move || workbench.label(&sought, feedback)).await?;
    stored.map(written).ok_or_else(|| no_run(&id))
}

/// Returns what the runs of a module showed that its contract did not foresee.
#[utoipa::path(
    get,
    path = "/v1/workbench/modules/{name}/insights",
    operation_id = "workbenchInsights",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "As `cog insights --format json`", body = Object), RunFailed)
)]
pub(crate) async fn insights(desk: Desk, Name(name): Name) -> Result<Response, ApiError> {
    let module = desk.load(&name).await?;
    let workbench = desk.bench.workbench;
    Ok(written(offload::blocking(move || workbench.insights(&module)).await?))
}

/// Returns what the confidences of a module are worth, if they were measured.
#[utoipa::path(
    get,
    path = "/v1/workbench/modules/{name}/trust",
    operation_id = "workbenchTrust",
    tag = "workbench",
    params(("name" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "The calibration, or null", body = Object), RunFailed)
)]
pub(crate) async fn trust(desk: Desk, Name(name): Name) -> Result<Response, ApiError> {
    let module = desk.load(&name).await?;
    let workbench = desk.bench.workbench;
    Ok(written(offload::blocking(move || workbench.trust(&module)).await?))
}

// What a request of the workbench has.

/// The workbench, and who uses it: no page of another origin, even one that may run modules.
pub(crate) struct Desk {
    app: App,
    bench: Bench,
    caller: Caller,
}

impl FromRequestParts<App> for Desk {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_extensions(&parts.extensions);
        if caller.is_of_other_page {
            let error =
                ApiError::new(Code::PermissionDenied, "pages of other origins cannot use the workbench");
            return Err(error.suggest("Open the page of this server."));
        }
        let bench = app.bench.clone().ok_or_else(|| {
            ApiError::new(Code::InvalidReference, "this server has no workbench")
                .with_status(StatusCode::NOT_FOUND)
        })?;
        Ok(Self { app: app.clone(), bench, caller })
    }
}

impl Desk {
    /// Reads the body of a request.
    async fn read<T: Send + 'static>(
        &self,
        request: Request,
        parse: impl FnOnce(Bytes) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (parts, body) = request.into_parts();
        request::read(&self.app, &self.caller.client, &parts.headers, body, |body, _| parse(body)).await
    }

    /// Returns where a module is that the server offers.
    async fn origin(&self, name: &str) -> Result<Origin, ApiError> {
        let runtime = self.app.runtime.clone();
        let name = name.to_owned();
        let found = offload::blocking(move || {
            let found = runtime.finder().find_offered(&name);
            found.map_err(|error| ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion()))
        });
        Ok(found.await.map_err(for_client)?)
    }

    /// Loads a module from its files as they are now: somebody may have saved one just before.
    async fn load(&self, name: &str) -> Result<Arc<Module>, ApiError> {
        let origin = self.origin(name).await?;
        let runtime = self.app.runtime.clone();
        let loaded = offload::blocking(move || {
            let trust = runtime.finder().trust(&origin);
            load(&origin).map(|module| Arc::new(Module { trust, ..module }))
        });
        loaded.await.map_err(|error| invalid(&error))
    }

    fn check_edit(&self) -> Result<(), ApiError> {
        match self.bench.can_edit {
            true => Ok(()),
            false => {
                Err(ApiError::new(Code::PermissionDenied, "this server does not write files of modules")
                    .suggest("Start it with --edit."))
            }
        }
    }
}

/// The two parameters of the route of a file.
pub(crate) struct FileName {
    module: String,
    part: String,
}

impl<S: Send + Sync> FromRequestParts<S> for FileName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let read = params.ok().and_then(|params| {
            let mut values = params.iter().map(|(_, value)| value.to_owned());
            Some(Self { module: values.next()?, part: values.next()? })
        });
        read.ok_or_else(|| ApiError::new(Code::InvalidReference, "the path is not UTF-8"))
    }
}

impl FileName {
    fn part(&self) -> Result<ModulePart, ApiError> {
        ModulePart::by_name(&self.part).ok_or_else(|| {
            let names: Vec<_> = ModulePart::ALL.iter().map(|part| format!("`{}`", part.as_str())).collect();
            ApiError::new(Code::InvalidReference, format!("a module has no file `{}`", shown(&self.part)))
                .suggest(format!("The files are {}.", names.join(", ")))
                .with_status(StatusCode::NOT_FOUND)
        })
    }
}

// What can go wrong with a module, a run or a case.

fn invalid(error: &LoadError) -> ApiError {
    ApiError::new(error.code(), error.to_string()).suggest("`check` lists what is wrong in its files.")
}

fn no_run(id: &str) -> ApiError {
    ApiError::new(Code::InvalidReference, format!("the log contains no run with the ID `{}`", shown(id)))
        .suggest("`GET /v1/workbench/runs` lists the runs.")
        .with_status(StatusCode::NOT_FOUND)
}

fn unwritten(error: WritePartError) -> ApiError {
    let message = error.to_string();
    match error {
        WritePartError::NoDirectory => ApiError::new(Code::PermissionDenied, message)
            .suggest("Copy the module with `cog new NAME --from MODULE`."),
        WritePartError::Absent(_) => ApiError::new(Code::InvalidReference, message)
            .suggest("`cog migrate` upgrades a module of an older format, which has other files.")
            .with_status(StatusCode::NOT_FOUND),
        WritePartError::Changed { hash } => {
            let details = Value::from(serde_json::json!({ "hash": hash }));
            let error = ErrorBody::new(Code::InvalidReference, message)
                .suggest("Compare the text on disk with yours, and save again.")
                .with_details(details);
            ApiError::from(error).with_status(StatusCode::CONFLICT)
        }
        WritePartError::File(error) => {
            let code = match error {
                FileError::TooLarge { .. } => Code::InputTooLarge,
                FileError::Outside => Code::PermissionDenied,
                FileError::Nul { .. } => Code::InvalidInput,
                _ => Code::InvalidReference,
            };
            ApiError::new(code, message).suggest(error.suggestion())
        }
        _ => ApiError::new(Code::InternalError, message),
    }
}

/// Checks that the module has cases with these names.
async fn check_cases(module: &Arc<Module>, names: &[String]) -> Result<(), ApiError> {
    if names.is_empty() {
        return Ok(());
    }
    let module = Arc::clone(module);
    let cases = offload::blocking(move || golden::discover(&module).cases).await;
    let is_known = |name: &&String| cases.iter().any(|case| case.name == **name);
    let Some(unknown) = names.iter().find(|name| !is_known(name)) else { return Ok(()) };
    let near = nearest(unknown, cases.iter().map(|case| case.name.as_str()));
    let suggestion = match near {
        Some(near) => format!("Did you mean `{near}`?"),
        None => "The description of the module lists its cases.".to_owned(),
    };
    Err(ApiError::new(Code::InvalidReference, format!("the module has no golden test `{}`", shown(unknown)))
        .suggest(suggestion)
        .with_status(StatusCode::NOT_FOUND))
}

/// Checks the name of a new golden test, and that no other one has this name or its input.
fn check_new(module: &Module, case: &NewCase) -> Result<(), ApiError> {
    if !is_case_name(&case.name) {
        return Err(ApiError::new(Code::InvalidInput, "name: is not the name of a golden test")
            .suggest("Use lower-case letters, digits and single hyphens, at most 60."));
    }
    let conflict = |message: String, suggestion: &str| {
        Err(ApiError::new(Code::InvalidReference, message)
            .suggest(suggestion)
            .with_status(StatusCode::CONFLICT))
    };
    let known = golden::discover(module).cases;
    let files = ["input", "expected"].map(|kind| format!("tests/{}.{kind}.json", case.name));
    // A file without its counterpart is no case, and must not be replaced either.
    let has_file = files.iter().any(|file| std::fs::symlink_metadata(module.origin.path_of(file)).is_ok());
    if has_file || known.iter().any(|known| known.name == case.name) {
        return conflict(
            format!("a golden test has the name `{}` already", shown(&case.name)),
            "Use another name.",
        );
    }
    match golden::find_case(&known, case.input.node()) {
        Some(known) => conflict(
            format!("the golden test `{}` has this input already", known.name),
            "Edit its expected file, or remove the test first.",
        ),
        None => Ok(()),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect::<String>().escape_debug().to_string()
}

/// Returns a document that the workbench has written.
fn written(text: String) -> Response {
    answer::written(StatusCode::OK, text + "\n")
}
