//! The routes of docs/spec/http.md, one file per family.

pub(crate) mod about;
pub(crate) mod execute;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod media;
pub(crate) mod pages;
