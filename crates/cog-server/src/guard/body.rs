use std::time::Duration;

use axum::{body::Body, http::StatusCode};
use bytes::Bytes;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use tokio::time::timeout;

use super::refusal::{Reason, Refusal};

/// Reads the body of a request, within these limits of size and time.
///
/// # Errors
/// 413 E1005 for a larger body, before reading it where its length is known; 408 E1001 for one that does not arrive in
/// time or is interrupted.
pub(crate) async fn read(mut body: Body, max_bytes: usize, max_time: Duration) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > max_bytes) {
        discard(&mut body).await;
        return Err(too_large(max_bytes));
    }
    match timeout(max_time, collect(&mut body, max_bytes)).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(refusal)) => {
            discard(&mut body).await;
            Err(refusal)
        }
        Err(_) => Err(too_slow(&format!("the body did not arrive within {max_time:?}"))),
    }
}

/// Discards the rest of a body, up to a limit. A client that is still sending when the connection closes would not receive
/// the response.
pub(crate) async fn discard(body: &mut Body) {
    const MAX: usize = 4 << 20;
    const MAX_LEN: Duration = Duration::from_secs(1);
    let reading = async {
        let mut discarded = 0;
        while discarded < MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            discarded += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // A client that sends more than that may miss the response.
    let _ = timeout(MAX_LEN, reading).await;
}

/// Returns the body as one buffer. A body in one part, as most are, is not copied; any other is copied once.
async fn collect(body: &mut Body, max_bytes: usize) -> Result<Bytes, Refusal> {
    let collected = Limited::new(body, max_bytes).collect().await;
    collected.map(Collected::to_bytes).map_err(|error| match error.is::<LengthLimitError>() {
        true => too_large(max_bytes),
        false => too_slow("the body was interrupted"),
    })
}

fn too_large(max_bytes: usize) -> Refusal {
    let error = ErrorBody::new(Code::InputTooLarge, format!("the body exceeds {max_bytes} bytes"))
        .suggest("Send a smaller input; the operator can raise --max-body-bytes.")
        .with_details(Value::from(serde_json::json!({ "limit": "max_body_bytes", "max": max_bytes })));
    Refusal::new(Reason::BodySize, StatusCode::PAYLOAD_TOO_LARGE, error).close()
}

fn too_slow(message: &str) -> Refusal {
    let error = ErrorBody::new(Code::InvalidInput, message)
        .suggest("Send the complete body before waiting for the response.");
    Refusal::new(Reason::BodySlow, StatusCode::REQUEST_TIMEOUT, error).close()
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};

    use super::*;

    const MAX_LEN: Duration = Duration::from_secs(60);

    fn parts(parts: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.to_vec()).map(Ok::<_, std::io::Error>))
    }

    #[tokio::test]
    async fn body_over_limit_returns_413() {
        for body in [Body::from("12345678"), parts(&["1234", "56", "78"]), parts(&["12345678", ""])] {
            assert_eq!(read(body, 8, MAX_LEN).await.unwrap(), "12345678");
        }
        for body in [Body::from("123456789"), parts(&["1234", "56", "789"]), parts(&["123456789"])] {
            let refusal = read(body, 8, MAX_LEN).await.unwrap_err();
            assert_eq!((refusal.status().as_u16(), refusal.error().code.as_str()), (413, "E1005"));
        }
        assert_eq!(read(Body::empty(), 0, MAX_LEN).await.unwrap(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_body_times_out() {
        let begun = stream::iter([Ok::<_, std::io::Error>("{")]).chain(stream::pending());
        let refusal = read(Body::from_stream(begun), 8, MAX_LEN).await.unwrap_err();
        assert_eq!(refusal.status(), 408);
    }

    #[tokio::test]
    async fn interrupted_body_is_refused() {
        let broken = stream::iter([Ok("{"), Err(std::io::Error::other("reset"))]);
        let refusal = read(Body::from_stream(broken), 8, MAX_LEN).await.unwrap_err();
        assert_eq!(refusal.reason(), Reason::BodySlow);
    }
}
