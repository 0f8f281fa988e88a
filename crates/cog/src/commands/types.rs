//! `cog types`: the types of modules in other languages.

use std::{collections::HashSet, path::Path};

use cog_batch::Columns;
use cog_contract::types::{self, Contents};
use cog_host::settings::Environment;
use cog_json::{ToJson, Writer};
use cog_module::{Finder, Module, files};

use super::{
    emit,
    runtime::{default_finder, targets},
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
    let of_module =
        |module: &Module| format!("# {}\n{}", module.manifest.name, Columns::from_contract(&module.contract));
    modules.iter().map(of_module).collect::<Vec<_>>().join("\n")
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
