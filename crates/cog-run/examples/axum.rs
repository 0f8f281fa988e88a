//! Serves a module with axum: `cargo run -p cog-run --example axum`, then
//! `curl -d 'fn main() {}' 127.0.0.1:8080/review`.

use std::{error::Error, sync::Arc};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::post};
use cog_run::{ErrorBody, Module, RunInput, RunOptions, Runtime, ToJson as _};

#[derive(Clone)]
struct App {
    runtime: Runtime,
    module: Arc<Module>,
}

/// Answers with the envelope, whether the run succeeded or not.
async fn review(State(app): State<App>, code: String) -> impl IntoResponse {
    let envelope = app.runtime.run(&app.module, RunInput::text(code), RunOptions::default()).await;
    let status = if envelope.is_ok() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
    (status, [("content-type", "application/json")], envelope.to_json())
}

fn router() -> Result<Router, ErrorBody> {
    let runtime = Runtime::offline();
    let module = runtime.load("code-reviewer")?;
    Ok(Router::new().route("/review", post(review)).with_state(App { runtime, module }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    Ok(axum::serve(listener, router()?).await?)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};
    use cog_run::Value;
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn handler_answers_with_the_envelope() {
        let request = Request::post("/review").body(Body::from("fn main() {}")).unwrap();
        let response = super::router().unwrap().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let envelope = Value::parse(std::str::from_utf8(&body).unwrap()).unwrap();
        assert_eq!(envelope.get("ok").unwrap().as_bool(), Some(true));
    }
}
