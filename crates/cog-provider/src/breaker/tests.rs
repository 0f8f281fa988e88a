use std::sync::atomic::{AtomicUsize, Ordering};

use cog_harmony::Conversation;
use cog_spec::Code;
use futures_util::stream;

use super::*;

/// A provider that fails after one second while `fault` is set, and counts its calls.
#[derive(Default)]
struct Moody {
    fault: Mutex<Option<ProviderError>>,
    asked: AtomicUsize,
}

impl Moody {
    fn failing(fault: ProviderError) -> (Arc<Self>, Breaker) {
        let moody = Arc::new(Self { fault: Mutex::new(Some(fault)), ..Self::default() });
        let breaker = Breaker::new(Arc::clone(&moody) as Arc<dyn Provider>, BreakerSettings::default());
        (moody, breaker)
    }

    fn recover(&self) {
        *self.fault.lock().unwrap() = None;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Provider for Moody {
    fn info(&self) -> &ProviderInfo {
        const { &ProviderInfo::new("moody", "m") }
    }

    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            match self.fault.lock().unwrap().clone() {
                Some(fault) => Err(fault),
                None => Ok(Box::pin(stream::empty()) as crate::ModelStream),
            }
        })
    }
}

fn down() -> ProviderError {
    ProviderError::Unavailable { vendor: "Moody", message: "down".to_owned(), retry_after: None }
}

/// Returns the error of one call, if it failed.
async fn ask(breaker: &Breaker) -> Option<ProviderError> {
    breaker.call(&ModelRequest::new(Conversation::default())).await.err()
}

async fn ask_times(breaker: &Breaker, times: usize) -> Option<ProviderError> {
    let mut last = None;
    for _ in 0..times {
        last = ask(breaker).await;
    }
    last
}

fn is_open(error: Option<&ProviderError>) -> bool {
    matches!(error, Some(ProviderError::CircuitOpen { .. }))
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_open_the_circuit() {
    let (moody, breaker) = Moody::failing(down());
    assert_eq!(ask_times(&breaker, 4).await, Some(down()));
    assert!(breaker.is_available());
    assert_eq!(ask(&breaker).await, Some(down()));
    assert!(!breaker.is_available());
    let refused = ask_times(&breaker, 100).await.unwrap();
    assert!(is_open(Some(&refused)));
    assert_eq!((refused.code(), refused.recoverable(), moody.asked()), (Code::ProviderUnavailable, true, 5));
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_between_begins_the_count_anew() {
    let (moody, breaker) = Moody::failing(down());
    ask_times(&breaker, 4).await;
    moody.recover();
    assert_eq!(ask(&breaker).await, None);
    *moody.fault.lock().unwrap() = Some(down());
    assert_eq!(ask_times(&breaker, 4).await, Some(down()));
    assert_eq!(moody.asked(), 9);
}

#[tokio::test(start_paused = true)]
async fn after_the_pause_one_question_tries_and_the_others_are_refused() {
    let (moody, breaker) = Moody::failing(down());
    ask_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(breaker.is_available());
    moody.recover();
    let (probe, other) = tokio::join!(ask(&breaker), ask(&breaker));
    assert_eq!(probe, None);
    assert_eq!(other.unwrap().retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(ask(&breaker).await, None, "the circuit is closed");
    assert_eq!(moody.asked(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_it_for_another_pause() {
    let (moody, breaker) = Moody::failing(down());
    ask_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(ask(&breaker).await, Some(down()));
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(is_open(ask(&breaker).await.as_ref()));
    assert_eq!(moody.asked(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_nobody_waits_for_leaves_the_next_one_to_try() {
    let (moody, breaker) = Moody::failing(down());
    ask_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(tokio::time::timeout(Duration::from_millis(1), ask(&breaker)).await.is_err());
    moody.recover();
    assert_eq!(ask(&breaker).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_providers_illness_does_not_count() {
    let refused = ProviderError::Rejected { vendor: "Moody", status: 400, message: "bad".to_owned() };
    let (moody, breaker) = Moody::failing(refused.clone());
    assert_eq!(ask_times(&breaker, 20).await, Some(refused));
    assert_eq!(moody.asked(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_asks_for_a_longer_pause_gets_it() {
    let wait = Some(Duration::from_secs(90));
    let limited =
        ProviderError::RateLimited { vendor: "Moody", message: "slow".to_owned(), retry_after: wait };
    let (moody, breaker) = Moody::failing(limited);
    ask_times(&breaker, 5).await;
    tokio::time::sleep(Duration::from_secs(89)).await;
    assert!(is_open(ask(&breaker).await.as_ref()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!is_open(ask(&breaker).await.as_ref()));
    assert_eq!(moody.asked(), 6);
}

#[tokio::test(start_paused = true)]
async fn failures_of_questions_on_their_way_do_not_prolong_the_pause() {
    let (moody, breaker) = Moody::failing(down());
    let together: Vec<_> = (0..20).map(|_| ask(&breaker)).collect();
    assert!(futures_util::future::join_all(together).await.iter().all(|end| *end == Some(down())));
    assert_eq!(ask(&breaker).await.unwrap().retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(moody.asked(), 20);
}
