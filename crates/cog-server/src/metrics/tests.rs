use std::time::Duration;

use axum::http::Method;
use cog_run::{
    Runtime,
    events::{CallOutcome, CallReport, RunEvents as _, RunOutcome, RunReport},
};
use cog_spec::{
    Amount, Code, ConfidenceSource, Cost, Currency, ErrorCode, Fallback, GateReport, Meta, PriceDate,
    PriceSource, Repair, RepairRule, Risk, Usage,
};

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

fn call<'a>(outcome: CallOutcome) -> CallReport<'a> {
    CallReport {
        span: None,
        provider: "openai",
        model: "m",
        response_model: None,
        response_id: None,
        temperature: None,
        max_tokens: None,
        seed: None,
        output_media: &[],
        outcome,
        finish: None,
        usage: None,
        first_token: None,
        duration: Duration::from_millis(40),
        input: None,
        output: None,
        tool_calls: &[],
    }
}

#[test]
fn runs_and_calls_are_counted_by_outcome() {
    let metrics = Metrics::new();
    let first_token = Some(Duration::from_millis(40));
    metrics.call_ended(&CallReport { first_token, ..call(CallOutcome::Answered) });
    let slow = Duration::from_secs(3);
    metrics.call_ended(&CallReport { duration: slow, ..call(CallOutcome::Answered) });
    metrics.call_retried("openai", Code::RateLimited);
    let unsent = CallOutcome::NotSent(Code::UnsupportedValue);
    for outcome in [CallOutcome::Failed(Code::RateLimited), CallOutcome::CircuitOpen, unsent] {
        metrics.call_ended(&call(outcome));
    }
    let cost = Cost {
        amount: Amount::new(0.25).unwrap(),
        currency: Currency::Usd,
        source: PriceSource::GenaiPrices,
        date: PriceDate::new("2026-11-22").unwrap(),
    };
    let usage = Usage { input_tokens: 100, output_tokens: 20, cost: Some(cost), ..Usage::default() };
    let code = Code::ProviderUnavailable;
    let message = String::new();
    let fallbacks = [Fallback { provider: "gemini".to_owned(), code, message }];
    let module = Runtime::offline().load("code-reviewer").unwrap();
    let meta = Meta::new(Some(0.83), Risk::Low, "Fine.");
    let answered = RunReport {
        span: None,
        module: &module,
        is_nested: false,
        session_id: "s",
        outcome: RunOutcome::Answered,
        duration: Duration::from_millis(40),
        usage: Some(&usage),
        attempts: 3,
        repairs: 2,
        fallbacks: &fallbacks,
        meta: Some(&meta),
        input: None,
        output: None,
        message: None,
        envelope: None,
    };
    metrics.run_started(&module, false);
    metrics.run_started(&module, false);
    metrics.run_started(&module, true);
    assert!(text(&metrics).contains(r#"cog_runs_running{module="code-reviewer"} 2"#));
    metrics.run_ended(&answered);
    metrics.client("token:web").run_ended(&answered);
    let code = ErrorCode::Declared("E5001".to_owned());
    let outcome = RunOutcome::Failed(&code);
    let failed =
        RunReport { outcome, usage: None, attempts: 1, repairs: 0, fallbacks: &[], meta: None, ..answered };
    metrics.run_ended(&failed);
    metrics.run_ended(&RunReport { is_nested: true, ..failed });
    let text = text(&metrics);
    for line in [
        r#"cog_provider_calls_total{provider="openai",outcome="answered"} 2"#,
        r#"cog_provider_calls_total{provider="openai",outcome="E4002"} 2"#,
        r#"cog_provider_retries_total{provider="openai"} 1"#,
        r#"cog_provider_circuit_rejections_total{provider="openai"} 1"#,
        r#"cog_provider_first_token_seconds_count{provider="openai"} 1"#,
        r#"cog_runs_total{module="code-reviewer",outcome="answered"} 1"#,
        r#"cog_runs_total{module="code-reviewer",outcome="E5001"} 1"#,
        r#"cog_tokens_total{module="code-reviewer",direction="in"} 100"#,
        r#"cog_tokens_total{module="code-reviewer",direction="out"} 20"#,
        r#"cog_cost_usd_total{module="code-reviewer"} 0.25"#,
        r#"cog_repairs_total{module="code-reviewer"} 2"#,
        r#"cog_retries_total{module="code-reviewer"} 2"#,
        r#"cog_fallbacks_total{provider="gemini",code="E4001"} 1"#,
        r#"cog_runs_running{module="code-reviewer"} 0"#,
        r#"cog_run_seconds_bucket{le="0.05",module="code-reviewer"} 2"#,
        r#"cog_provider_call_seconds_bucket{le="0.05",provider="openai",model="m"} 2"#,
        r#"cog_provider_call_seconds_bucket{le="2.0",provider="openai",model="m"} 2"#,
        r#"cog_provider_call_seconds_bucket{le="5.0",provider="openai",model="m"} 3"#,
        r#"cog_client_runs_total{client="web"} 1"#,
        r#"cog_client_tokens_total{client="web",direction="in"} 100"#,
        r#"cog_client_cost_usd_total{client="web"} 0.25"#,
        r#"cog_confidence_bucket{le="0.8",module="code-reviewer"} 0"#,
        r#"cog_confidence_bucket{le="0.85",module="code-reviewer"} 1"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Counts an answer.
fn answered(metrics: &Metrics, meta: &Meta) {
    let module = Runtime::offline().load("code-reviewer").unwrap();
    metrics.run_ended(&RunReport {
        span: None,
        module: &module,
        is_nested: false,
        session_id: "s",
        outcome: RunOutcome::Answered,
        duration: Duration::ZERO,
        usage: None,
        attempts: 1,
        repairs: 1,
        fallbacks: &[],
        meta: Some(meta),
        input: None,
        output: None,
        message: None,
        envelope: None,
    });
}

#[test]
fn confidence_that_the_runtime_filled_in_is_counted_once_it_is_measured() {
    let metrics = Metrics::new();
    let mut meta = Meta::new(Some(0.5), Risk::Medium, "Fine.");
    let path = "meta.confidence".to_owned();
    meta.runtime.repairs.push(Repair { rule: RepairRule::ALL[0], path, before: None, after: None });
    answered(&metrics, &meta);
    assert!(!text(&metrics).contains("cog_confidence_count{"));
    meta.runtime.confidence_source = Some(ConfidenceSource::Calibrated);
    answered(&metrics, &meta);
    assert!(text(&metrics).contains(r#"cog_confidence_count{module="code-reviewer"} 1"#));
}

#[test]
fn gates_count_what_they_accept() {
    let metrics = Metrics::new();
    for passed in [true, true, false] {
        let mut meta = Meta::new(Some(0.5), Risk::Medium, "Fine.");
        meta.runtime.gate = Some(GateReport { accuracy: 0.9, threshold: Some(0.8), passed });
        answered(&metrics, &meta);
    }
    let text = text(&metrics);
    for line in [
        r#"cog_gate_total{module="code-reviewer",result="accepted"} 2"#,
        r#"cog_gate_total{module="code-reviewer",result="review"} 1"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn models_that_clients_name_share_a_series_after_fifty() {
    let metrics = Metrics::new();
    for number in 0..60 {
        let model = format!("model-{number}");
        metrics.call_ended(&CallReport { model: &model, ..call(CallOutcome::Answered) });
    }
    let text = text(&metrics);
    assert_eq!(text.matches("cog_provider_call_seconds_count{").count(), 51, "{text}");
    assert!(
        text.contains(r#"cog_provider_call_seconds_count{provider="openai",model="other"} 10"#),
        "{text}"
    );
}
