//! `cog export` and `cog import`: a module in the format of another program.

use std::path::{Path, PathBuf};

use cog_host::settings::Environment;
use cog_module::{
    Module, Origin,
    export::{self, CardServer, RegistryEntry, Skill},
    files::{self, FileError},
    import,
};
use cog_spec::{Code, ErrorBody};
use serde_json::Value;

use super::{emit, runtime::default_finder};
use crate::{
    args::{ExportArgs, ExportFormat, ImportArgs},
    error::CliError,
    exit::Exit,
    output::Console,
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
