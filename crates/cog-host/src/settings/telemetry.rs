//! Telemetry: the spans and metrics of all runs, to a collector of OpenTelemetry (docs/telemetry.md).

use std::sync::{Arc, Mutex, PoisonError};

use cog_run::events::RunEvents;
use cog_spec::Secret;
use cog_telemetry::{DroppedTelemetry, Telemetry, TelemetrySettings};

use super::{Environment, Redactor};

/// Where spans and metrics are exported.
#[derive(Debug, Default)]
pub(crate) struct TelemetryExport {
    settings: Option<TelemetrySettings>,
    notes: Vec<String>,
    /// The export of this process, once there is a runtime.
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    process: u32,
    telemetry: Telemetry,
}

impl TelemetryExport {
    pub(crate) fn read(environment: &Environment) -> Self {
        let found = TelemetrySettings::read(|name| environment.get(name));
        Self { settings: found.settings, notes: found.notes, current: Mutex::new(None) }
    }

    /// Returns the listener for a runtime; none if nothing is exported. A forked process gets its own: the thread that exports
    /// stays in its parent.
    pub(crate) fn events(&self, redactor: &Redactor) -> Option<Arc<dyn RunEvents>> {
        let settings = self.settings.as_ref()?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some(inherited) = current.take_if(|current| current.process != process) {
            // Its thread is not in this process, so that nothing could be awaited.
            std::mem::forget(inherited);
        }
        let current = current.get_or_insert_with(|| {
            let redactor = redactor.clone();
            let telemetry = Telemetry::new(settings.clone(), Arc::new(move |text| redactor.redact(text)));
            Current { process, telemetry }
        });
        Some(current.telemetry.events())
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn target(&self) -> Option<String> {
        let settings = self.settings.as_ref()?;
        let endpoints = [("spans", &settings.traces), ("metrics", &settings.metrics)];
        let shown = endpoints.iter().filter_map(|(kind, to)| Some(format!("{kind} to {}", to.as_ref()?.url)));
        Some(shown.collect::<Vec<_>>().join(", "))
    }

    /// Returns the values of headers, which may be keys.
    pub(crate) fn keys(&self) -> Vec<Secret> {
        let settings = self.settings.iter();
        let endpoints = settings.flat_map(|settings| settings.traces.iter().chain(&settings.metrics));
        endpoints.flat_map(|endpoint| &endpoint.headers).map(|(_, value)| value.clone()).collect()
    }

    /// Exports what is left. Returns a note if something was lost.
    pub(crate) fn close(&self) -> Option<String> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let current = current.as_ref().filter(|current| current.process == std::process::id())?;
        let DroppedTelemetry { spans, exports, reason } = current.telemetry.close(Telemetry::CLOSE_TIMEOUT);
        if spans == 0 && exports == 0 {
            return None;
        }
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Some(format!("telemetry: {spans} spans and {exports} exports of metrics were not delivered{reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Flags, Settings};

    #[test]
    fn telemetry_is_off_without_its_variables() {
        let settings = Settings::read(Flags::default(), Environment::default()).unwrap();
        assert!(settings.telemetry.events(settings.redactor()).is_none());
        assert_eq!((settings.telemetry_target(), settings.close_telemetry()), (None, None));
        let parent =
            Environment::from([("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]);
        assert_eq!(Settings::read(Flags::default(), parent).unwrap().parent_span(), None);
    }

    #[test]
    fn headers_are_masked() {
        let environment = Environment::from([
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-secret-123"),
        ]);
        let settings = Settings::read(Flags::default(), environment).unwrap();
        assert!(!settings.redactor().redact("it is Bearer canary-secret-123").contains("canary"));
        assert!(!format!("{:?}", settings.telemetry).contains("canary"));
        let target = "spans to http://127.0.0.1:9/v1/traces, metrics to http://127.0.0.1:9/v1/metrics";
        assert_eq!(settings.telemetry_target().as_deref(), Some(target));
    }
}
