//! The category of a vendor's error: what its status, its code and its details say for certain, then its words.
//!
//! Vendors have no common codes, and many have none at all, so the words decide often. Each rule is a pair of what an
//! error is about and what is wrong with it, which also covers vendors that nobody has listed.

use crate::protocol::{ReachedLimit, VendorError};

/// The category of an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Key,
    Model,
    /// The model does not accept the media of the request.
    Media,
    Context,
    Rate,
    Quota,
    Rejected,
    /// A content filter, with `details.reason`.
    Filtered(&'static str),
    Down,
}

/// Returns the category of an error. `status` is the status of the reply, otherwise the one that the error states.
/// `has_media` is true if the request contains media.
pub(super) fn kind(status: Option<u16>, error: &VendorError, has_media: bool) -> Kind {
    let text = Text::new(error);
    // The order matters: messages share words. What the status or a code says for certain comes before words of the
    // message.
    if let Some(reason) = filter_reason(error, &text).filter(|_| !matches!(status, Some(401 | 429 | 500..))) {
        return Kind::Filtered(reason);
    }
    match status {
        Some(402) => Kind::Quota,
        // More than the limit of a minute: no wait makes room for it.
        Some(429) if text.mentions(&["request too large"]) => Kind::Context,
        // Details decide before words, which are often the same for both.
        Some(429) if error.limit == Some(ReachedLimit::Spent) => Kind::Quota,
        Some(429) if error.code.as_deref() == Some("insufficient_quota") => Kind::Quota,
        Some(429) if error.limit.is_some() => Kind::Rate,
        Some(429) if text.mentions(QUOTA) || text.is_about_money() => Kind::Quota,
        Some(429) => Kind::Rate,
        Some(400..=499) if text.is_about_money() => Kind::Quota,
        Some(401 | 403) => Kind::Key,
        _ if has_media && text.refuses_media() => Kind::Media,
        Some(404) => Kind::Model,
        Some(413) => Kind::Context,
        _ if text.mentions(CONTEXT) => Kind::Context,
        Some(408 | 409 | 425 | 500..) => Kind::Down,
        _ if text.is_about_key() => Kind::Key,
        _ if text.mentions(MODEL) => Kind::Model,
        Some(_) => Kind::Rejected,
        None if text.is_about_limit() && error.limit == Some(ReachedLimit::Spent) => Kind::Quota,
        None if text.is_about_limit() && error.limit.is_some() => Kind::Rate,
        None if text.mentions(QUOTA) || text.is_about_money() => Kind::Quota,
        None if text.mentions(RATE) => Kind::Rate,
        None => Kind::Down,
    }
}

/// Returns whether a reply of status 404 is about the model or its media. Any other 404 is about the URL.
pub(super) fn is_about_model(error: &VendorError) -> bool {
    let text = Text::new(error);
    text.mentions(&["model"]) || text.refuses_media()
}

/// Returns `details.reason` if a content filter or policy refused the request (ruling R70).
fn filter_reason(error: &VendorError, text: &Text) -> Option<&'static str> {
    let code = error.code.as_deref().unwrap_or_default().to_ascii_lowercase();
    if code.contains("invalid_prompt") {
        Some("invalid_prompt")
    } else if contains_any(&code, FILTER_CODES) || text.mentions(FILTER) {
        Some("content_filter")
    } else {
        None
    }
}

const FILTER_CODES: &[&str] = &[
    "content_filter",
    "content_policy",
    "contentfilter",
    "responsibleaipolicyviolation",
    "moderation_blocked",
    "data_inspection_failed",
    "datainspectionfailed",
];
const FILTER: &[&str] =
    &["content management policy", "requires moderation and your input was flagged", "new sensitive"];
