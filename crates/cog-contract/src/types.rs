//! The types of modules in other languages.
//!
//! A schema is read into types that contain every valid value, and as few others as the languages allow. `not`, `if`, patterns and
//! limits have no type, so the types are wider there. Where an answer must be exact, the contract decides, not the type.
//!
//! ```
//! use cog_contract::types::{self, Contents};
//! use cog_module::{Finder, load};
//!
//! let module = load(&Finder::new(".", Vec::new(), None).find("code-reviewer")?)?;
//! let code = types::python(&[&module], Contents::TypesAndFunctions);
//! assert!(code.contains("class CodeReviewerInput(TypedDict)"));
//! assert!(code.contains("def code_reviewer("));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod go;
mod graph;
mod model;
mod names;
mod python;
mod rust;
mod schema;
mod typescript;

use std::collections::HashSet;

use cog_module::Module;

use self::names::{NamedModule, Style, pascal};

/// The file name of [`python_stub`], which the package `cognitive` imports for type checkers.
pub const PYTHON_STUB: &str = "cognitive_modules.pyi";

/// What a printed file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// The types of the input, data, meta and error of each module.
    Types,
    /// Also a function for each module that runs it.
    TypesAndFunctions,
}

/// Returns a Go file of the package `modules`. Its methods call a `cog serve` with net/http.
pub fn go(modules: &[&Module], contents: Contents) -> String {
    go::file(&in_one_scope(modules, go::STYLE), contents)
}

/// Returns a Python file with TypedDicts, for mypy and pyright. Its functions use the package `cognitive`.
pub fn python(modules: &[&Module], contents: Contents) -> String {
    python::file(&in_one_scope(modules, python::STYLE), contents)
}

/// Returns the stub of the Python package `cognitive.modules`, with a function for each module.
pub fn python_stub(modules: &[&Module]) -> String {
    python::stub(&in_one_scope(modules, python::STYLE))
}

/// Returns a Rust file with a `mod` for each module, whose types implement serde's traits. Its functions use the crate `cog-run`.
pub fn rust(modules: &[&Module], contents: Contents) -> String {
    let mut named = Vec::with_capacity(modules.len());
    for module in modules {
        // Each has a scope of its own, so that the names need no prefixes.
        named.push(NamedModule::new(module, rust::STYLE, String::new(), &mut HashSet::new()));
    }
    rust::file(&named, contents)
}

/// Returns a TypeScript file with interfaces. Its functions call a `cog serve` with `fetch`.
pub fn typescript(modules: &[&Module], contents: Contents) -> String {
    typescript::file(&in_one_scope(modules, typescript::STYLE), contents)
}

/// Names the types of modules that one file contains; the name of its module begins each.
fn in_one_scope(modules: &[&Module], style: Style) -> Vec<NamedModule> {
    let mut taken = HashSet::new();
    let mut named = Vec::with_capacity(modules.len());
    for module in modules {
        named.push(NamedModule::new(module, style, pascal(&module.manifest.name), &mut taken));
    }
    named
}
