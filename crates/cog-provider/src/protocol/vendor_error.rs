//! The errors of vendors, in the forms in which they report them.

use std::{fmt, time::Duration};

use cog_json::{End, Limits, Node, Parser, Value};

use super::reply::{elements, string};

/// An error message of a vendor, from the body of an error reply or from within a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's name or number for the error: `rate_limit_exceeded`.
    pub code: Option<String>,
    /// The vendor's message.
    pub message: String,
    /// The HTTP status that the error states, 400 to 599. An error within a reply with status 200 has only this one.
    pub status: Option<u16>,
    /// The reason in the details of Google's errors: `API_KEY_INVALID`.
    pub reason: Option<String>,
    /// The limit that its details name.
    pub limit: Option<ReachedLimit>,
    /// The text of the model, if the error is that the vendor's own check rejected it.
    pub generated: Option<String>,
    /// Whether it was inside the error of a gateway. The status of the gateway's reply then only says that the provider failed.
    pub is_nested: bool,
}

impl VendorError {
    /// Creates the error for an error event without a message.
    pub(crate) fn without_message() -> Self {
        Self::from_text("an error without a message")
    }

    /// Creates an error that consists only of text.
    pub(crate) fn from_text(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Returns the error in an event that reports one, also if it says nothing about it.
    pub(crate) fn of_event(event: Node<'_>) -> Self {
        Self::read(event).unwrap_or_else(Self::without_message)
    }

    /// Returns the error in a body, in any of the formats that vendors use: `{error: {message, code | type | status}}`,
    /// `{error: text}`, `{message}`, `{detail}`, `{error_message, error_code}`, `{base_resp}`, `{statusCode}`, or an array of
    /// one of these. A gateway's error may contain the error of the provider behind it, which then decides.
    pub(crate) fn read(body: Node<'_>) -> Option<Self> {
        read(body, MAX_DEPTH)
    }
}

impl std::error::Error for VendorError {}

impl fmt::Display for VendorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) if !self.message.contains(code.as_str()) => write!(f, "{} ({code})", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

/// The maximum number of errors within each other. Gateways behind gateways wrap an error once each.
const MAX_DEPTH: u32 = 4;

/// The members that contain an error, of which the first one that is present applies.
const ERRORS: [&str; 3] = ["error", "errors", "detail"];
const MESSAGES: [&str; 8] =
    ["message", "msg", "detail", "error", "error_message", "error_msg", "error_description", "status_msg"];
const CODES: [&str; 7] = ["code", "error_code", "type", "error_type", "status", "status_code", "statusCode"];

fn read(body: Node<'_>, depth: u32) -> Option<VendorError> {
    let body = if body.is_array() { body.at(0)? } else { body };
    let member = ERRORS.iter().find_map(|key| body.get(key).filter(|error| !error.is_null()));
    let error = member.or_else(|| failed_base_resp(body)).unwrap_or(body);
    let error = if error.is_array() { error.at(0)? } else { error };
    if let Some(inner) = inner_error(error, depth) {
        let status = inner.status.or_else(|| status_of(error)).or_else(|| status_of(body));
        return Some(VendorError { status, is_nested: true, ..inner });
    }
    if let Some(text) = error.as_str() {
        // `{error: "Bad Request", message: "…"}`: the error is only a name.
        let message = body.get_str("message").filter(|message| !message.is_empty());
        return Some(VendorError {
            code: message.map(|_| text.to_owned()).or_else(|| code_of(body)),
            message: message.unwrap_or(text).to_owned(),
            status: status_of(body),
            limit: ReachedLimit::read(body, message.unwrap_or(text)),
            ..VendorError::default()
        });
    }
    let Some(message) = message_of(error) else { return wordless(error, member.is_some()) };
    Some(VendorError {
        code: code_of(error),
        message: with_location(message, error),
        status: status_of(error).or_else(|| status_of(body)),
        reason: elements(error, "details").find_map(|detail| string(detail, "reason")),
        limit: ReachedLimit::read(error, message),
        generated: string(error, "failed_generation"),
        is_nested: false,
    })
}

fn message_of(error: Node<'_>) -> Option<&str> {
    MESSAGES.iter().find_map(|key| error.get(key)?.as_str())
}

/// Returns an error without a message: `{error: {type: "overloaded"}}`. Outside a member for errors only a status in numbers is
/// one, since replies have a `status` and a `type` too.
fn wordless(error: Node<'_>, is_member: bool) -> Option<VendorError> {
    if !error.is_object() || error.is_empty() {
        return None;
    }
    let number = CODES.iter().filter_map(|key| error.get(key)).find_map(status_number);
    if !is_member && number.is_none() {
        return None;
    }
    let code = code_of(error);
    let message = match (&code, number) {
        (_, Some(status)) => format!("status {status}"),
        (Some(code), None) => code.clone(),
        (None, None) => VendorError::without_message().message,
    };
    let limit = ReachedLimit::read(error, &message);
    Some(VendorError { code, message, status: status_of(error), limit, ..VendorError::default() })
}

fn code_of(error: Node<'_>) -> Option<String> {
    let mut codes = CODES.iter().filter_map(|key| error.get(key).and_then(name_or_number));
    // The type of an event that reports an error says nothing about it.
    codes.find(|code| code != "error")
}

/// Returns MiniMax's `base_resp` if it reports a failure. It is part of every reply, with the code 0 for success.
fn failed_base_resp(body: Node<'_>) -> Option<Node<'_>> {
    let found = body.get("base_resp")?;
    (found.get("status_code")?.as_i64()? != 0).then_some(found)
}

/// Returns the error of the provider behind a gateway: as an object, or as the text of its body in OpenRouter's
/// `metadata.raw`, in the message, or as the error itself. Gateways also put words around that text.
fn inner_error(error: Node<'_>, depth: u32) -> Option<VendorError> {
    let depth = depth.checked_sub(1)?;
    let raw = error.pointer("/metadata/raw").or_else(|| error.get("error"));
    let raw = raw.or_else(|| error.get("message")).unwrap_or(error);
    if raw.is_object() && raw.id() != error.id() {
        return read(raw, depth);
    }
    let text = raw.as_str()?;
    let body = text.trim().trim_start_matches("data:").trim_start();
    if body.starts_with(['{', '['])
        && let Ok(body) = Value::parse(body)
    {
        return read(body.node(), depth);
    }
    if let Some(inner) = error_in_words(text, depth) {
        return Some(inner);
    }
    // A body that is no JSON is the provider's message. A message is itself.
    let is_raw = error.pointer("/metadata/raw").is_some() && !text.trim().is_empty();
    let is_broken = body.starts_with(['{', '[']);
    (is_raw && !is_broken).then(|| VendorError { status: status_of(error), ..VendorError::from_text(text) })
}

/// Returns the error in a message with a body inside it, as LiteLLM and Python's clients write it:
/// `RateLimitError: PException - {"error": {…}}. Received Model Group=m`, `Error code: 400 - {'error': {…}}`.
fn error_in_words(text: &str, depth: u32) -> Option<VendorError> {
    let mut parser = Parser::tolerant(Limits::default());
    parser.push(text.get(text.find('{')?..)?.as_bytes(), &mut |_| {}).ok()?;
    let is_one = parser.finish(&mut |_| {}) == Ok(End::Complete) && !parser.has_second_object();
    let body = parser.into_value().filter(|_| is_one)?;
    // A message can also quote a part of the request.
    let is_error = ERRORS.iter().filter_map(|key| body.get(key)).any(|error| {
        let error = error.at(0).unwrap_or(error);
        error.is_string() || message_of(error).is_some()
    });
    let has_status = CODES.iter().filter_map(|key| body.get(key)).any(|code| status_number(code).is_some());
    let is_stated = message_of(body.node()).is_some() && has_status;
    if is_error || is_stated { read(body.node(), depth) } else { None }
}

/// Adds the location that some vendors send next to the message: `param`, or a list `loc`.
fn with_location(message: &str, error: Node<'_>) -> String {
    let location = string(error, "param")
        .unwrap_or_else(|| elements(error, "loc").filter_map(name_or_number).collect::<Vec<_>>().join("."));
    if location.is_empty() || message.contains(&location) {
        return message.to_owned();
    }
    format!("{message} ({location})")
}

fn name_or_number(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned).or_else(|| node.as_i64().map(|number| number.to_string()))
}

// The HTTP status that an error states.

/// Returns the status that an error names: as a number, otherwise by the name of its kind.
fn status_of(error: Node<'_>) -> Option<u16> {
    let mut members = CODES.iter().filter_map(|key| error.get(key));
    let mut names = members.clone().filter_map(Node::as_str);
    members.find_map(status_number).or_else(|| names.find_map(status_by_name))
}

fn status_number(node: Node<'_>) -> Option<u16> {
    let number = node.as_u64().or_else(|| node.as_str()?.parse().ok())?;
    let number =
        NUMBERS.iter().find(|(own, _)| *own == number).map_or(number, |(_, status)| u64::from(*status));
    u16::try_from(number).ok().filter(|status| (400..=599).contains(status))
}

/// The numbers of MiniMax and of Zhipu that are no status: a limited rate, a rejected key, an account without money, an invalid request.
const NUMBERS: &[(u64, u16)] = &[
    (1002, 429),
    (1004, 401),
    (1008, 402),
    // Tokens, connections and their growth.
    (1039, 429),
    (1041, 429),
    (1113, 402),
    (1302, 429),
    (1303, 429),
    (2013, 400),
    (2045, 429),
    (2049, 401),
    // The plan is used up for hours.
    (2056, 402),
];

/// The kinds of errors with their statuses: a part of the names that vendors use, in lower case and without separators.
/// The first one that a name contains applies.
const KINDS: &[(&str, u16)] = &[
    ("invalidrequest", 400),
    ("invalidargument", 400),
    ("invalidparameter", 400),
    ("invalidvalue", 400),
    ("badrequest", 400),
    ("failedprecondition", 400),
    ("unsupportedparameter", 400),
    ("unsupportedvalue", 400),
    ("unknownparameter", 400),
    ("extraforbidden", 400),
    ("validation", 400),
    ("unauthenticated", 401),
    ("unauthorized", 401),
    ("authentication", 401),
    ("invalidapikey", 401),
    ("permission", 403),
    ("forbidden", 403),
    ("notfound", 404),
    ("requesttoolarge", 413),
    ("ratelimit", 429),
    ("resourceexhausted", 429),
    ("toomanyrequests", 429),
    ("badgateway", 502),
    ("overloaded", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("deadlineexceeded", 504),
    ("internal", 500),
    ("servererror", 500),
    ("apierror", 500),
];

fn status_by_name(name: &str) -> Option<u16> {
    let letters = name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase());
    let name: String = letters.collect();
    KINDS.iter().find(|(kind, _)| name.contains(kind)).map(|(_, status)| *status)
}

// What an error says about the limit that was reached, apart from its words: whether it passes, and when.
//
// Vendors send the same words for a limit per minute and for an account that is used up ("You exceeded your current
// quota"), so the details decide first.

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// Requests are accepted again, after this time if the vendor names one.
    Passing(Option<Duration>),
    /// Waiting for minutes does not help: the limit is one per day, or it is 0.
    Spent,
}