const CONTEXT: &[&str] = &[
    "context length",
    "context limit",
    "context window",
    "context size",
    "exceed context",
    "maximum context",
    "input token count",
    "maximum number of tokens",
    "maximum input length",
    "prompt is too long",
    "input is too long",
    "reduce the length",
    "too many tokens",
    "too many input tokens",
    "range of input length",
    "model token limit",
    "max new tokens` must be",
    "超长",
];
const MODEL: &[&str] = &["model not found", "model not exist", "invalid model", "unknown model"];
/// Words that under 429 mean an account that is used up, unless the details say otherwise.
const QUOTA: &[&str] = &["exceeded your current quota", "billing"];
const RATE: &[&str] = &["rate limit", "429", "too many requests", "速率限制"];

/// What an account without money is about, and what is wrong with it (ruling R84).
const MONEY: Pair = Pair {
    subjects: &[
        "balance",
        "credit",
        "fund",
        "wallet",
        "user quota",
        "prepayment",
        "billing account",
        "余额",
        "额度",
    ],
    states: &[
        "insufficient",
        "not enough",
        "too low",
        "deplet",
        "exhaust",
        "used up",
        "used all",
        "ran out",
        "run out",
        "out of",
        "doesn't have any",
        "does not have any",
        "no remaining",
        "negative",
        "exceeded",
        "disabled",
        "closed",
        "suspended",
        "不足",
    ],
};
/// Words that mean such an account by themselves.
const NO_MONEY: &[&str] = &[
    "insufficient quota",
    "exceeded your current quota",
    "no resource package",
    "arrear",
    "overdue",
    "unpaid",
    "past due",
    "good standing",
    "payment required",
    "billing hard limit",
    "billing not active",
    "requires billing",
    "billing disabled",
    "spend limit",
    "spending limit",
    "spend cap",
    "spending cap",
    "api usage limit",
    "disabled for billing",
    "key limit exceeded",
    "trial key",
    "please recharge",
    "欠费",
];
/// What a rejected key is about, and what is wrong with it.
const KEY: Pair = Pair {
    subjects: &[
        "api key",
        "apikey",
        "api token",
        "access key",
        "access token",
        "auth token",
        "secret key",
        "bearer token",
        "authorization header",
        "credential",
    ],
    states: &[
        "invalid",
        "not valid",
        "not found",
        "not exist",
        "no longer",
        "expired",
        "incorrect",
        "wrong",
        "revoked",
        "missing",
        "disabled",
        "deleted",
        "malformed",
        "unauthorized",
        "leaked",
    ],
};
/// What media are called, and how a model refuses them.
const MEDIA: Pair = Pair {
    subjects: &[
        "image",
        "vision",
        "multimodal",
        "multi modal",
        "audio",
        "video",
        "input file",
        "pdf",
        "document",
        "content must be a string",
        "content should be a string",
    ],
    states: &[
        "not support",
        "n't support",
        "unsupported",
        "only supported",
        "unknown variant",
        "not a multimodal",
        "not multimodal",
        "must be a string",
        "should be a string",
        "no endpoints found",
        "not accept",
        "not allowed",
        "not enabled",
        "missing data required for",
        "text only",
        "only text",
        "cannot process",
        "at most 0",
        "cannot read",
        "does not have",
        "not capable",
    ],
};
/// Words of errors about one file, which another file of the same kind may not have.
const ONE_FILE: &[&str] = &[
    "format",
    "mime",
    "media type",
    "image type",
    "file type",
    "too large",
    "size",
    "resolution",
    "dimension",
    "decode",
    "corrupt",
    "download",
    "fetch",
    "url is not",
];

/// What an error is about, and what is wrong with it. Both are in one sentence.
struct Pair {
    subjects: &'static [&'static str],
    states: &'static [&'static str],
}

impl Pair {
    fn is_in(&self, sentence: &str) -> bool {
        contains_any(sentence, self.subjects) && contains_any(sentence, self.states)
    }
}

fn contains_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// The words of an error: its code, its reason and its message, in lower case and with spaces between words.
struct Text {
    all: String,
    /// Without what the message quotes: names and values of the request, which are not the vendor's words.
    unquoted: String,
}

