use super::*;

fn error(code: Option<&str>, message: &str) -> VendorError {
    VendorError { code: code.map(str::to_owned), ..VendorError::from_text(message) }
}

/// Returns the category for a request without media.
fn kind_without_media(status: Option<u16>, error: &VendorError) -> Kind {
    kind(status, error, false)
}

/// Returns the category for a status and a message.
fn kind_of(status: u16, message: &str) -> Kind {
    kind_without_media(Some(status), &error(None, message))
}

#[test]
fn recognizes_context_overflow_of_every_vendor() {
    for (status, message) in [
        (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 129000 tokens.",
        ),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "the input length exceeds the context length"),
        (400, "request (9000 tokens) exceeds the available context size (4096 tokens)"),
        (413, "Please reduce the length of the messages or completion."),
        (500, "input is too long: exceeds context window"),
    ] {
        assert_eq!(kind_of(status, message), Kind::Context, "{message}");
    }
    assert_eq!(
        kind_without_media(Some(400), &error(Some("context_length_exceeded"), "too long")),
        Kind::Context
    );
}

#[test]
fn recognizes_unknown_model_of_every_vendor() {
    for (status, message) in [
        (404, "The model `gpt-9` does not exist or you do not have access to it."),
        (400, "Model Not Exist"),
        (400, "Invalid model: mistral-huge"),
        (404, "model \"llama9\" not found, try pulling it first"),
    ] {
        assert_eq!(kind_of(status, message), Kind::Model, "{message}");
    }
    assert_eq!(kind_without_media(Some(400), &error(Some("model_not_found"), "no")), Kind::Model);
}

#[test]
fn recognizes_content_filter_of_every_vendor() {
    for (status, code, message) in [
        (400, Some("content_filter"), "filtered"),
        (
            400,
            Some("content_policy_violation"),
            "Your request was rejected as a result of our safety system.",
        ),
        (400, Some("moderation_blocked"), "Your request was rejected by the safety system."),
        (400, Some("data_inspection_failed"), "Input data may contain inappropriate content."),
        (
            400,
            None,
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        ),
        (403, Some("403"), "x/y requires moderation and your input was flagged for \"violence\"."),
    ] {
        assert_eq!(
            kind_without_media(Some(status), &error(code, message)),
            Kind::Filtered("content_filter"),
            "{message}"
        );
    }
    assert_eq!(
        kind_without_media(Some(400), &error(Some("invalid_prompt"), "x")),
        Kind::Filtered("invalid_prompt")
    );
    assert_eq!(
        kind_without_media(None, &error(Some("invalid_prompt"), "x")),
        Kind::Filtered("invalid_prompt")
    );
    assert_eq!(
        kind_without_media(Some(400), &error(Some("invalid_value"), "content_filter is unknown")),
        Kind::Rejected
    );
}

#[test]
fn recognizes_invalid_key_without_status() {
    assert_eq!(kind_of(400, "API key not valid. Please pass a valid API key."), Kind::Key);
    assert_eq!(kind_of(401, "x"), Kind::Key);
    assert_eq!(kind_without_media(None, &error(Some("authentication_error"), "x")), Kind::Key);
}

#[test]
fn exhausted_quota_is_not_a_rate_limit() {
    assert_eq!(kind_of(429, "Rate limit reached for requests"), Kind::Rate);
    assert_eq!(
        kind_of(429, "You exceeded your current quota, please check your plan and billing details."),
        Kind::Quota
    );
    assert_eq!(kind_without_media(Some(429), &error(Some("insufficient_quota"), "x")), Kind::Quota);
    assert_eq!(kind_of(402, "x"), Kind::Quota);
}

#[test]
fn account_without_money_is_a_quota_whatever_the_status() {
    let credit =
        "Your credit balance is too low to access the API. Please go to Plans & Billing to purchase credits.";
    for status in [400, 401, 403, 429] {
        assert_eq!(kind_of(status, credit), Kind::Quota, "{status}");
        assert_eq!(
            kind_without_media(Some(status), &error(Some("insufficient_quota"), "x")),
            Kind::Quota,
            "{status}"
        );
        assert_eq!(kind_of(status, "Insufficient balance. Please recharge."), Kind::Quota, "{status}");
    }
    assert_eq!(kind_of(400, "Invalid schema: `billing_address` is not allowed"), Kind::Rejected);
    assert_eq!(kind_of(403, "The key has no access to this model"), Kind::Key);
    assert_eq!(kind_without_media(None, &error(Some("insufficient_quota"), "x")), Kind::Quota);
}

