use std::time::Duration;

use axum::http::Method;
use cog_run::{Call, CallOutcome, Ended, Observer as _, RunOutcome};
use cog_spec::{Amount, Code, Cost, Currency, ErrorCode, Fallback, PriceDate, PriceSource, Usage};

use super::*;

fn text(metrics: &Metrics) -> String {
    metrics.text(&Live {
        streams: 2,
        providers: vec![("openai".to_owned(), true), ("gemini".to_owned(), false)],
        sessions: [
            (SessionState::Running, 2),
            (SessionState::Finished, 5),
            (SessionState::Failed, 0),
            (SessionState::Interrupted, 0),
            (SessionState::Cancelled, 0),
        ],
        sessions_not_on_disk: 3,
    })
}

#[test]
fn requests_are_counted_by_route_and_status() {
    let metrics = Metrics::new();
    let route = "/v1/modules/{name}/execute";
    for _ in 0..2 {
        metrics.http.answered(&Method::POST, route, 200, Duration::from_millis(3));
    }
    metrics.http.answered(&Method::from_bytes(b"BREW").unwrap(), "other", 404, Duration::ZERO);
    metrics.http.refused("rate");
    metrics.http.write_timeout();
    let text = text(&metrics);
    for line in [
        r#"cog_http_requests_total{method="POST",route="/v1/modules/{name}/execute",status="200"} 2"#,
        r#"cog_http_requests_total{method="other",route="other",status="404"} 1"#,
        r#"cog_http_request_seconds_bucket{le="0.005",route="/v1/modules/{name}/execute"} 2"#,
        r#"cog_http_request_seconds_count{route="/v1/modules/{name}/execute"} 2"#,
        r#"cog_refused_total{reason="rate"} 1"#,
        "cog_write_timeouts_total 1",
        "cog_streams_open 2",
        r#"cog_provider_available{provider="openai"} 1"#,
        r#"cog_provider_available{provider="gemini"} 0"#,
        r#"cog_sessions{state="finished"} 5"#,
        "cog_sessions_not_on_disk 3",
        concat!(r#"cog_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn runs_and_calls_are_counted_by_outcome() {
    let metrics = Metrics::new();
    let first_token = Some(Duration::from_millis(40));
    metrics.called(&Call { provider: "openai", outcome: CallOutcome::Answered, first_token });
    let limited = Code::RateLimited;
    for outcome in [CallOutcome::Retried(limited), CallOutcome::Failed(limited), CallOutcome::CircuitOpen] {
        metrics.called(&Call { provider: "openai", outcome, first_token: None });
    }
    let cost = Cost {
        amount: Amount::new(0.25).unwrap(),
        currency: Currency::Usd,
        source: PriceSource::GenaiPrices,
        date: PriceDate::new("2026-11-22").unwrap(),
    };
    let usage = Usage { input_tokens: 100, output_tokens: 20, cost: Some(cost), ..Usage::default() };
    let (code, message) = (Code::ProviderUnavailable, String::new());
    let fallbacks = [Fallback { provider: "gemini".to_owned(), code, message }];
    let outcome = RunOutcome::Answered;
    metrics.ended(&Ended {
        module: "summarize",
        outcome,
        usage: Some(&usage),
        attempts: 3,
        repairs: 2,
        fallbacks: &fallbacks,
    });
    let code = ErrorCode::Declared("E5001".to_owned());
    let outcome = RunOutcome::Failed(&code);
    metrics.ended(&Ended {
        module: "summarize",
        outcome,
        usage: None,
        attempts: 1,
        repairs: 0,
        fallbacks: &[],
    });
    let text = text(&metrics);
    for line in [
        r#"cog_provider_calls_total{provider="openai",outcome="answered"} 1"#,
        r#"cog_provider_calls_total{provider="openai",outcome="E4002"} 2"#,
        r#"cog_provider_retries_total{provider="openai"} 1"#,
        r#"cog_provider_circuit_rejections_total{provider="openai"} 1"#,
        r#"cog_provider_first_token_seconds_count{provider="openai"} 1"#,
        r#"cog_runs_total{module="summarize",outcome="answered"} 1"#,
        r#"cog_runs_total{module="summarize",outcome="E5001"} 1"#,
        r#"cog_tokens_total{module="summarize",direction="in"} 100"#,
        r#"cog_tokens_total{module="summarize",direction="out"} 20"#,
        r#"cog_cost_usd_total{module="summarize"} 0.25"#,
        r#"cog_repairs_total{module="summarize"} 2"#,
        r#"cog_retries_total{module="summarize"} 2"#,
        r#"cog_fallbacks_total{provider="gemini",code="E4001"} 1"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
