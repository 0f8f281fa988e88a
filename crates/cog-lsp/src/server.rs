//! The requests and notifications of an editor.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_module::{Finder, Origin};
use tokio::task::JoinSet;
use tower_lsp_server::{Client, jsonrpc::Result, ls_types as lsp};

use crate::{
    complete::Place,
    diagnose, navigate,
    navigate::Field,
    text::Text,
    workspace::{ModuleFile, Workspace},
};

/// Returns what finds the modules that are called from a directory.
pub(crate) type FinderOf = Box<dyn Fn(&Path) -> Finder + Send + Sync>;

/// The server of one editor.
pub(crate) struct LanguageServer {
    client: Client,
    finder: Arc<FinderOf>,
    state: Arc<Mutex<State>>,
    /// The checks that run; they end with the server.
    checks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    workspace: Workspace,
    /// The directories of the workspace; the working directory if the editor names none.
    roots: Vec<PathBuf>,
    /// Whether the editor can run the commands of a code lens.
    has_lenses: bool,
    /// The number of changes of each module, by its directory. A check of an older text is not shown.
    changes: HashMap<PathBuf, u64>,
    /// The files of each module that have diagnostics in the editor.
    shown: HashMap<PathBuf, BTreeSet<PathBuf>>,
}

/// A position, with what the answer to a request reads.
struct Request {
    origin: Origin,
    file: ModuleFile,
    text: Text,
    position: lsp::Position,
    finder: Finder,
}

impl Request {
    fn place(&self) -> Place<'_> {
        Place { origin: &self.origin, file: &self.file, text: &self.text, position: self.position }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Returns the finder of the root that contains a module.
    fn finder(&self, finder: &FinderOf, directory: &Path) -> Finder {
        let root = self
            .roots
            .iter()
            .filter(|root| directory.starts_with(root))
            .max_by_key(|root| root.as_os_str().len());
        finder(root.map_or_else(|| directory.parent().unwrap_or(directory), PathBuf::as_path))
    }
}

impl LanguageServer {
    pub(crate) fn new(client: Client, finder: FinderOf) -> Self {
        Self { client, finder: Arc::new(finder), state: Arc::default(), checks: Mutex::default() }
    }

    /// Checks the module of a file that has changed, on a thread of its own.
    fn check(&self, path: &Path) {
        let mut state = lock(&self.state);
        let Some(ModuleFile { directory, .. }) = state.workspace.module_of(path) else { return };
        let change = state.changes.entry(directory.clone()).or_default();
        *change += 1;
        let check = Check {
            client: self.client.clone(),
            finder: Arc::clone(&self.finder),
            state: Arc::clone(&self.state),
            change: *change,
            changed: path.to_owned(),
            directory,
        };
        let mut checks = lock(&self.checks);
        while checks.try_join_next().is_some() {}
        checks.spawn(check.run());
    }

    fn request(&self, at: &lsp::TextDocumentPositionParams) -> Option<Request> {
        let path = at.text_document.uri.to_file_path()?.into_owned();
        let state = lock(&self.state);
        let file = state.workspace.module_of(&path)?;
        let origin = state.workspace.origin(&file.directory);
        let finder = state.finder(&self.finder, &file.directory);
        let text = state.workspace.text(&path)?;
        Some(Request { origin, file, text, position: at.position, finder })
    }

    fn field(&self, at: &lsp::TextDocumentPositionParams) -> Option<(Field, Request)> {
        let request = self.request(at)?;
        Some((Field::at(&request.place())?, request))
    }

    fn locations<'a>(&self, mentions: impl Iterator<Item = &'a cog_module::Mention>) -> Vec<lsp::Location> {
        let state = lock(&self.state);
        mentions.filter_map(|mention| navigate::location(mention, &state.workspace)).collect()
    }
}

/// The check of a module after one of its files has changed.
struct Check {
    client: Client,
    finder: Arc<FinderOf>,
    state: Arc<Mutex<State>>,
    directory: PathBuf,
    /// The file that has changed.
    changed: PathBuf,
    /// The number of the change.
    change: u64,
}

