//! `cog export` and `cog import`: a module in the format of another program. `cog types`: its types in another language.

mod gepa;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use cog_batch::Columns;
use cog_contract::types::{self, Contents};
use cog_host::settings::Environment;
use cog_json::{ToJson, Writer};
use cog_module::{
    Finder, Module, Origin,
    export::{self, CardServer, RegistryEntry, Skill},
    files::{self, FileError},
    import,
};
use cog_spec::{Code, ErrorBody};
use serde_json::Value;

use super::{
    emit,
    runtime::{default_finder, targets},
};
use crate::{
    args::{ExportArgs, ExportFormat, ImportArgs, Language, TypesArgs},
    error::{CliError, Exit},
    output::{Console, ErrorReport},
};

/// The URL of a server that was started without options.
const SERVER: &str = "http://127.0.0.1:8000";

/// Writes or prints the module in the format.
pub(crate) fn export(
    args: &ExportArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    check_flags(args)?;
    let finder = default_finder(environment)?;
    let module = cog_module::load(&finder.find(&args.module)?)?;
    let url = url(args)?;
    let server = url.as_deref().unwrap_or(SERVER);
    let text = match args.format {
        ExportFormat::Skill => return directory(&export::skill(&module)?, Path::new(""), args, console),
        ExportFormat::ClaudeCode => {
            return directory(&export::claude_code(&module)?, Path::new(".claude/skills"), args, console);
        }
        ExportFormat::AgentCard => {
            if !module.manifest.invocation.agent_invocable {
                return Err(export::ExportError::NotForAgents { name: module.manifest.name.clone() }.into());
            }
            pretty(&export::agent_card(&[&module], &CardServer { url: server, has_tokens: false }))
        }
        ExportFormat::Openapi => cog_server::module_openapi(&module, server),
        ExportFormat::McpServerJson => registry_entry(&module, args, url.as_deref(), console)?,
        ExportFormat::Promptfoo => promptfoo(&module, args, console)?,
        ExportFormat::Gepa => gepa::program(&module, console)?,
    };
    file(&text, args, console)
}

/// Refuses flags that have no effect on the format.
fn check_flags(args: &ExportArgs) -> Result<(), CliError> {
    let is_entry = args.format == ExportFormat::McpServerJson;
    let has_url = is_entry || matches!(args.format, ExportFormat::AgentCard | ExportFormat::Openapi);
    let wrong = [
        ("--url", args.url.is_some() && !has_url),
        ("--namespace", args.namespace.is_some() && !is_entry),
        ("--image", args.image.is_some() && !is_entry),
    ];
    match wrong.into_iter().find(|(_, is_wrong)| *is_wrong) {
        Some((flag, _)) => Err(CliError::Usage {
            message: format!("{flag} has no effect on this format"),
            suggestion: Some("`cog export --help` says which flag belongs to which format.".to_owned()),
        }),
        None => Ok(()),
    }
}

/// Returns the URL of the server without a slash at its end.
fn url(args: &ExportArgs) -> Result<Option<String>, CliError> {
    let Some(url) = &args.url else { return Ok(None) };
    let host = ["http://", "https://"].into_iter().find_map(|scheme| url.strip_prefix(scheme));
    let is_url = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'));
    if !is_url || url.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '{'))
    {
        let error = ErrorBody::new(
            Code::UnsupportedValue,
            format!("`{}` is not the URL of a server", url.escape_debug()),
        );
        return Err(error.suggest("Write `https://HOST`, with a port and a path if there are any.").into());
    }
    Ok(Some(url.trim_end_matches('/').to_owned()))
}

fn registry_entry(
    module: &Module,
    args: &ExportArgs,
    url: Option<&str>,
    console: &Console,
) -> Result<String, CliError> {
    let Some(namespace) = args.namespace.as_deref() else {
        let error = ErrorBody::new(
            Code::MissingRequiredField,
            "an entry of the registry needs the namespace of its publisher",
        );
        return Err(error.suggest("Add `--namespace`, such as `--namespace io.github.your-name`.").into());
    };
    let entry = RegistryEntry { namespace, image: args.image.as_deref(), url };
    let text = pretty(&export::server_json(module, &entry)?);
    if entry.image.is_none() && entry.url.is_none() {
        console.note(
            "clients cannot start this server: name a published image with --image, or a server with --url",
        );
    }
    Ok(text)
}

