#![doc = include_str!("../README.md")]

mod host;
mod logged;
pub mod mcp;
pub mod providers;
pub mod run_log;
pub mod settings;
mod trust;
mod validate;

pub use host::{EnvRuntime, Host, HostError, Hosted, Use, runtime_from_env};
pub use logged::CONTENTS;
pub use mcp::NamedModule;
pub use trust::{TrustError, TrustStore};
pub use validate::validate;
