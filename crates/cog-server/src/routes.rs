//! The routes of docs/spec/http.md, one file per family.

pub(crate) mod about;
pub(crate) mod execute;
pub(crate) mod extract;
pub(crate) mod legacy;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod media;
pub(crate) mod modules;
pub(crate) mod pages;
pub(crate) mod sessions;
pub(crate) mod socket;
