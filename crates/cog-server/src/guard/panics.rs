use std::{any::Any, panic::AssertUnwindSafe};

use axum::response::Response;
use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;

use crate::answer;

/// Returns the response of a handler, or 500 E4000 if it panics. Other requests are not affected.
///
/// The panic's message goes to the log only: it can contain anything.
pub(crate) async fn contain(request_id: &str, answer: impl Future<Output = Response>) -> Response {
    // Handlers share only channels, atomics and locks whose poison is ignored, which are safe after a panic.
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!(request_id, panic = message(panic.as_ref()), "request handler panicked");
            internal_error(request_id)
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)")
}

fn internal_error(request_id: &str) -> Response {
    let error = ErrorBody::new(Code::InternalError, "internal server error")
        .suggest(format!("Report this bug; the server log has details under {request_id}."));
    answer::envelope(&Envelope::failure(error))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::StatusCode, response::IntoResponse as _};

    use super::*;

    #[tokio::test]
    async fn panic_returns_500_without_its_message() {
        let key = String::from("sk-canary");
        let response = contain("r-1", async move { panic!("the key is {key}") }).await;
        assert_eq!(response.status(), 500);
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(r#""code":"E4000""#) && body.contains("r-1"), "{body}");
        assert!(!body.contains("canary"), "{body}");
    }

    #[tokio::test]
    async fn response_without_panic_is_unchanged() {
        let response = contain("r-1", async { StatusCode::IM_A_TEAPOT.into_response() }).await;
        assert_eq!(response.status(), 418);
    }
}
