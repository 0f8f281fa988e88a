#![doc = include_str!("../README.md")]

mod detect;
mod logged;
pub mod mcp;
pub mod providers;
pub mod run_log;
mod runtime;
pub mod settings;
#[cfg_attr(not(feature = "telemetry"), path = "telemetry/absent.rs")]
mod telemetry;
mod trust;
mod validate;

pub use logged::CONTENTS;
pub use runtime::context_store;
pub use trust::{TrustError, TrustStore};
pub use validate::validate;
