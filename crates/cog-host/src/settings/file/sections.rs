//! The sections of a settings file that have settings of their own.

#[cfg(feature = "mcp")]
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::Size;
use crate::settings::duration::Span;

/// `[budget]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetContent {
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_calls: Option<u64>,
}

/// `[cache]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheContent {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) max_age: Option<Span>,
    pub(crate) max_bytes: Option<Size>,
}

/// `[logs]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogsContent {
    pub(crate) enabled: Option<bool>,
    pub(crate) contents: Option<bool>,
    pub(crate) max_bytes: Option<Size>,
    pub(crate) directory: Option<PathBuf>,
}

/// `[nats]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NatsContent {
    pub(crate) url: Option<String>,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) replicas: Option<usize>,
    pub(crate) ack_wait: Option<Span>,
    pub(crate) max_deliveries: Option<u64>,
    pub(crate) max_age: Option<Span>,
}

/// `[tools]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsContent {
    pub(crate) confirm: Option<Vec<String>>,
    pub(crate) max_rounds: Option<u32>,
    pub(crate) max_calls: Option<u32>,
    pub(crate) max_parallel: Option<usize>,
    pub(crate) call_timeout: Option<Span>,
    pub(crate) max_result_bytes: Option<Size>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) state_dir: Option<PathBuf>,
}

/// `[mcp.NAME]` of a settings file.
#[cfg(feature = "mcp")]
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpContent {
    pub(crate) command: Option<PathBuf>,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) url: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) startup_timeout: Option<Span>,
}
