//! Looks for a running Ollama if no provider is configured.

use std::{future::Future, time::Duration};

use cog_provider::{HttpProvider, vendors::ProviderSettings};
use tokio::{runtime::Builder, time::timeout};

use crate::settings::{DetectedServer, Settings, detectable};

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
    let run = || Some(Builder::new_current_thread().enable_all().build().ok()?.block_on(work));
    std::thread::scope(|scope| scope.spawn(run).join()).ok().flatten()
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
