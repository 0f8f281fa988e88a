//! In place of telemetry where this program is compiled without it.

use std::sync::Arc;

use cog_run::events::RunEvents;
use cog_spec::Secret;

use super::{Environment, Redactor};

/// Exports nothing.
#[derive(Debug, Default)]
pub(crate) struct TelemetryExport(Vec<String>);

impl TelemetryExport {
    pub(crate) fn read(environment: &Environment) -> Self {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let note = environment
            .get(name)
            .map(|_| format!("{name} is ignored: this program is compiled without telemetry"));
        Self(note.into_iter().collect())
    }

    pub(crate) fn events(&self, _: &Redactor) -> Option<Arc<dyn RunEvents>> {
        None
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn target(&self) -> Option<String> {
        None
    }

    pub(crate) fn keys(&self) -> Vec<Secret> {
        Vec::new()
    }

    pub(crate) fn close(&self) -> Option<String> {
        None
    }
}