impl Text {
    fn new(error: &VendorError) -> Self {
        let code = error.code.as_deref().unwrap_or_default();
        let reason = error.reason.as_deref().unwrap_or_default();
        let all = format!("{code} {reason}. {}", error.message);
        let all = all.to_lowercase().replace(['_', '-'], " ");
        let unquoted = without_quotes(&all);
        Self { all, unquoted }
    }

    fn mentions(&self, phrases: &[&str]) -> bool {
        contains_any(&self.all, phrases)
    }

    fn has(&self, pair: &Pair) -> bool {
        self.unquoted.split(['.', '!', '?', ';', '\n', '。']).any(|sentence| pair.is_in(sentence))
    }

    fn is_about_money(&self) -> bool {
        contains_any(&self.unquoted, NO_MONEY) || self.has(&MONEY)
    }

    fn is_about_key(&self) -> bool {
        self.mentions(&["authentication error", "login fail"]) || self.has(&KEY)
    }

    /// Returns whether the model refuses media of this kind, not only one file.
    fn refuses_media(&self) -> bool {
        // With the quotes: they contain the name of the part, `image_url`.
        let sentences = self.all.split(['!', '?', ';', '\n', '。']);
        let mut sentences = sentences.flat_map(|text| text.split(". "));
        sentences.any(|sentence| MEDIA.is_in(sentence)) && !self.mentions(ONE_FILE)
    }

    /// Returns whether an error without a status is about a limit.
    fn is_about_limit(&self) -> bool {
        self.mentions(QUOTA) || self.mentions(RATE) || self.mentions(&["resource exhausted", "quota"])
    }
}

