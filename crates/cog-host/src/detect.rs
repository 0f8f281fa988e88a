//! Looks for a running Ollama if no provider is configured.

use std::time::Duration;

use cog_provider::{HttpProvider, vendors::ProviderSettings};

use crate::settings::{DetectedServer, Settings, detectable};

/// The maximum time to connect. A port of this machine without a server refuses at once.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// The maximum time for both requests.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the server on this machine, unless the setting turns this off. It is looked for once.
pub(crate) fn detect(settings: &Settings) -> Option<&DetectedServer> {
    settings.detected.get_or_init(|| look(settings)).as_ref()
}

fn look(settings: &Settings) -> Option<DetectedServer> {
    let (vendor, url) = (detectable()?, settings.detect_ollama.value.0.clone()?);
    let call = ProviderSettings {
        base_url: Some(url),
        retries: 0,
        connect_timeout: CONNECT_TIMEOUT,
        ..ProviderSettings::from_variables(vendor, |name| settings.variable(name))
    };
    let provider = HttpProvider::new(vendor, call).ok()?;
    let found = async { tokio::time::timeout(TIMEOUT, provider.identify()).await.ok().flatten() };
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    // The caller may be in an async runtime, which cannot wait for another one in its own thread.
    let models = std::thread::scope(|scope| scope.spawn(|| events.block_on(found)).join()).ok()??;
    Some(DetectedServer { vendor, base_url: provider.base_url().to_owned(), models })
}