fn promptfoo(module: &Module, args: &ExportArgs, console: &Console) -> Result<String, CliError> {
    let found = export::promptfoo(module, &target(module, args))?;
    for left_out in &found.left_out {
        console.note(&format!("left out: {left_out}"));
    }
    Ok(found.text)
}

/// Returns the module for `cog run` in the directory of the file: as it was given, or its absolute path if that is another directory.
fn target(module: &Module, args: &ExportArgs) -> String {
    let parent = args.output.as_deref().filter(|path| !emit::is_stdout(path)).and_then(Path::parent);
    let is_here = parent.is_none_or(|parent| parent.as_os_str().is_empty() || parent == Path::new("."));
    match &module.origin {
        Origin::Directory(directory) if !is_here => {
            directory.canonicalize().unwrap_or_else(|_| directory.clone()).display().to_string()
        }
        _ => args.module.clone(),
    }
}

fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

/// Prints text, or writes it to a file that does not exist yet.
fn file(text: &str, args: &ExportArgs, console: &Console) -> Result<Exit, CliError> {
    let Some(path) = args.output.as_deref().filter(|path| !emit::is_stdout(path)) else {
        console.print(text.trim_end_matches('\n'))?;
        return Ok(Exit::Ok);
    };
    if path.is_file() && !args.force {
        return Err(exists(path, "Use --force to replace it, or write another file."));
    }
    emit::file(path, text, console)?;
    Ok(Exit::Ok)
}

/// Writes a skill to a directory of its name, and prints that directory.
fn directory(skill: &Skill, inner: &Path, args: &ExportArgs, console: &Console) -> Result<Exit, CliError> {
    let parent = args.output.clone().unwrap_or_else(|| PathBuf::from("."));
    if emit::is_stdout(&parent) {
        let error =
            ErrorBody::new(Code::UnsupportedValue, "a skill is a directory, which stdout cannot have");
        return Err(error.suggest("Name the directory to write into with --output.").into());
    }
    if !parent.is_dir() {
        return Err(emit::unwritable(
            &parent.join(&skill.name),
            FileError::NoDirectory { directory: parent },
        ));
    }
    let target = parent.join(inner).join(&skill.name);
    let target = target.strip_prefix(".").map_or_else(|_| target.clone(), Path::to_owned);
    let files: Vec<(String, Vec<u8>)> =
        skill.files.iter().map(|file| (file.path.clone(), file.text.as_bytes().to_vec())).collect();
    let written = match target.symlink_metadata() {
        Err(_) => files::write_directory(&target, &files),
        Ok(about) if !args.force => {
            let help = if about.is_dir() && target.join("SKILL.md").is_file() {
                "Use --force to replace the skill with everything in its directory, or write it into another directory."
            } else {
                "Write the skill into another directory with --output."
            };
            return Err(exists(&target, help));
        }
        // `--force` deletes the directory with everything in it, so it must be one that an export wrote.
        Ok(about) if about.is_dir() && target.join("SKILL.md").is_file() => {
            files::replace_directory(&target, &files)
        }
        Ok(_) => {
            return Err(exists(
                &target,
                "It is not a skill, so --force does not replace it: write into another directory.",
            ));
        }
    };
    written.map_err(|source| emit::unwritable(&target, source))?;
    console.print(&target.display().to_string())?;
    Ok(Exit::Ok)
}

fn exists(path: &Path, help: &str) -> CliError {
    ErrorBody::new(Code::PermissionDenied, format!("{} already exists", path.display())).suggest(help).into()
}

/// Writes the module, prints its directory, and lists what to review.
pub(crate) fn import(
    args: &ImportArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let found_by_name = finder.roots().first().filter(|root| root.is_dir());
    let parent = args.output.as_deref().or(found_by_name.map(PathBuf::as_path)).unwrap_or(Path::new("."));
    let draft = import::skill(&args.skill)?;
    let directory = draft.write(parent)?;
    let shown = directory.strip_prefix(".").unwrap_or(&directory).display().to_string();
    console.print(&shown)?;
    for note in &draft.notes {
        console.note(note);
    }
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    console.note(&format!("next: review {path}, then `cog validate {path}`"));
    Ok(Exit::Ok)
}

