//! The standard variables of OpenTelemetry.

use std::time::Duration;

use cog_run::events::SpanContext;
use cog_spec::Secret;
use percent_encoding::percent_decode_str;
use url::Url;

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
    /// The maximum length of a string in content, in bytes.
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

/// The default maximum length of a string in content, in bytes.
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
        let traces = self.endpoint("TRACES", "traces");
        let metrics = self.endpoint("METRICS", "metrics");
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

// Where a kind of data is sent.

/// Where the collectors of this machine listen.
const DEFAULT: &str = "http://localhost:4318";

/// Where a kind of data is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The complete URL.
    pub url: String,
    /// The headers of each request. Their values may be keys.
    pub headers: Vec<(String, Secret)>,
    /// The maximum time for a request.
    pub timeout: Duration,
}

impl Endpoint {
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let own = self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        own.chain([("content-type".to_owned(), "application/x-protobuf".to_owned())]).collect()
    }
}

impl Reader<'_> {
    /// Reads the endpoint of spans (`TRACES`) or metrics (`METRICS`). None if they are off.
    fn endpoint(&mut self, kind: &str, path: &str) -> Option<Endpoint> {
        let own_url = self.get(&format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT"));
        let base = self.get("OTEL_EXPORTER_OTLP_ENDPOINT");
        if !self.is_on(kind, own_url.is_some() || base.is_some()) || !self.is_protobuf(kind) {
            return None;
        }
        // A URL for one kind of data is complete; the common one gets the path of the kind.
        let url = own_url.unwrap_or_else(|| {
            format!("{}/v1/{path}", base.as_deref().unwrap_or(DEFAULT).trim_end_matches('/'))
        });
        let is_http =
            Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !is_http {
            self.note(format!("`{url}` is not a URL such as {DEFAULT}; {path} are not exported"));
            return None;
        }
        let timeout = self.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000);
        let default = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let timeout = self.milliseconds(&format!("OTEL_EXPORTER_OTLP_{kind}_TIMEOUT"), default);
        Some(Endpoint { url, headers: self.headers(kind), timeout })
    }

    /// Returns whether a kind of data is exported. An endpoint turns it on unless the exporter is `none`.
    fn is_on(&mut self, kind: &str, has_endpoint: bool) -> bool {
        let name = format!("OTEL_{kind}_EXPORTER");
        match self.get(&name).as_deref() {
            None => has_endpoint,
            Some("otlp") => true,
            Some("none") => false,
            Some(other) => {
                self.note(format!(
                    "{name}: `{other}` is not supported, and nothing is exported; use otlp or none"
                ));
                false
            }
        }
    }

    fn is_protobuf(&mut self, kind: &str) -> bool {
        let own = format!("OTEL_EXPORTER_OTLP_{kind}_PROTOCOL");
        let general = "OTEL_EXPORTER_OTLP_PROTOCOL";
        let own_value = self.get(&own).map(|value| (own, value));
        let value = own_value.or_else(|| Some((general.to_owned(), self.get(general)?)));
        match value {
            Some((name, value)) if value != "http/protobuf" => {
                self.note(format!(
                    "{name}: `{value}` is not supported, and nothing is exported; use http/protobuf, usually on port 4318"
                ));
                false
            }
            _ => true,
        }
    }

    /// Reads `NAME=VALUE,…`, percent-encoded.
    fn headers(&mut self, kind: &str) -> Vec<(String, Secret)> {
        let own = format!("OTEL_EXPORTER_OTLP_{kind}_HEADERS");
        let (name, text) = match self.get(&own) {
            Some(text) => (own, text),
            None => (
                "OTEL_EXPORTER_OTLP_HEADERS".to_owned(),
                self.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default(),
            ),
        };
        let mut headers = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
                    headers.push((key.trim().to_ascii_lowercase(), Secret::new(value)));
                }
                // The text may be a key.
                _ => self.note(format!("{name}: an entry is not NAME=VALUE, and is left out")),
            }
        }
        headers
    }
}

// What describes the program in everything that it exports.

const SERVICE_NAME: &str = "service.name";
const SERVICE_INSTANCE: &str = "service.instance.id";

/// Reads `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, and adds what the specification requires.
fn resource(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let mut attributes = ResourceAttributes::default();
    let text = reader.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
                attributes.set(key.trim(), &value);
            }
            _ => {
                reader.note(format!("OTEL_RESOURCE_ATTRIBUTES: `{pair}` is not NAME=VALUE, and is left out"));
            }
        }
    }
    if let Some(name) = reader.get("OTEL_SERVICE_NAME") {
        attributes.set(SERVICE_NAME, &name);
    }
    attributes.set_default(SERVICE_NAME, "cog");
    attributes.set_default("service.version", env!("CARGO_PKG_VERSION"));
    attributes.set_default(SERVICE_INSTANCE, &instance());
    // The program that wrote the data, whatever the operator names it.
    attributes.set("telemetry.sdk.name", "cog");
    attributes.set("telemetry.sdk.language", "rust");
    attributes.set("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
    attributes.0
}

/// Attributes by name, in the order in which they were first set.
#[derive(Default)]
struct ResourceAttributes(Vec<(String, String)>);

impl ResourceAttributes {
    /// Sets an attribute, and replaces an earlier value.
    fn set(&mut self, key: &str, value: &str) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Sets an attribute, unless it has a value.
    fn set_default(&mut self, key: &str, value: &str) {
        if self.0.iter().all(|(name, _)| name != key) {
            self.0.push((key.to_owned(), value.to_owned()));
        }
    }
}

/// Returns a random UUID, so that a collector does not mix the metrics of two programs.
fn instance() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        return std::process::id().to_string();
    }
    // Version 4 in the 13th digit, and the variant of RFC 9562 in the 17th.
    let id = u128::from_be_bytes(bytes) & !(0xf << 76 | 0x3 << 62) | 4 << 76 | 2 << 62;
    let [a, b, c, d] = [id >> 96, id >> 80 & 0xffff, id >> 64 & 0xffff, id >> 48 & 0xffff];
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{:012x}", id & 0xffff_ffff_ffff)
}

// Which traces are recorded (`OTEL_TRACES_SAMPLER`).

/// Decides whether a span is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// The share of traces that are recorded, from 0 to 1.
    pub ratio: f64,
    /// Whether a span with a parent follows its decision.
    pub parent_based: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, parent_based: true }
    }
}

impl Sampler {
    /// Reads `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. None for an unknown name or ratio.
    pub(crate) fn read(name: &str, argument: Option<&str>) -> Option<Self> {
        let (parent_based, name) = match name.strip_prefix("parentbased_") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let ratio = match name {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => argument.map_or(Some(1.0), |text| text.parse().ok())?,
            _ => return None,
        };
        (0.0..=1.0).contains(&ratio).then_some(Self { ratio, parent_based })
    }

    /// Decides about a span. Programs with the same ratio record the same traces.
    pub(crate) fn is_sampled(self, parent: Option<&SpanContext>, trace_id: [u8; 16]) -> bool {
        if let Some(parent) = parent.filter(|_| self.parent_based) {
            return parent.is_sampled;
        }
        let low = trace_id.last_chunk().copied().map_or(0, u64::from_be_bytes);
        // 63 bits, as the SDKs of OpenTelemetry compare them.
        self.ratio >= 1.0 || ((low >> 1) as f64) < self.ratio * (1_u64 << 63) as f64
    }
}

#[cfg(test)]
mod tests;
