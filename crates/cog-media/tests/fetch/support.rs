//! Helpers of the tests.

use std::{io::Read as _, time::Duration};

use cog_media::{FetchLimits, Fetcher, MediaError, Resolver, SourceContent, Store, UrlGuard};

/// The maximum bytes of a fetch.
pub(crate) const LIMIT: u64 = 100_000;

/// Returns the default limits, which no test waits for.
pub(crate) fn limits() -> FetchLimits {
    FetchLimits::default()
}

pub(crate) fn fetcher(rules: &[String], resolver: impl Resolver + 'static) -> Fetcher {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Fetcher::with_resolver(UrlGuard::new(rules), limits(), resolver)
}

pub(crate) async fn fetch(fetcher: &Fetcher, url: &str) -> Result<SourceContent, MediaError> {
    tokio::time::timeout(Duration::from_secs(60), fetcher.fetch(url, Store::with_limit(LIMIT))).await.unwrap()
}

pub(crate) fn bytes(fetched: &SourceContent) -> Vec<u8> {
    let mut bytes = Vec::new();
    fetched.stored.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) async fn error_of(fetcher: &Fetcher, url: &str) -> String {
    let error = fetch(fetcher, url).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E1012", "{error}");
    error.to_string()
}