/// Removes what is between quotes or backticks. An apostrophe within a word is not a quote.
fn without_quotes(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (before, quoted) = rest.split_at(start);
        kept.push_str(before);
        let mut letters = quoted.chars();
        let quote = letters.next().unwrap_or_default();
        let inner = letters.as_str();
        let opens = !before.ends_with(char::is_alphanumeric);
        match inner.find(quote).filter(|_| opens) {
            Some(end) => rest = inner.get(end + 1..).unwrap_or_default(),
            None => {
                kept.push(quote);
                rest = inner;
            }
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: Option<&str>, message: &str) -> VendorError {
        VendorError { code: code.map(str::to_owned), ..VendorError::from_text(message) }
    }

    fn kind_of(status: u16, message: &str) -> Kind {
        kind(Some(status), &error(None, message), true)
    }

    #[test]
    fn account_without_money_in_the_words_of_many_vendors() {
        for (status, message) in [
            (400, "Access denied, please make sure your account is in good standing."),
            (400, "Arrearage: the account of the key is in arrears"),
            (401, "You exceeded your current quota; buy more to continue"),
            (403, "Sorry, your account balance is insufficient"),
            (403, "NOT_ENOUGH_BALANCE"),
            (403, "AccountOverdueError: the request failed because your account has an overdue balance."),
            (403, "Key limit exceeded (total limit). Manage it in the settings."),
            (403, "insufficient_user_quota: 用户额度不足"),
            (403, "Your newly created team doesn't have any credits yet."),
            (403, "This API method requires billing to be enabled."),
            (412, "Account a is suspended, possibly due to reaching the monthly spending limit."),
            (429, "Your prepayment credits are depleted. Go to the console to add more."),
            (429, "Your team has either used all available credits or reached its monthly spending limit."),
            (429, "Insufficient balance or no resource package. Please recharge."),
            (429, "You are using a Trial key, which is limited to 1000 API calls / month."),
            (400, "余额不足"),
            (400, "You have reached your specified API usage limits. You will regain access on 2027-01-01."),
            (429, "Project 7 has exceeded its monthly spending cap."),
            (403, "The account is disabled for billing reasons."),
        ] {
            assert_eq!(kind_of(status, message), Kind::Quota, "{message}");
        }
        let reason = VendorError { reason: Some("BILLING_DISABLED".to_owned()), ..error(None, "no") };
        assert_eq!(kind(Some(403), &reason, false), Kind::Quota);
    }

    #[test]
    fn request_over_the_limit_of_a_minute_is_too_long() {
        let message = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 41000.";
        assert_eq!(kind_of(429, message), Kind::Context);
        let message =
            "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 4100.";
        assert_eq!(kind_of(429, message), Kind::Rate);
    }

    #[test]
    fn request_over_the_context_in_the_words_of_many_vendors() {
        for message in [
            "Range of input length should be [1, 30720]",
            "Invalid request: Your request exceeded model token limit: 8192",
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
            "Prompt 超长",
        ] {
            assert_eq!(kind_of(400, message), Kind::Context, "{message}");
        }
    }

    #[test]
    fn words_of_the_request_are_not_about_money_or_keys() {
        for message in [
            "Invalid schema: 'insufficient_balance' is not permitted",
            "Unknown property `credit exhausted` in tools[0].parameters",
            "Invalid value: \"please recharge\"",
            "the property 'api_key' is missing from the schema",
            "the balance of the chunks is wrong. Parameters are insufficient",
            "the tokenizer's vocabulary is invalid",
        ] {
            assert_eq!(kind_of(400, message), Kind::Rejected, "{message}");
        }
    }

    #[test]
    fn rejected_key_in_the_words_of_many_vendors() {
        for message in [
            "API key not valid. Please pass a valid API key.",
            "API Key not found. Please pass a valid API key.",
            "API key expired. Please renew the API key.",
            "Incorrect API key provided: ***",
            "Invalid API-key provided.",
            "Access token invalid or no longer valid",
            "The api_key has been revoked",
            "Your API key was reported as leaked. Please use another API key.",
            "Authorization header is missing",
            "InvalidApiKey: no such apikey, it is wrong",
        ] {
            assert_eq!(kind_of(400, message), Kind::Key, "{message}");
        }
        let reason = VendorError { reason: Some("API_KEY_INVALID".to_owned()), ..error(None, "Bad.") };
        assert_eq!(kind(Some(400), &reason, false), Kind::Key);
    }

    #[test]
    fn model_without_media_in_the_words_of_many_servers() {
        for (status, message) in [
            (400, "messages[1]: unknown variant `image_url`, expected `text` at line 1 column 627"),
            (400, "Invalid content type. image_url is only supported by certain models."),
            (404, "No endpoints found that support image input"),
            (400, "m is not a multimodal model"),
            (500, "image input is not supported - hint: you may need to provide the mmproj"),
            (500, "this model is missing data required for image input"),
            (400, "messages[0].content must be a string"),
            (400, "Model does not support images. Please use a model that does."),
            (422, "audio input is not enabled for this deployment"),
            (400, "This model doesn't support PDF documents"),
            (400, "At most 0 image(s) may be provided in one request."),
        ] {
            assert_eq!(kind_of(status, message), Kind::Media, "{message}");
            assert_ne!(kind(Some(status), &error(None, message), false), Kind::Media, "{message}");
        }
        for message in [
            "Unsupported image format: webp",
            "the mime type image/tiff is not supported",
            "image 1 is not supported: it is too large",
            "could not process image: the data is corrupt and unsupported",
            "temperature is not supported",
        ] {
            assert_eq!(kind_of(400, message), Kind::Rejected, "{message}");
        }
    }

    #[test]
    fn quotes_end_where_they_began() {
        for (text, expected) in [
            ("a 'b c' d", "a  d"),
            ("doesn't have 'x'", "doesn't have "),
            ("\"a\" and `b`", " and "),
            ("'open", "'open"),
            ("é \"ü\" ö", "é  ö"),
        ] {
            assert_eq!(without_quotes(text), expected, "{text}");
        }
    }
}
