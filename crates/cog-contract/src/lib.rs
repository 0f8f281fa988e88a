//! What the contracts of modules are to other programs.
//!
//! [`types`] prints the input, data, meta and error of modules as types of Go, Python, Rust and TypeScript, with functions that
//! run the modules. [`diff`](mod@diff) compares two versions of a module, [`insights`] counts what its runs showed, and
//! [`optimize`] decides which prompt is better. Nothing here reads files.

pub mod diff;
pub mod insights;
pub mod optimize;
pub mod types;
