//! Where a kind of data is sent.

use std::time::Duration;

use cog_spec::Secret;
use percent_encoding::percent_decode_str;
use url::Url;

use super::Reader;

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
    pub(super) fn endpoint(&mut self, kind: &str, path: &str) -> Option<Endpoint> {
        let own_url = self.get(&format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT"));
        let base = self.get("OTEL_EXPORTER_OTLP_ENDPOINT");
        if !self.is_on(kind, own_url.is_some() || base.is_some()) || !self.is_protobuf(kind) {
            return None;
        }
        let of_base = || {
            let base = base.as_deref().unwrap_or(DEFAULT);
            format!("{}/v1/{path}", base.trim_end_matches('/'))
        };
        let url = own_url.unwrap_or_else(of_base);
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
        let (own, general) = (format!("OTEL_EXPORTER_OTLP_{kind}_PROTOCOL"), "OTEL_EXPORTER_OTLP_PROTOCOL");
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
