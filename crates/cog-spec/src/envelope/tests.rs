use cog_json::Value;

use super::*;
use crate::{Code, ErrorCode, Meta, Risk, WarningCode};

#[test]
fn a_secret_is_removed_from_every_text_of_an_error() {
    let details = Value::parse(r#"{"reason": "key sk-canary is wrong"}"#).unwrap();
    let error = ErrorBody::new(Code::ProviderUnavailable, "401 for sk-canary")
        .suggest("Replace sk-canary.")
        .with_details(details)
        .without(&Secret::new("sk-canary"));
    assert_eq!(error.message, "401 for ***");
    assert_eq!(error.suggestion.as_deref(), Some("Replace ***."));
    assert_eq!(error.details.unwrap().to_json(), r#"{"reason":"key *** is wrong"}"#);

    let number = Value::parse(r#"{"key": 1234567890}"#).unwrap();
    let error = ErrorBody::new(Code::ProviderUnavailable, "401").with_details(number);
    assert_eq!(error.without(&Secret::new("1234567890")).details, None);
}

#[test]
fn client_receives_code_reason_and_request_id_only() {
    let details = r#"{"reason": "key", "retry_after_ms": 5, "url": "http://10.0.0.7"}"#;
    let error = ErrorBody::new(Code::ProviderUnavailable, "http://10.0.0.7 rejected OPENAI_API_KEY")
        .suggest("Set OPENAI_API_KEY.")
        .with_details(Value::parse(details).unwrap())
        .with_recoverable(false);
    assert_eq!(error.clone().for_client("r-1"), error, "nothing says that it is the operator's");
    let shown = error.for_operator("the provider is not available").for_client("r-1");
    assert_eq!(shown.message, "the provider is not available");
    assert_eq!(shown.recoverable, Some(false));
    assert!(shown.suggestion.as_deref().is_some_and(|text| text.contains("r-1")));
    assert_eq!(
        shown.details.as_ref().unwrap().to_json(),
        r#"{"reason":"key","retry_after_ms":5,"request_id":"r-1"}"#
    );
    for code in [Code::InternalError, Code::ModuleInvalid] {
        let shown = ErrorBody::new(code, "/srv/modules/a: broken").for_client("r-1");
        assert!(!shown.to_json().contains("/srv"), "{shown:?}");
        assert!(!shown.is_for_operator());
    }
}

#[test]
fn an_envelope_has_either_data_or_an_error() {
    let data = Value::parse(r#"{"a": 1}"#).unwrap();
    let meta = Meta::new(Some(0.9), crate::Risk::Low, "Counted.");
    let success = Envelope::success(meta, data.clone());
    assert!(success.is_ok());
    assert_eq!((success.data(), success.error()), (Some(&data), None));

    let error = ErrorBody::new(Code::ParseError, "no JSON");
    let failure = Envelope::failure(error.clone());
    assert!(!failure.is_ok());
    assert_eq!((failure.data(), failure.error()), (None, Some(&error)));
}

#[test]
fn usage_of_an_envelope_is_in_its_meta() {
    let mut envelope = Envelope::failure(ErrorBody::new(Code::ParseError, "no JSON"));
    assert_eq!(envelope.usage(), None);
    let usage = Usage { input_tokens: 3, ..Usage::default() };
    envelope.meta.runtime.usage = Some(usage.clone());
    assert_eq!(envelope.usage(), Some(&usage));
}

#[test]
fn the_origin_of_an_error_is_the_first_of_its_details() {
    let error = ErrorBody::new(Code::Timeout, "slow").with_origin(ErrorOrigin::Provider);
    assert_eq!(error.all_details().to_json(), r#"{"origin":"provider"}"#);
    let details = Value::parse(r#"{"a": 1e400, "origin": "user", "b": []}"#).unwrap();
    let error = ErrorBody { origin: ErrorOrigin::Model, ..error.with_details(details) };
    let written = error.to_json();
    assert!(written.ends_with(r#""details":{"origin":"model","a":1e400,"b":[]}}"#), "{written}");
    let read = ErrorBody::read(Value::parse(&written).unwrap().node()).unwrap();
    assert_eq!(read.origin, ErrorOrigin::Model);
    assert_eq!(read.details.unwrap().to_json(), r#"{"a":1e400,"b":[]}"#);
}

#[test]
fn what_a_model_reports_says_nothing_about_the_run() {
    let details = Value::parse(r#"{"reason": "quota", "request_id": "r-1"}"#).unwrap();
    let failed = ErrorBody::new(Code::RateLimited, "slow down").with_details(details);
    assert!(failed.has_failed_with(Code::RateLimited) && !failed.has_failed_with(Code::Timeout));
    assert_eq!(failed.detail("reason").and_then(Node::as_str), Some("quota"));
    let reported = failed.with_origin(ErrorOrigin::Model);
    assert!(!reported.has_failed_with(Code::RateLimited));
    assert_eq!(reported.detail("reason").and_then(Node::as_str), None);
    let internal = ErrorBody::new(Code::InternalError, "the ledger is inconsistent");
    let internal = internal.with_origin(ErrorOrigin::Model);
    assert_eq!(internal.clone().for_client("r-2"), internal, "the answer of a model is shown");
}

fn written_and_read(envelope: &Envelope) -> Option<Envelope> {
    let value = Value::parse(&envelope.to_json()).unwrap();
    Envelope::read(value.node())
}

#[test]
fn reads_what_it_writes() {
    let value = |text: &str| Value::parse(text).unwrap();
    let mut success = Envelope::success(Meta::new(None, Risk::Low, "Done."), value(r#"{"n":1e400,"a":[]}"#));
    success.warnings.push(Warning::new(WarningCode::LowConfidence, "low"));
    success.emitted_context = Some(value("[1]"));
    success.handoff = Some(value("{}"));
    assert_eq!(written_and_read(&success), Some(success));

    let error = ErrorBody::new(Code::Timeout, "slow").suggest("Wait.").with_details(value(r#"{"a":1}"#));
    let mut failure = Envelope::failure(error.with_recoverable(false));
    assert_eq!(written_and_read(&failure), Some(failure.clone()));
    let declared = ErrorBody::with_code(ErrorCode::Declared("E5001".to_owned()), "no");
    failure.outcome = Outcome::Failure { error: declared, partial_data: Some(value("{}")) };
    assert_eq!(written_and_read(&failure), Some(failure));
}

#[test]
fn what_is_no_envelope_is_refused() {
    for text in [
        "1",
        "{}",
        r#"{"ok":true,"meta":{"confidence":1,"risk":"low","explain":"a"}}"#,
        r#"{"ok":true,"data":{}}"#,
        r#"{"ok":false,"meta":{"confidence":1,"risk":"low","explain":"a"},"error":{"code":"X","message":"a"}}"#,
        r#"{"ok":true,"meta":{"confidence":1,"risk":"low","explain":"a"},"data":{},"_warnings":[1]}"#,
    ] {
        assert_eq!(Envelope::read(Value::parse(text).unwrap().node()), None, "{text}");
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Review<'a> {
    verdict: &'a str,
    issues: Vec<String>,
}

fn success(data: &str) -> Envelope {
    let meta = Meta::for_failure("only its data matter");
    Envelope::success(meta, Value::parse(data).unwrap())
}

#[test]
fn errors_display_code_name_message_and_suggestion() {
    let error = ErrorBody::new(Code::InvalidReference, "`a.png` does not exist");
    assert_eq!(error.to_string(), "E1006 INVALID_REFERENCE: `a.png` does not exist");
    let error = error.suggest("Check the path.");
    assert_eq!(error.to_string(), "E1006 INVALID_REFERENCE: `a.png` does not exist (help: Check the path.)");
    let declared = ErrorBody::with_code(ErrorCode::Declared("E5001".to_owned()), "no stock");
    assert_eq!((declared.to_string().as_str(), declared.recoverable), ("E5001: no stock", None));
}

#[test]
fn converts_data_to_own_type() {
    let envelope = success(r#"{"verdict": "approve", "issues": ["one"]}"#);
    let review: Review<'_> = envelope.data_as().unwrap();
    assert_eq!(review, Review { verdict: "approve", issues: vec!["one".to_owned()] });
}

#[test]
fn mismatch_names_the_path() {
    let envelope = success(r#"{"verdict": "approve", "issues": [7]}"#);
    let error = envelope.data_as::<Review<'_>>().unwrap_err();
    assert!(matches!(error, DataError::Form(_)));
    assert!(error.to_string().contains("issues[0]"), "{error}");
}

#[test]
fn failed_run_is_an_error_with_its_code() {
    let failed = Envelope::failure(ErrorBody::new(Code::InvalidInput, "no text"));
    let error: Box<dyn std::error::Error> = Box::new(failed.clone());
    assert_eq!(error.to_string(), "E1001 INVALID_INPUT: no text");
    assert_eq!(failed.data_as::<Review<'_>>().unwrap_err().to_string(), "E1001 INVALID_INPUT: no text");
    assert_eq!(failed.into_result().unwrap_err().to_string(), "E1001 INVALID_INPUT: no text");
}