/// The maximum size of a file that is compared.
const MAX_FILE: u64 = 64 << 20;

/// Prints or writes the types of modules.
pub(crate) fn types(args: &TypesArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    if args.check && args.output.is_none() && args.stubs.is_none() {
        return Err(CliError::Usage {
            message: "--check needs a file".to_owned(),
            suggestion: Some("Name it with --output, or the directory of stubs with --stubs.".to_owned()),
        });
    }
    let finder = default_finder(environment)?;
    if let Some(directory) = &args.stubs {
        let modules = stubbed(args, &finder, console)?;
        let stub = types::python_stub(&modules.iter().collect::<Vec<_>>());
        if !args.check {
            files::create_directory(directory).map_err(|source| emit::unwritable(directory, source))?;
        }
        return finish(&directory.join(types::PYTHON_STUB), &stub, args.check, console);
    }
    let modules = load(&finder, args)?;
    let contents = if args.types_only { Contents::Types } else { Contents::TypesAndFunctions };
    let text = printed(&modules, args.lang.unwrap_or(Language::Python), contents);
    match args.output.as_deref().filter(|path| !emit::is_stdout(path)) {
        Some(path) => finish(path, &text, args.check, console),
        None => {
            console.print(&text)?;
            Ok(Exit::Ok)
        }
    }
}

/// Returns the file in a language.
fn printed(modules: &[Module], language: Language, contents: Contents) -> String {
    let all: Vec<&Module> = modules.iter().collect();
    match language {
        Language::Python => types::python(&all, contents),
        Language::Go => types::go(&all, contents),
        Language::Typescript => types::typescript(&all, contents),
        Language::Rust => types::rust(&all, contents),
        Language::Arrow => columns(modules),
        Language::ArrowJson => columns_as_json(modules),
    }
}

fn load(finder: &Finder, args: &TypesArgs) -> Result<Vec<Module>, CliError> {
    let mut seen = HashSet::new();
    let mut modules = Vec::new();
    for (_, origin) in targets(finder, &args.modules, args.all)? {
        let module = cog_module::load(&origin)?;
        if seen.insert(module.manifest.name.clone()) {
            modules.push(module);
        }
    }
    Ok(modules)
}

/// Returns the modules of a stub: those that are named, otherwise all that load.
fn stubbed(args: &TypesArgs, finder: &Finder, console: &Console) -> Result<Vec<Module>, CliError> {
    if args.all || !args.modules.is_empty() {
        return load(finder, args);
    }
    let mut origins = finder.origins();
    origins.sort_by(|a, b| a.0.cmp(&b.0));
    let mut modules = Vec::new();
    for (name, origin) in origins {
        match cog_module::load(&origin) {
            Ok(module) => modules.push(module),
            Err(error) => console.note(&format!("the module {name} is left out: {error}")),
        }
    }
    Ok(modules)
}

/// Writes a file, or compares it.
fn finish(path: &Path, text: &str, check: bool, console: &Console) -> Result<Exit, CliError> {
    if !check {
        emit::file(path, text, console)?;
        return Ok(Exit::Ok);
    }
    if files::read_text(path, MAX_FILE).is_ok_and(|found| found == text) {
        return Ok(Exit::Ok);
    }
    console.error(&ErrorReport {
        code: None,
        message: "the types are out of date",
        location: Some(&path.display().to_string()),
        help: Some("Run the command without --check, and commit the file."),
    });
    Ok(Exit::Failed)
}

/// Returns the columns that results have in Parquet and Arrow, below the name of their module if there are several.
fn columns(modules: &[Module]) -> String {
    if let [only] = modules {
        return Columns::from_contract(&only.contract).to_string();
    }
    let tables = modules
        .iter()
        .map(|module| format!("# {}\n{}", module.manifest.name, Columns::from_contract(&module.contract)));
    tables.collect::<Vec<_>>().join("\n")
}

/// Returns the columns as JSON: an object with a member for each module.
fn columns_as_json(modules: &[Module]) -> String {
    format!("{}\n", ColumnsOfModules(modules).to_json_pretty())
}

struct ColumnsOfModules<'a>(&'a [Module]);

impl ToJson for ColumnsOfModules<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for module in self.0 {
                w.field(&module.manifest.name, &Columns::from_contract(&module.contract));
            }
        });
    }
}
