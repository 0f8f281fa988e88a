//! The routes of docs/spec/http.md; each family in a file of its own.

pub(crate) mod about;
mod describe;
pub(crate) mod execute;
mod extract;
pub(crate) mod legacy;
pub(crate) mod media;
pub(crate) mod modules;
pub(crate) mod pages;
pub(crate) mod sessions;
pub(crate) mod socket;