/// The maximum delay that is read: a year.
const MAX_DELAY: f64 = 366.0 * 86_400.0;

impl ReachedLimit {
    /// Reads the details of an error, then the numbers in its message.
    pub(crate) fn read(error: Node<'_>, message: &str) -> Option<Self> {
        let delay = elements(error, "details").find_map(|detail| duration(detail.get("retryDelay")?));
        let delay = delay.or_else(|| delay_in(message));
        let mut violations = elements(error, "details").flat_map(|detail| elements(detail, "violations"));
        // Of several limits, the one that lasts longest decides.
        if violations.clone().any(is_spent) || is_zero_in(message) {
            Some(Self::Spent)
        } else if delay.is_some() || violations.any(|violation| id_has(violation, "PerMinute")) {
            Some(Self::Passing(delay))
        } else {
            None
        }
    }

    /// Returns the delay that the vendor names.
    #[cfg(feature = "http")]
    pub(crate) fn delay(self) -> Option<Duration> {
        match self {
            Self::Passing(delay) => delay,
            Self::Spent => None,
        }
    }
}

/// Returns whether a violated quota is one per day, or grants nothing.
fn is_spent(violation: Node<'_>) -> bool {
    let value = violation.get("quotaValue");
    let is_zero = value.is_some_and(|value| value.as_str() == Some("0") || value.as_u64() == Some(0));
    is_zero || id_has(violation, "PerDay")
}

