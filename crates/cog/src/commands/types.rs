//! `cog types`: the types of modules in other languages.

mod columns;
mod described;
mod insights;
mod meet;
mod model;
mod names;
mod python;
mod rust;
mod schema;
mod stubs;
mod typescript;
mod words;

use std::{collections::HashSet, path::Path};

use cog_host::settings::Environment;
use cog_module::{Finder, Module, files};

use self::{described::Described, names::Style, words::pascal};
use super::{
    emit,
    targets::{default_finder, targets},
};
use crate::{
    args::{Language, TypesArgs},
    error::CliError,
    exit::Exit,
    output::{Console, ErrorReport},
};

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
        let modules = described(&stubbed(args, &finder, console)?, python::STYLE, true);
        if !args.check {
            files::create_directory(directory).map_err(|source| emit::unwritable(directory, source))?;
        }
        return finish(&directory.join(stubs::FILE), &stubs::file(&modules), args.check, console);
    }
    let modules = load(&finder, args)?;
    let text = text(&modules, args.lang.unwrap_or(Language::Python), !args.types_only);
    match args.output.as_deref().filter(|path| !emit::is_stdout(path)) {
        Some(path) => finish(path, &text, args.check, console),
        None => {
            console.print(&text)?;
            Ok(Exit::Ok)
        }
    }
}

/// Returns the file in a language.
fn text(modules: &[Module], language: Language, with_functions: bool) -> String {
    match language {
        Language::Python => python::file(&described(modules, python::STYLE, true), with_functions),
        Language::Typescript => {
            typescript::file(&described(modules, typescript::STYLE, true), with_functions)
        }
        Language::Rust => rust::file(&described(modules, rust::STYLE, false), with_functions),
        Language::Arrow => columns::text(modules),
        Language::ArrowJson => columns::json(modules),
    }
}

/// Names the types of modules; with prefixes, those of all modules are in one scope.
fn described(modules: &[Module], style: Style, with_prefixes: bool) -> Vec<Described> {
    let mut shared = HashSet::new();
    let describe = |module: &Module| {
        if with_prefixes {
            Described::new(module, style, pascal(&module.manifest.name), &mut shared)
        } else {
            Described::new(module, style, String::new(), &mut HashSet::new())
        }
    };
    modules.iter().map(describe).collect()
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
