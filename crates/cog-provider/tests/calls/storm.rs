//! Tests of repeated errors of a server: how often a failing provider is called, and that its recovery is detected.

use std::{sync::Arc, time::Duration};

use cog_provider::{
    Breaker, BreakerSettings, HttpProvider, Provider, ProviderError, vendors::ProviderSettings,
};
use cog_testkit::{Mock, Reply, Wire};
use futures_util::future::join_all;

use crate::support::{settings, simple_request, vendor};

/// Creates a provider without retries, behind a breaker with this pause.
fn guarded(wire: Wire, mock: &Mock, pause: Duration) -> Breaker {
    let settings = ProviderSettings { retries: 0, ..settings(&mock.base_url(wire)) };
    let provider = HttpProvider::new(vendor(wire), settings).unwrap();
    Breaker::new(Arc::new(provider), BreakerSettings { reset_timeout: pause, ..BreakerSettings::default() })
}

async fn error_of(provider: &Breaker) -> Option<ProviderError> {
    provider.call(&simple_request()).await.err()
}

#[tokio::test]
async fn circuit_bounds_the_calls_to_a_failing_provider() {
    for wire in Wire::ALL {
        let limited = Reply::error(429, "overloaded").header("retry-after", "3600");
        let storm = [502, 503, 500, 529].map(|status| Reply::error(status, "overloaded"));
        let storm = storm.into_iter().chain([limited]);
        let mock = Mock::start(storm.chain([Reply::text("{}")]));
        let provider = guarded(wire, &mock, Duration::from_secs(3600));
        for _ in 0..200 {
            assert!(error_of(&provider).await.is_some(), "{}", wire.name());
        }
        assert_eq!(mock.requests().len(), 5, "{}", wire.name());
        let error = error_of(&provider).await.unwrap();
        assert!(error.retry_after().is_some() && error.to_string().contains("circuit is open"), "{error}");
    }
}

#[tokio::test]
async fn concurrent_requests_are_each_called_at_most_once() {
    let mock = Mock::start([Reply::error(503, "overloaded")]);
    let provider = guarded(Wire::OpenAi, &mock, Duration::from_secs(3600));
    let results = join_all((0..100).map(|_| error_of(&provider))).await;
    assert!(results.iter().all(Option::is_some));
    let calls = mock.requests().len();
    assert!(calls <= 100, "{calls}");
    assert!(join_all((0..100).map(|_| error_of(&provider))).await.iter().all(Option::is_some));
    assert_eq!(mock.requests().len(), calls);
}

#[tokio::test]
async fn recovered_provider_is_called_again() {
    let storm = std::iter::repeat_n(Reply::error(503, "overloaded"), 6);
    let mock = Mock::start(storm.chain([Reply::text("{}")]));
    let provider = guarded(Wire::OpenAi, &mock, Duration::from_millis(1));
    while mock.requests().len() < 7 {
        error_of(&provider).await;
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert_eq!(error_of(&provider).await, None);
    }
}