fn id_has(violation: Node<'_>, part: &str) -> bool {
    violation.get_str("quotaId").is_some_and(|id| id.contains(part))
}

/// Reads a duration of protocol buffers: `2.04s`.
fn duration(node: Node<'_>) -> Option<Duration> {
    seconds(node.as_str()?.strip_suffix('s')?)
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..MAX_DELAY).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Returns whether a message names a limit of 0: `limit: 0, model: …`.
fn is_zero_in(message: &str) -> bool {
    message
        .split("limit: 0")
        .skip(1)
        .any(|after| !after.starts_with(|next: char| next.is_ascii_digit() || next == '.'))
}

/// Reads the delay in a message: `Please retry in 2.04s`, `Please try again in 6m0s`.
fn delay_in(message: &str) -> Option<Duration> {
    let after =
        ["retry in ", "try again in "].into_iter().find_map(|words| Some(message.split_once(words)?.1))?;
    let mut rest = after;
    let mut total: Option<Duration> = None;
    loop {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { return total };
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b'h', ..] => (3_600.0, 1),
            [b'm', ..] => (60.0, 1),
            [b's', ..] => (1.0, 1),
            [b' ', b's', b'e', b'c', ..] => (1.0, unit.len()),
            _ => return total,
        };
        let more = seconds(&(number * factor).to_string())?;
        total = Some(total.unwrap_or_default() + more);
        rest = unit.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn found(body: &str) -> Option<VendorError> {
        VendorError::read(Value::parse(body).unwrap().node())
    }

    #[test]
    fn reads_errors_in_every_format() {
        for (body, code, message) in [
            (r#"{"error":{"message":"m","type":"t","code":"c"}}"#, Some("c"), "m"),
            (r#"{"error":{"message":"m","type":"t","code":null}}"#, Some("t"), "m"),
            (r#"{"type":"error","error":{"type":"t","message":"m"}}"#, Some("t"), "m"),
            (r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#, Some("503"), "m"),
            (r#"{"error":"m"}"#, None, "m"),
            (r#"{"object":"error","message":"m","type":"t","code":40001}"#, Some("40001"), "m"),
            (r#"{"detail":"m"}"#, None, "m"),
            (r#"{"detail":[{"msg":"m","type":"t"}]}"#, Some("t"), "m"),
            (r#"{"errors":[{"message":"m"}]}"#, None, "m"),
            (r#"{"choices":null,"error_type":"t","error_message":"m","error_code":17}"#, Some("17"), "m"),
            (r#"{"base_resp":{"status_code":1008,"status_msg":"m"}}"#, Some("1008"), "m"),
            (r#"{"error":"Bad Request","message":"m","status":400}"#, Some("Bad Request"), "m"),
            (r#"{"type":"error","message":"m","code":null}"#, None, "m"),
            (r#"{"statusCode":429}"#, Some("429"), "status 429"),
            (r#"{"error":{"statusCode":503,"requestId":"r"}}"#, Some("503"), "status 503"),
            (r#"{"error":{"type":"overloaded_error"}}"#, Some("overloaded_error"), "overloaded_error"),
            (r#"{"errors":[{"traceId":"r"}]}"#, None, "an error without a message"),
        ] {
            let found = found(body).unwrap();
            assert_eq!((found.code.as_deref(), found.message.as_str()), (code, message), "{body}");
        }
        for body in
            ["{}", r#"{"status":"completed","code":200}"#, r#"{"type":"overloaded"}"#, r#"{"error":{}}"#]
        {
            assert_eq!(found(body), None, "{body}");
        }
        assert_eq!(found(r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}"#), None);
    }

    #[test]
    fn error_states_its_status_as_a_number_or_by_its_kind() {
        for (body, status) in [
            (r#"{"error":{"message":"m","code":402}}"#, Some(402)),
            (r#"{"error":{"message":"m","code":"400"}}"#, Some(400)),
            (r#"{"error":{"message":"m","code":"slow_down","status":503}}"#, Some(503)),
            (r#"{"error":"m","status_code":429}"#, Some(429)),
            (r#"{"message":"m","code":40001}"#, None),
            (r#"{"base_resp":{"status_code":1039,"status_msg":"m"}}"#, Some(429)),
            (r#"{"base_resp":{"status_code":2056,"status_msg":"m"}}"#, Some(402)),
            (r#"{"error":{"httpStatusCode":0,"statusCode":"413"}}"#, Some(413)),
            (r#"{"error":{"message":"m","code":200}}"#, None),
            (r#"{"error":{"message":"m","type":"invalid_request_error"}}"#, Some(400)),
            (r#"{"error":{"message":"m","type":"BadRequestError","code":"x"}}"#, Some(400)),
            (r#"{"error":{"message":"m","status":"RESOURCE_EXHAUSTED"}}"#, Some(429)),
            (r#"{"error":{"message":"m","type":"overloaded_error"}}"#, Some(503)),
            (r#"{"error":{"message":"m","type":"NotFoundError"}}"#, Some(404)),
            (r#"{"error":{"message":"m","type":"something_else"}}"#, None),
        ] {
            assert_eq!(found(body).unwrap().status, status, "{body}");
        }
    }

    #[test]
    fn error_of_the_provider_behind_a_gateway_decides() {
        let raw = |raw: &str| {
            let raw = serde_json::Value::from(raw);
            format!(
                r#"{{"error":{{"message":"Provider returned error","code":502,"metadata":{{"raw":{raw},"provider_name":"P"}}}}}}"#
            )
        };
        let inner =
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#;
        for body in [
            raw(inner),
            raw(&format!("data: {inner}\n\n")),
            format!(r#"{{"error":{{"message":"Provider returned error","metadata":{{"raw":{inner}}}}}}}"#),
            format!(r#"{{"error":{inner}}}"#),
            format!(r#"{{"error":{}}}"#, serde_json::Value::from(inner)),
            format!(r#"{{"error":{{"message":{}}}}}"#, serde_json::Value::from(inner)),
        ] {
            let found = found(&body).unwrap();
            assert_eq!(found.to_string(), "prompt is too long (invalid_request_error)", "{body}");
            assert_eq!(found.status, Some(400), "{body}");
        }
        let plain = found(&raw("upstream is down")).unwrap();
        assert_eq!((plain.to_string().as_str(), plain.status), ("upstream is down", Some(502)));
        assert_eq!(found(&raw("")).unwrap().message, "Provider returned error");
        assert_eq!(found(&raw("{broken")).unwrap().message, "Provider returned error");
    }

    #[test]
    fn error_inside_the_words_of_a_gateway_decides() {
        let in_words = |words: &str, code: &str| {
            let words = serde_json::Value::from(words);
            format!(r#"{{"error":{{"message":{words},"type":null,"code":"{code}"}}}}"#)
        };
        for (words, code, message, status) in [
            (
                r#"p.Wrong: P - {"error":{"message":"m","code":"context_length_exceeded"}}"#,
                "500",
                "m (context_length_exceeded)",
                500,
            ),
            (
                r#"gateway: {"error": {"message": "m", "status": "INVALID_ARGUMENT"}}. Group=g"#,
                "500",
                "m (INVALID_ARGUMENT)",
                400,
            ),
            ("Error code: 400 - {'error': {'message': \"it's m\", 'code': 402}}", "500", "it's m (402)", 402),
            (r#"b'{"message": "m", "statusCode": 413}' came back"#, "502", "m (413)", 413),
            (r#"P - [{"error": {"code": 429, "message": "m"}}]"#, "503", "m (429)", 429),
        ] {
            let found = found(&in_words(words, code)).unwrap();
            assert_eq!((found.to_string().as_str(), found.status), (message, Some(status)), "{words}");
            assert!(found.is_nested, "{words}");
        }
        for words in [
            r#"schema {"type":"object","properties":{"error":{"type":"string"}}} is not accepted"#,
            r#"input {"error":{"type":"string"}} is not accepted"#,
            r#"either {"error":"a"} or {"error":"b"}"#,
            "no {name}",
        ] {
            let found = found(&in_words(words, "400")).unwrap();
            assert_eq!((found.message.as_str(), found.is_nested), (words, false));
        }
    }

    #[test]
    fn errors_within_each_other_without_end_have_no_inner_error() {
        let mut body = r#"{"message":"m"}"#.to_owned();
        for _ in 0..40 {
            body = format!(r#"{{"error":{body},"message":"outer"}}"#);
        }
        assert!(found(&body).is_some());
    }

    fn read(details: &str, message: &str) -> Option<ReachedLimit> {
        let error = Value::parse(&format!(r#"{{"details": {details}}}"#)).unwrap();
        ReachedLimit::read(error.node(), message)
    }

    fn passing(seconds: f64) -> Option<ReachedLimit> {
        Some(ReachedLimit::Passing(Some(Duration::from_secs_f64(seconds))))
    }

    #[test]
    fn details_decide() {
        let failure = |id: &str, more: &str| {
            format!(
                r#"{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{{"quotaId": "{id}"{more}}}]}}"#
            )
        };
        let retry = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}"#;
        let minute = failure("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "");
        let day = failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "");
        let none = failure("GenerateContentInputTokensPerModelPerMinute-FreeTier", r#", "quotaValue": "0""#);
        for (details, expected) in [
            (format!("[{minute}]"), Some(ReachedLimit::Passing(None))),
            (format!("[{minute}, {retry}]"), passing(2.5)),
            (format!("[{retry}]"), passing(2.5)),
            (format!("[{day}, {retry}]"), Some(ReachedLimit::Spent)),
            (format!("[{minute}, {day}]"), Some(ReachedLimit::Spent)),
            (format!("[{none}, {retry}]"), Some(ReachedLimit::Spent)),
            (r#"[{"retryDelay": "-1s"}, {"retryDelay": 3}, 5]"#.to_owned(), None),
            ("\"text\"".to_owned(), None),
        ] {
            assert_eq!(read(&details, "You exceeded your current quota"), expected, "{details}");
        }
    }

    #[test]
    fn message_names_a_delay_or_a_limit_of_zero() {
        for (message, expected) in [
            ("Please retry in 2.04s.", passing(2.04)),
            ("Rate limit reached. Please try again in 6m0.5s. Visit …", passing(360.5)),
            ("try again in 20ms", passing(0.02)),
            ("try again in 1h2m3s", passing(3_723.0)),
            ("try again in 20 seconds", passing(20.0)),
            ("try again in a while", None),
            ("try again in 5 days", None),
            ("Quota exceeded, limit: 0, model: x. Please retry in 30s.", Some(ReachedLimit::Spent)),
            ("limit: 0", Some(ReachedLimit::Spent)),
            ("limit: 0.5, retry in 3s", passing(3.0)),
            ("limit: 05", None),
            ("", None),
        ] {
            assert_eq!(read("[]", message), expected, "{message}");
        }
    }
}