#[test]
fn details_of_a_limit_decide_before_its_words() {
    let words = "You exceeded your current quota, please check your plan and billing details.";
    let with =
        |limit: ReachedLimit, code: &str| VendorError { limit: Some(limit), ..error(Some(code), words) };
    let passing = ReachedLimit::Passing(Some(Duration::from_millis(2_040)));
    for status in [Some(429), None] {
        assert_eq!(kind_without_media(status, &with(passing, "429")), Kind::Rate);
        assert_eq!(
            kind_without_media(status, &with(ReachedLimit::Passing(None), "RESOURCE_EXHAUSTED")),
            Kind::Rate
        );
        assert_eq!(kind_without_media(status, &with(ReachedLimit::Spent, "429")), Kind::Quota);
    }
    assert_eq!(kind_without_media(Some(429), &with(passing, "insufficient_quota")), Kind::Quota);
    assert_eq!(kind_without_media(Some(402), &with(passing, "402")), Kind::Quota);
    assert_eq!(
        kind_without_media(Some(503), &with(passing, "503")),
        Kind::Down,
        "the delay is kept, the kind is not changed"
    );
}

#[test]
fn separates_temporary_from_permanent_statuses() {
    for status in [408, 409, 425, 500, 502, 503, 504, 520, 529] {
        assert_eq!(kind_of(status, "x"), Kind::Down, "{status}");
    }
    assert_eq!(kind_of(413, "x"), Kind::Context);
    for status in [400, 405, 415, 422] {
        assert_eq!(kind_of(status, "x"), Kind::Rejected, "{status}");
    }
}

#[test]
fn classifies_errors_within_a_stream() {
    assert_eq!(kind_without_media(None, &error(Some("rate_limit_error"), "x")), Kind::Rate);
    assert_eq!(kind_without_media(None, &error(Some("429"), "slow")), Kind::Rate);
    assert_eq!(kind_without_media(None, &error(Some("overloaded_error"), "Overloaded")), Kind::Down);
}

#[test]
fn describes_other_bodies_by_their_first_words() {
    assert_eq!(describe(502, b"<html><h1>502 Bad Gateway</h1>\n<hr>nginx</html>"), "502 Bad Gateway nginx");
    assert_eq!(describe(503, "x".repeat(5000).as_bytes()).len(), 120);
    assert_eq!(describe(500, b" \n"), "status 500");
}

#[test]
fn bodies_of_a_limit_are_told_from_those_of_a_spent_account() {
    let google = |message: &str, details: &str| {
        format!(
            r#"{{"error": {{"code": 429, "message": "{message}", "status": "RESOURCE_EXHAUSTED", "details": [{details}]}}}}"#
        )
    };
    let violated = |id: &str, value: &str| {
        format!(
            r#"{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{{"quotaMetric": "m", "quotaId": "{id}", "quotaValue": "{value}"}}]}}"#
        )
    };
    let retry = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.25s"}"#;
    let words = "You exceeded your current quota, please check your plan and billing details.";
    let minute = violated("TestRequestsPerMinutePerProject", "15");
    let openai = |code: &str, message: &str| {
        format!(r#"{{"error": {{"message": "{message}", "type": "{code}", "code": "{code}"}}}}"#)
    };
    let wait = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    for (status, body, expected, delay) in [
        (429, google(words, &format!("{minute}, {retry}")), Kind::Rate, wait(7.25)),
        (429, google(words, &minute), Kind::Rate, None),
        (429, google(words, retry), Kind::Rate, wait(7.25)),
        (429, google(&format!("{words} Please retry in 3.5s."), ""), Kind::Rate, wait(3.5)),
        (429, google(words, ""), Kind::Quota, None),
        (
            429,
            google(words, &format!("{}, {retry}", violated("TestRequestsPerDayPerProject", "50"))),
            Kind::Quota,
            None,
        ),
        (
            429,
            google(words, &format!("{}, {retry}", violated("TestTokensPerMinutePerProject", "0"))),
            Kind::Quota,
            None,
        ),
        (429, google("Resource has been exhausted (e.g. check quota).", ""), Kind::Rate, None),
        (503, google("The model is overloaded.", retry), Kind::Down, wait(7.25)),
        (429, openai("insufficient_quota", words), Kind::Quota, None),
        (
            429,
            openai("rate_limit_exceeded", "Limit 3, used 3. Please try again in 20s."),
            Kind::Rate,
            wait(20.0),
        ),
        (
            402,
            r#"{"error": {"message": "More credits are required", "code": 402}}"#.to_owned(),
            Kind::Quota,
            None,
        ),
    ] {
        let found = VendorError::read(Value::parse(&body).unwrap().node()).unwrap();
        assert_eq!(kind_without_media(Some(status), &found), expected, "{body}");
        assert_eq!(found.limit.and_then(ReachedLimit::delay), delay, "{body}");
    }
}
