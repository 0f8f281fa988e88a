//! A running Ollama, which is used if no provider is configured: where it is looked for, and what was found.

use std::{future::Future, time::Duration};

use cog_provider::{
    HttpProvider, ListedModel,
    vendors::{ProviderSettings, VENDORS, Vendor},
};
use serde::Deserialize;
use tokio::{runtime::Builder, time::timeout};

use super::{Settings, values};

/// Where to look for a running Ollama if no provider is configured; none if that is off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DetectUrl(
    /// The base URL.
    pub Option<String>,
);

impl DetectUrl {
    /// Parses `on`, `off`, or a URL.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self(Some(text.to_owned())));
        }
        match values::switch(text) {
            Ok(true) => Ok(Self::default()),
            Ok(false) => Ok(Self(None)),
            Err(_) => Err(format!("`{text}` is not valid: use `on`, `off` or a URL")),
        }
    }
}

impl Default for DetectUrl {
    fn default() -> Self {
        Self(detectable().map(|vendor| vendor.base_url.to_owned()))
    }
}

impl TryFrom<String> for DetectUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

/// A running server that was found without a setting.
#[derive(Debug, Clone)]
pub struct DetectedServer {
    /// Its row.
    pub vendor: &'static Vendor,
    /// Its base URL.
    pub base_url: String,
    /// Its models.
    pub models: Vec<ListedModel>,
}

impl DetectedServer {
    /// Returns the model to call if none is set: the vendor's default if it is installed, otherwise the first one that is
    /// not an embedding model.
    pub fn model(&self) -> Option<&str> {
        let default = self.vendor.default_model.unwrap_or_default();
        let preferred = self.models.iter().find(|model| model.is_named(default));
        // Ollama lists embedding models among the others, and only their names tell.
        let mut others = self
            .models
            .iter()
            .filter(|model| !model.name.contains("embed") && !model.name.contains("minilm"));
        Some(&preferred.or_else(|| others.next())?.name)
    }
}

/// Returns the row of the server that can be found without a setting.
pub fn detectable() -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.version_path.is_some())
}

/// The maximum time to connect. A port of this machine without a server refuses at once.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// The maximum time for both requests.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the server on this machine, unless the setting turns this off. It is looked for once, which blocks for at most two
/// seconds.
pub(crate) fn detect(settings: &Settings) -> Option<&DetectedServer> {
    settings.detected.get_or_init(|| look(settings)).as_ref()
}

fn look(settings: &Settings) -> Option<DetectedServer> {
    let vendor = detectable()?;
    let url = settings.detect_ollama.value.0.clone()?;
    let call = ProviderSettings {
        base_url: Some(url),
        retries: 0,
        connect_timeout: CONNECT_TIMEOUT,
        ..ProviderSettings::from_variables(vendor, |name| settings.variable(name))
    };
    let provider = HttpProvider::new(vendor, call).ok()?;
    let models = wait(async { timeout(TIMEOUT, provider.identify()).await.ok().flatten() })??;
    Some(DetectedServer { vendor, base_url: provider.base_url().to_owned(), models })
}

/// Waits for a future on a thread of its own. The caller may be in an async runtime, whose thread can neither wait for another
/// runtime nor drop one, so that one is created and dropped on the other thread too.
fn wait<T: Send>(work: impl Future<Output = T> + Send) -> Option<T> {
    let joined = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            Some(runtime.block_on(work))
        });
        thread.join()
    });
    joined.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    use super::*;
    use crate::{
        providers::{RecordMode, select},
        settings::{Environment, Flags},
    };

    fn settings(url: &str) -> Settings {
        let environment = Environment::from([("COG_DETECT_OLLAMA", url)]);
        Settings::read(Flags::default(), environment).unwrap()
    }

    /// Answers as an Ollama with one model, and returns its URL.
    fn ollama() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut head = [0; 4096];
                let length = client.read(&mut head).unwrap();
                let is_version = String::from_utf8_lossy(&head[..length]).starts_with("GET /api/version");
                let body = if is_version { r#"{"version": "1"}"# } else { r#"{"models": [{"name": "a"}]}"# };
                let length = body.len();
                write!(
                    client,
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        url
    }

    /// Returns the number of selected providers for a URL at which Ollama may be.
    fn selected(url: &str) -> usize {
        select(&settings(url), RecordMode::Off).unwrap().providers.default_order().len()
    }

    #[test]
    fn detects_in_sync_and_async_code() {
        let found = ollama();
        let closed = "http://127.0.0.1:1";
        let both = || (selected(&found), selected(closed));
        assert_eq!(both(), (1, 0));
        assert_eq!(Builder::new_current_thread().build().unwrap().block_on(async { both() }), (1, 0));
        let threads = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        assert_eq!(threads.block_on(async { both() }), (1, 0));
    }
}
