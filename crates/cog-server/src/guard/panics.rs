use std::{any::Any, panic::AssertUnwindSafe};

use axum::response::Response;
use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;

use crate::answer;

/// The answer of a handler; where it panics, that request's 500 E4000, and nobody else's.
///
/// What the panic says goes to the log: it can hold anything.
pub(crate) async fn contain(request_id: &str, answer: impl Future<Output = Response>) -> Response {
    // A handler shares only what is safe after a panic: channels, atomics and locks whose poison is passed over.
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!(request_id, panic = said(panic.as_ref()), "a request's handler panicked");
            internal_error(request_id)
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}

fn internal_error(request_id: &str) -> Response {
    let error = ErrorBody::new(Code::InternalError, "the server failed at this request")
        .suggest(format!("this is a defect: report it; the server's log tells more under {request_id}"));
    answer::envelope(&Envelope::failure(error))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::StatusCode, response::IntoResponse as _};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_that_does_not_tell_it() {
        let key = String::from("sk-canary");
        let response = contain("r-1", async move { panic!("the key is {key}") }).await;
        assert_eq!(response.status(), 500);
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(r#""code":"E4000""#) && body.contains("r-1"), "{body}");
        assert!(!body.contains("canary"), "{body}");
    }

    #[tokio::test]
    async fn an_answer_without_a_panic_is_passed_on() {
        let response = contain("r-1", async { StatusCode::IM_A_TEAPOT.into_response() }).await;
        assert_eq!(response.status(), 418);
    }
}
