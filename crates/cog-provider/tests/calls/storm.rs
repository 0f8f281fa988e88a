//! Tests of repeated 429 and 5xx replies: how often a failing provider is called, and that its recovery is detected.

use std::{sync::Arc, time::Duration};

use cog_provider::{
    Breaker, BreakerSettings, HttpProvider, Provider, ProviderError, vendors::ProviderSettings,
};
use cog_testkit::{Mock, Reply, Wire};
use futures_util::future::join_all;

use crate::support::{question, settings, vendor};

/// Creates a provider without retries, behind a breaker with this pause.
fn guarded(wire: Wire, mock: &Mock, pause: Duration) -> Breaker {
    let settings = ProviderSettings { retries: 0, ..settings(&mock.base_url(wire)) };
    let provider = HttpProvider::new(vendor(wire), settings).unwrap();
    Breaker::new(Arc::new(provider), BreakerSettings { reset_timeout: pause, ..BreakerSettings::default() })
}

async fn ask(provider: &Breaker) -> Option<ProviderError> {
    provider.call(&question()).await.err()
}

#[tokio::test]
async fn a_storm_meets_a_bounded_number_of_calls_and_then_silence() {
    for wire in Wire::ALL {
        let storm = [429, 503, 500, 529, 429].map(|status| Reply::error(status, "overloaded"));
        let mock = Mock::start(storm.into_iter().chain([Reply::text("{}")]));
        let provider = guarded(wire, &mock, Duration::from_secs(3600));
        for _ in 0..200 {
            assert!(ask(&provider).await.is_some(), "{}", wire.name());
        }
        assert_eq!(mock.requests().len(), 5, "{}", wire.name());
        let refused = ask(&provider).await.unwrap();
        assert!(
            refused.retry_after().is_some() && refused.to_string().contains("circuit is open"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn questions_at_once_meet_no_more_calls_than_there_are_questions() {
    let mock = Mock::start([Reply::error(503, "overloaded")]);
    let provider = guarded(Wire::OpenAi, &mock, Duration::from_secs(3600));
    let ends = join_all((0..100).map(|_| ask(&provider))).await;
    assert!(ends.iter().all(Option::is_some));
    let calls = mock.requests().len();
    assert!(calls <= 100, "{calls}");
    assert!(join_all((0..100).map(|_| ask(&provider))).await.iter().all(Option::is_some));
    assert_eq!(mock.requests().len(), calls);
}

#[tokio::test]
async fn a_provider_that_is_well_again_is_found_again() {
    let storm = std::iter::repeat_n(Reply::error(503, "overloaded"), 6);
    let mock = Mock::start(storm.chain([Reply::text("{}")]));
    let provider = guarded(Wire::OpenAi, &mock, Duration::from_millis(1));
    while mock.requests().len() < 7 {
        ask(&provider).await;
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert_eq!(ask(&provider).await, None);
    }
}
