//! The header `Server-Timing`: how long a request took, and for what.

use std::{
    fmt::Write as _,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::http::{HeaderName, HeaderValue};

/// The name of the header.
pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What a handler knows about the duration of its response; an extension of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// The time spent waiting for the provider.
    Waiting(Duration),
    /// The response is a stream: the time until it began.
    Preparing,
}

/// Returns the value of the header, in milliseconds.
pub(crate) fn value(total: Duration, spent: Option<Timing>) -> HeaderValue {
    let mut text = String::with_capacity(64);
    match spent {
        None => add(&mut text, "total", total),
        Some(Timing::Preparing) => add(&mut text, "prepare", total),
        Some(Timing::Waiting(waited)) => {
            add(&mut text, "total", total);
            add(&mut text, "provider", waited);
            add(&mut text, "cog", total.saturating_sub(waited));
        }
    }
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("total"))
}

/// Adds a metric to the value of the header.
fn add(text: &mut String, name: &str, time: Duration) {
    let comma = if text.is_empty() { "" } else { ", " };
    let _ = write!(text, "{comma}{name};dur={:.3}", time.as_secs_f64() * 1000.0);
}

/// Returns the output of a future and the time that it was pending.
pub(crate) async fn measure_waiting<F: Future>(future: F) -> (F::Output, Duration) {
    let mut waited = Duration::ZERO;
    let watched = WaitTimer { future: Box::pin(future), waited: &mut waited, since: None };
    let output = watched.await;
    (output, waited)
}

struct WaitTimer<'a, F> {
    future: Pin<Box<F>>,
    waited: &'a mut Duration,
    since: Option<Instant>,
}

impl<F: Future> Future for WaitTimer<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let Some(since) = self.since.take() {
            *self.waited += since.elapsed();
        }
        let polled = self.future.as_mut().poll(context);
        if polled.is_pending() {
            self.since = Some(Instant::now());
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_splits_the_total_time() {
        let ms = Duration::from_millis;
        assert_eq!(
            value(ms(12), Some(Timing::Waiting(ms(10)))),
            "total;dur=12.000, provider;dur=10.000, cog;dur=2.000"
        );
        assert_eq!(
            value(ms(1), Some(Timing::Waiting(ms(2)))),
            "total;dur=1.000, provider;dur=2.000, cog;dur=0.000"
        );
        assert_eq!(value(Duration::from_micros(250), Some(Timing::Preparing)), "prepare;dur=0.250");
        assert_eq!(value(ms(3), None), "total;dur=3.000");
    }

    #[tokio::test]
    async fn measures_pending_time_only() {
        let (output, waited) = measure_waiting(async { 1 }).await;
        assert_eq!((output, waited), (1, Duration::ZERO));
        let pause = Duration::from_millis(5);
        let ((), waited) = measure_waiting(tokio::time::sleep(pause)).await;
        assert!(waited >= pause);
    }
}
