//! The standard variables of OpenTelemetry.

mod endpoint;
mod resource;

use std::time::Duration;

pub use self::endpoint::Endpoint;
use self::resource::resource;
use crate::Sampler;

/// What is exported, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// Where spans are sent; none if they are off.
    pub traces: Option<Endpoint>,
    /// Where metrics are sent; none if they are off.
    pub metrics: Option<Endpoint>,
    /// What describes the program: `service.name` and others.
    pub resource: Vec<(String, String)>,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// Whether spans contain inputs, messages and answers.
    pub records_content: bool,
    /// The maximum length of a text in content, in bytes.
    pub value_limit: usize,
    /// The maximum number of spans that wait.
    pub max_queue: usize,
    /// The number of spans in one export.
    pub batch: usize,
    /// The time between two exports of spans.
    pub delay: Duration,
    /// The time between two exports of metrics.
    pub interval: Duration,
    /// Whether metrics are counted from the start of the program, or from the last export.
    pub temporality: Temporality,
}

/// From when metrics are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporality {
    /// From the start of the program.
    #[default]
    Cumulative,
    /// From the last export.
    Delta,
}

/// What the variables say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The settings; none if nothing is exported.
    pub settings: Option<TelemetrySettings>,
    /// Notes about values that are not supported, for the operator.
    pub notes: Vec<String>,
}

/// The default length of a text in content, in bytes.
const VALUE_LIMIT: usize = 64 << 10;
/// Variables of settings that this exporter does not have.
const UNSUPPORTED: [&str; 3] = ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"];

impl TelemetrySettings {
    /// Reads the variables. Nothing is exported unless one of them names an endpoint or the exporter `otlp`.
    ///
    /// As the specification requires, an invalid value is noted and the default applies.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Found {
        let mut reader = Reader { variable: &variable, notes: Vec::new() };
        let settings = reader.settings();
        Found { settings, notes: reader.notes }
    }
}

/// Reads variables, and notes what is invalid.
struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<TelemetrySettings> {
        if self.get("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return None;
        }
        let (traces, metrics) = (self.endpoint("TRACES", "traces"), self.endpoint("METRICS", "metrics"));
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        self.note_unsupported();
        let limit = self.number("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", VALUE_LIMIT as u64);
        let limit = self.number("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", limit);
        let max_queue = self.positive("OTEL_BSP_MAX_QUEUE_SIZE", 2_048);
        Some(TelemetrySettings {
            traces,
            metrics,
            resource: resource(self),
            sampler: self.sampler(),
            records_content: self.records_content(),
            value_limit: usize::try_from(limit).unwrap_or(usize::MAX),
            max_queue,
            batch: self.positive("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).min(max_queue),
            delay: self.milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            interval: self.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
            temporality: self.temporality(),
        })
    }

    fn get(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn note(&mut self, note: String) {
        self.notes.push(format!("telemetry: {note}"));
    }

    fn number(&mut self, name: &str, default: u64) -> u64 {
        let Some(text) = self.get(name) else { return default };
        text.parse().unwrap_or_else(|_| {
            self.note(format!("{name}: found `{text}`; it is a number, and {default} applies"));
            default
        })
    }

    fn positive(&mut self, name: &str, default: u64) -> usize {
        let number = self.number(name, default);
        usize::try_from(if number == 0 { default } else { number }).unwrap_or(usize::MAX)
    }

    fn milliseconds(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.number(name, default).max(1))
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.get("OTEL_TRACES_SAMPLER") else { return Sampler::default() };
        let argument = self.get("OTEL_TRACES_SAMPLER_ARG");
        Sampler::read(&name, argument.as_deref()).unwrap_or_else(|| {
            let argument = argument.map(|text| format!(" with `{text}`")).unwrap_or_default();
            self.note(format!(
                "OTEL_TRACES_SAMPLER: `{name}`{argument} is not supported; all traces are recorded"
            ));
            Sampler::default()
        })
    }

    /// Reads whether content is recorded: `true`, or a form that puts it into spans.
    fn records_content(&mut self) -> bool {
        const NAME: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
        let Some(text) = self.get(NAME) else { return false };
        match text.to_ascii_lowercase().as_str() {
            "true" | "span_only" | "span_and_event" => true,
            "false" | "no_content" => false,
            _ => {
                self.note(format!(
                    "{NAME}: `{text}` is not supported, and no content is recorded; use span_only"
                ));
                false
            }
        }
    }

    fn temporality(&mut self) -> Temporality {
        const NAME: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
        let Some(text) = self.get(NAME) else { return Temporality::default() };
        match text.to_ascii_lowercase().as_str() {
            "delta" | "lowmemory" => Temporality::Delta,
            "cumulative" => Temporality::Cumulative,
            _ => {
                self.note(format!("{NAME}: found `{text}`; cumulative applies"));
                Temporality::default()
            }
        }
    }

    fn note_unsupported(&mut self) {
        for kind in ["", "TRACES_", "METRICS_"] {
            for suffix in UNSUPPORTED {
                let name = format!("OTEL_EXPORTER_OTLP_{kind}{suffix}");
                if self.get(&name).is_some() {
                    self.note(format!("{name} is not supported; SSL_CERT_FILE adds certificates"));
                }
            }
            let name = format!("OTEL_EXPORTER_OTLP_{kind}COMPRESSION");
            if self.get(&name).is_some_and(|text| text != "none") {
                self.note(format!("{name} is not supported; nothing is compressed"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
