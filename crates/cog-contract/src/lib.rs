//! What the contracts of modules are to other programs.
//!
//! [`types`] prints the input, data, meta and error of modules as types of Python, Rust and TypeScript, with functions that run
//! the modules. [`diff`](mod@diff) compares two versions of a module. Everything here is a pure function of loaded modules.

pub mod diff;
pub mod types;
