use std::sync::atomic::{AtomicUsize, Ordering};

use cog_harmony::Conversation;
use cog_spec::Code;
use futures_util::stream;

use super::*;

/// A provider that fails after one second while `error` is set, and counts its calls. Models named `good…` never fail.
#[derive(Default)]
struct Unstable {
    error: Mutex<Option<ProviderError>>,
    calls: AtomicUsize,
}

impl Unstable {
    fn failing(error: ProviderError) -> (Arc<Self>, Breaker) {
        let unstable = Arc::new(Self { error: Mutex::new(Some(error)), ..Self::default() });
        let breaker = Breaker::new(Arc::clone(&unstable) as Arc<dyn Provider>, BreakerSettings::default());
        (unstable, breaker)
    }

    fn recover(&self) {
        *self.error.lock().unwrap() = None;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Provider for Unstable {
    fn info(&self) -> &ProviderInfo {
        const { &ProviderInfo::new("unstable", "m") }
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async {
            self.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            match self.error.lock().unwrap().clone() {
                Some(error) if !request.model.starts_with("good") => Err(error),
                _ => Ok(Box::pin(stream::empty()) as crate::ModelStream),
            }
        })
    }
}

fn down() -> ProviderError {
    ProviderError::Unavailable {
        vendor: "Unstable",
        by: crate::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    }
}

/// Returns the error of one call, if it failed.
async fn call(breaker: &Breaker) -> Option<ProviderError> {
    breaker.call(&ModelRequest::new(Conversation::default())).await.err()
}

/// Returns the error of one call to a model, if it failed.
async fn call_model(breaker: &Breaker, model: &str) -> Option<ProviderError> {
    let mut request = ModelRequest::new(Conversation::default());
    model.clone_into(&mut request.model);
    breaker.call(&request).await.err()
}

async fn call_times(breaker: &Breaker, times: usize) -> Option<ProviderError> {
    let mut last = None;
    for _ in 0..times {
        last = call(breaker).await;
    }
    last
}

fn is_open(error: Option<&ProviderError>) -> bool {
    matches!(error, Some(ProviderError::CircuitOpen { .. }))
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_open_the_circuit() {
    let (unstable, breaker) = Unstable::failing(down());
    assert_eq!(call_times(&breaker, 4).await, Some(down()));
    assert!(breaker.is_available());
    assert_eq!(call(&breaker).await, Some(down()));
    assert!(!breaker.is_available());
    let refused = call_times(&breaker, 100).await.unwrap();
    assert!(is_open(Some(&refused)));
    assert_eq!(
        (refused.code(), refused.recoverable(), unstable.calls()),
        (Code::ProviderUnavailable, true, 5)
    );
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn success_resets_the_count() {
    let (unstable, breaker) = Unstable::failing(down());
    call_times(&breaker, 4).await;
    unstable.recover();
    assert_eq!(call(&breaker).await, None);
    *unstable.error.lock().unwrap() = Some(down());
    assert_eq!(call_times(&breaker, 4).await, Some(down()));
    assert_eq!(unstable.calls(), 9);
}

#[tokio::test(start_paused = true)]
async fn one_call_probes_after_the_pause_and_others_are_rejected() {
    let (unstable, breaker) = Unstable::failing(down());
    call_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(breaker.is_available());
    unstable.recover();
    let (probe, other) = tokio::join!(call(&breaker), call(&breaker));
    assert_eq!(probe, None);
    assert_eq!(other.unwrap().retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(call(&breaker).await, None, "the circuit is closed");
    assert_eq!(unstable.calls(), 7);
}

#[tokio::test(start_paused = true)]
async fn failed_probe_opens_the_circuit_again() {
    let (unstable, breaker) = Unstable::failing(down());
    call_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(call(&breaker).await, Some(down()));
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(is_open(call(&breaker).await.as_ref()));
    assert_eq!(unstable.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn next_call_probes_after_a_dropped_probe() {
    let (unstable, breaker) = Unstable::failing(down());
    call_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(tokio::time::timeout(Duration::from_millis(1), call(&breaker)).await.is_err());
    unstable.recover();
    assert_eq!(call(&breaker).await, None);
}

#[tokio::test(start_paused = true)]
async fn rejected_requests_do_not_count() {
    let refused =
        ProviderError::Rejected { vendor: "Unstable", status: 400, message: "bad".to_owned(), part: None };
    let (unstable, breaker) = Unstable::failing(refused.clone());
    assert_eq!(call_times(&breaker, 20).await, Some(refused));
    assert_eq!(unstable.calls(), 20);
}

fn limited(is_quota: bool, seconds: Option<u64>) -> ProviderError {
    ProviderError::RateLimited {
        vendor: "Unstable",
        is_quota,
        message: "slow".to_owned(),
        retry_after: seconds.map(Duration::from_secs),
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limit_without_a_wait_is_no_outage() {
    let (unstable, breaker) = Unstable::failing(limited(false, None));
    assert_eq!(call_times(&breaker, 20).await, Some(limited(false, None)));
    assert!(breaker.is_available());
    assert_eq!(unstable.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn circuit_of_a_limit_is_open_as_long_as_the_vendor_says() {
    for (error, seconds) in [(limited(false, Some(3)), 3), (limited(true, None), 30)] {
        let (unstable, breaker) = Unstable::failing(error);
        call_times(&breaker, 5).await;
        assert_eq!(call(&breaker).await.unwrap().retry_after(), Some(Duration::from_secs(seconds)));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert!(!is_open(call(&breaker).await.as_ref()));
        assert_eq!(unstable.calls(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_extends_the_pause() {
    let (unstable, breaker) = Unstable::failing(limited(false, Some(90)));
    call_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(89)).await;
    assert!(is_open(call(&breaker).await.as_ref()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!is_open(call(&breaker).await.as_ref()));
    assert_eq!(unstable.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn failures_of_concurrent_calls_do_not_extend_the_pause() {
    let (unstable, breaker) = Unstable::failing(down());
    let together: Vec<_> = (0..20).map(|_| call(&breaker)).collect();
    assert!(futures_util::future::join_all(together).await.iter().all(|result| *result == Some(down())));
    assert_eq!(call(&breaker).await.unwrap().retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(unstable.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_model_leave_the_others_open() {
    let quota = ProviderError::RateLimited {
        vendor: "Unstable",
        is_quota: true,
        message: "none left".to_owned(),
        retry_after: Some(Duration::from_secs(600)),
    };
    for error in [down(), quota] {
        let (_, breaker) = Unstable::failing(error);
        for _ in 0..5 {
            assert!(!is_open(call_model(&breaker, "chosen").await.as_ref()));
        }
        assert!(is_open(call_model(&breaker, "chosen").await.as_ref()));
        assert_eq!(call_model(&breaker, "good").await, None);
        assert!(breaker.is_available());
        assert!(!is_open(call(&breaker).await.as_ref()), "its own model was not called before");
        assert!(is_open(call_model(&breaker, "chosen").await.as_ref()), "other calls do not close it");
    }
}

#[tokio::test(start_paused = true)]
async fn own_model_has_one_circuit_by_name_and_by_default() {
    let (_, breaker) = Unstable::failing(down());
    call_times(&breaker, 4).await;
    assert_eq!(call_model(&breaker, "m").await, Some(down()));
    assert!(is_open(call(&breaker).await.as_ref()));
}

#[tokio::test(start_paused = true)]
async fn circuits_are_bounded_and_that_of_the_own_model_stays() {
    let (_, breaker) = Unstable::failing(down());
    call_times(&breaker, 5).await;
    for number in 0..3_000 {
        call_model(&breaker, &format!("{number}{}", "x".repeat(1_000))).await;
        *breaker.circuits().entry(breaker.key_of("")).or_insert(Circuit::Probing) =
            Circuit::Open { until: Instant::now() + Duration::from_secs(1) };
    }
    assert_eq!(breaker.circuits().len(), MAX_CIRCUITS);
    assert!(!breaker.is_available());
    for number in 0..3_000 {
        assert_eq!(call_model(&breaker, &format!("good {number}")).await, None);
    }
    assert_eq!(breaker.circuits().len(), MAX_CIRCUITS, "a model that answers needs no circuit");
}

#[tokio::test(start_paused = true)]
async fn success_removes_a_circuit() {
    let (unstable, breaker) = Unstable::failing(down());
    call_model(&breaker, "a").await;
    assert_eq!(breaker.circuits().len(), 1);
    unstable.recover();
    call_model(&breaker, "a").await;
    assert!(breaker.circuits().is_empty());
}