impl Check {
    async fn run(self) {
        let origin = {
            let state = lock(&self.state);
            // The check of a later change has begun.
            if !self.is_last(&state) {
                return;
            }
            let origin = state.workspace.origin(&self.directory);
            (origin, state.finder(&self.finder, &self.directory))
        };
        let found = tokio::task::spawn_blocking(move || diagnose::diagnose(&origin.0, &origin.1)).await;
        let Ok(found) = found else { return };
        let mut list = Vec::new();
        {
            let mut state = lock(&self.state);
            if !self.is_last(&state) {
                return;
            }
            let files: BTreeSet<PathBuf> = found.keys().cloned().collect();
            // A file without diagnostics is reported too if it had some, or if it has changed.
            let mut reported = state.shown.insert(self.directory.clone(), files.clone()).unwrap_or_default();
            reported.extend(files);
            reported.insert(self.changed);
            for file in &reported {
                let Some(uri) = lsp::Uri::from_file_path(file) else { continue };
                let text = state.workspace.text(file).unwrap_or_default();
                let found = found.get(file).into_iter().flatten();
                list.push((uri, found.map(|found| diagnose::to_lsp(found, &text)).collect()));
            }
        }
        for (uri, diagnostics) in list {
            self.client.publish_diagnostics(uri, diagnostics, None).await;
        }
    }

    fn is_last(&self, state: &State) -> bool {
        state.changes.get(&self.directory) == Some(&self.change)
    }
}

