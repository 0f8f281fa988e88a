//! Modules: find, load, diagnose, scaffold, migrate, test.
//!
//! A module is a directory with a manifest, a prompt and a contract. It has one of five formats (v0, v1, v2.1, v2.2,
//! v2.5); [`load`] reads each into the same [`Module`], with every default resolved, the contract compiled and the
//! prompt parsed. Each error is a [`Diagnostic`] with rule, file, line, column and suggestion, and all are reported.
//!
//! * [`Finder`] finds a module; [`BuiltinModule`]s ship, [`Module::from_parts`] and [`ModuleFiles`] embed others;
//! * [`validate`] checks all files, [`golden`] tests them; [`scaffold`] creates a module, [`migrate`] upgrades an old
//!   one; [`forms`] has the form that was measured to be best for each model;
//! * [`export`] writes a module in the formats of other programs, and [`import`] drafts one from a skill.
//!
//! ```
//! use cog_module::{Finder, golden, load};
//!
//! let module = load(&Finder::new(".", Vec::new(), None).find("code-reviewer")?)?;
//! assert!(!golden::discover(&module).cases.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calibration;
mod diagnostic;
mod directory;
mod embedded;
pub mod export;
pub mod files;
mod find;
pub mod forms;
mod front_matter;
pub mod golden;
pub mod import;
mod layout;
mod lint;
mod load;
mod locate;
mod manifest;
mod mentions;
pub mod migrate;
mod module;
mod name;
pub mod parts;
mod prompt;
pub mod scaffold;
mod schema;
mod source;
#[cfg(test)]
mod testing;
mod text_location;
mod trust;
mod validate;
mod yaml;

pub use diagnostic::{Diagnostic, Rule, Severity};
pub use embedded::{BuiltinModule, ModuleFiles};
pub use find::{FindError, Finder, ListedModule, TrustedDirectories, TrustedDirectory};
pub use load::{load, load_manifest};
pub use locate::Locator;
pub use mentions::{FieldPath, Mention, field_paths, mentions};
pub use module::{LoadError, Module};
pub use name::is_module_name;
pub use prompt::{Call, CallError, CallOptions, Prompt, PromptPart};
pub use trust::{Choice, Shadowing, Trust};
pub use validate::{Level, Report, validate};
pub use {
    directory::{EditedDirectory, Origin},
    source::Location,
};
