#![doc = include_str!("../README.md")]

mod host;
mod logged;
pub mod mcp;
pub mod providers;
pub mod run_log;
pub mod settings;
mod trust;

pub use cog_provider::RecordingFailure;
pub use host::{EnvRuntime, Host, HostError, Hosted, Use, runtime_from_env, validate};
pub use logged::CONTENTS;
pub use mcp::NamedModule;
pub use trust::{TrustError, TrustStore};