impl tower_lsp_server::LanguageServer for LanguageServer {
    async fn initialize(&self, params: lsp::InitializeParams) -> Result<lsp::InitializeResult> {
        let mut state = lock(&self.state);
        let folders = params.workspace_folders.unwrap_or_default();
        state.roots =
            folders.iter().filter_map(|folder| Some(folder.uri.to_file_path()?.into_owned())).collect();
        let options = params.initialization_options.unwrap_or_default();
        state.has_lenses = options.get("codeLens").and_then(serde_json::Value::as_bool).unwrap_or(false);
        Ok(lsp::InitializeResult {
            capabilities: capabilities(state.has_lenses),
            server_info: Some(lsp::ServerInfo {
                name: "cog".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            ..lsp::InitializeResult::default()
        })
    }

    async fn shutdown(&self) -> Result<()> {
        lock(&self.checks).abort_all();
        Ok(())
    }

    async fn did_open(&self, params: lsp::DidOpenTextDocumentParams) {
        let Some(path) = params.text_document.uri.to_file_path() else { return };
        lock(&self.state).workspace.open(path.to_path_buf(), params.text_document.text);
        self.check(&path);
    }

    async fn did_change(&self, params: lsp::DidChangeTextDocumentParams) {
        let Some(path) = params.text_document.uri.to_file_path() else { return };
        {
            let mut state = lock(&self.state);
            for change in params.content_changes {
                state.workspace.edit(&path, change.range, &change.text);
            }
        }
        self.check(&path);
    }

    async fn did_save(&self, params: lsp::DidSaveTextDocumentParams) {
        if let Some(path) = params.text_document.uri.to_file_path() {
            self.check(&path);
        }
    }

    async fn did_close(&self, params: lsp::DidCloseTextDocumentParams) {
        let Some(path) = params.text_document.uri.to_file_path() else { return };
        lock(&self.state).workspace.close(&path);
        self.check(&path);
    }

    async fn did_change_watched_files(&self, params: lsp::DidChangeWatchedFilesParams) {
        for change in params.changes {
            if let Some(path) = change.uri.to_file_path() {
                self.check(&path);
            }
        }
    }

    async fn did_change_workspace_folders(&self, params: lsp::DidChangeWorkspaceFoldersParams) {
        let mut state = lock(&self.state);
        let paths = |folders: Vec<lsp::WorkspaceFolder>| {
            let paths =
                folders.into_iter().filter_map(|folder| Some(folder.uri.to_file_path()?.into_owned()));
            paths.collect::<Vec<_>>()
        };
        let removed = paths(params.event.removed);
        state.roots.retain(|root| !removed.contains(root));
        state.roots.extend(paths(params.event.added));
    }

    async fn completion(&self, params: lsp::CompletionParams) -> Result<Option<lsp::CompletionResponse>> {
        let request = self.request(&params.text_document_position);
        let items = request.map(|request| request.place().complete(&request.finder));
        Ok(items.map(lsp::CompletionResponse::Array))
    }

    async fn hover(&self, params: lsp::HoverParams) -> Result<Option<lsp::Hover>> {
        let request = self.request(&params.text_document_position_params);
        Ok(request.and_then(|request| navigate::hover(&request.place())))
    }

    async fn goto_definition(
        &self,
        params: lsp::GotoDefinitionParams,
    ) -> Result<Option<lsp::GotoDefinitionResponse>> {
        let found = self.field(&params.text_document_position_params);
        Ok(found.map(|(field, _)| lsp::GotoDefinitionResponse::Array(self.locations(field.definitions()))))
    }

    async fn references(&self, params: lsp::ReferenceParams) -> Result<Option<Vec<lsp::Location>>> {
        let found = self.field(&params.text_document_position);
        let with_definition = params.context.include_declaration;
        Ok(found.map(|(field, _)| self.locations(field.references(with_definition))))
    }

    async fn prepare_rename(
        &self,
        params: lsp::TextDocumentPositionParams,
    ) -> Result<Option<lsp::PrepareRenameResponse>> {
        let range = self.field(&params).and_then(|(field, request)| field.renamed_range(&request.text));
        Ok(range.map(lsp::PrepareRenameResponse::Range))
    }

    async fn rename(&self, params: lsp::RenameParams) -> Result<Option<lsp::WorkspaceEdit>> {
        let Some((field, _)) = self.field(&params.text_document_position) else { return Ok(None) };
        field.rename(&params.new_name, &lock(&self.state).workspace).map(Some)
    }

    async fn code_action(&self, params: lsp::CodeActionParams) -> Result<Option<lsp::CodeActionResponse>> {
        Ok(Some(diagnose::fixes(&params.text_document.uri, &params.context.diagnostics)))
    }

    async fn code_lens(&self, params: lsp::CodeLensParams) -> Result<Option<Vec<lsp::CodeLens>>> {
        let state = lock(&self.state);
        let path = params.text_document.uri.to_file_path();
        let file = path.filter(|_| state.has_lenses).and_then(|path| state.workspace.module_of(&path));
        Ok(file.map(|file| lenses(&file)))
    }
}

/// Returns the commands above a manifest or a prompt, and above a golden test; the editor runs them.
fn lenses(file: &ModuleFile) -> Vec<lsp::CodeLens> {
    let case = file.relative.strip_prefix("tests/").and_then(|name| name.split_once('.'));
    let commands: &[(&str, &str)] = match (file.relative.as_str(), case) {
        ("module.yaml" | "prompt.md" | "MODULE.md", _) => {
            &[("Run", "cog.run"), ("Test", "cog.test"), ("Render", "cog.render")]
        }
        (_, Some((_, "input.json" | "expected.json"))) => &[("Test this case", "cog.test")],
        _ => &[],
    };
    let directory = file.directory.to_string_lossy();
    let case = case.map(|(name, _)| name);
    let lens = |(title, command): &(&str, &str)| {
        let arguments = std::iter::once(&*directory).chain(case).map(serde_json::Value::from).collect();
        let command = lsp::Command::new((*title).to_owned(), (*command).to_owned(), Some(arguments));
        lsp::CodeLens { range: lsp::Range::default(), command: Some(command), data: None }
    };
    commands.iter().map(lens).collect()
}

fn capabilities(has_lenses: bool) -> lsp::ServerCapabilities {
    let letters = ["$", "`", ":", ".", "@", " ", "\""].map(str::to_owned);
    lsp::ServerCapabilities {
        text_document_sync: Some(lsp::TextDocumentSyncCapability::Options(lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::INCREMENTAL),
            save: Some(lsp::TextDocumentSyncSaveOptions::Supported(true)),
            ..lsp::TextDocumentSyncOptions::default()
        })),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some(letters.into()),
            ..lsp::CompletionOptions::default()
        }),
        hover_provider: Some(lsp::HoverProviderCapability::Simple(true)),
        definition_provider: Some(lsp::OneOf::Left(true)),
        references_provider: Some(lsp::OneOf::Left(true)),
        rename_provider: Some(lsp::OneOf::Right(lsp::RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: lsp::WorkDoneProgressOptions::default(),
        })),
        code_action_provider: Some(lsp::CodeActionProviderCapability::Options(lsp::CodeActionOptions {
            code_action_kinds: Some(vec![lsp::CodeActionKind::QUICKFIX]),
            ..lsp::CodeActionOptions::default()
        })),
        code_lens_provider: has_lenses.then_some(lsp::CodeLensOptions { resolve_provider: None }),
        workspace: Some(lsp::WorkspaceServerCapabilities {
            workspace_folders: Some(lsp::WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(lsp::OneOf::Left(true)),
            }),
            ..lsp::WorkspaceServerCapabilities::default()
        }),
        ..lsp::ServerCapabilities::default()
    }
}
