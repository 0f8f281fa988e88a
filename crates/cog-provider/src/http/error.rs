//! Classifies vendor replies and transport errors as provider errors.

mod kind;

use std::{error::Error, io, time::Duration};

use cog_json::{Node, Value};
use memchr::memmem;

use self::kind::{Kind, is_about_model, kind};
use super::{Redactor, backoff::retry_after, proxy::NamedProxy};
use crate::{
    ConnectErrorKind, Interruption, OptionalPart, ProviderError, RejectedPart,
    protocol::{DecodeError, ReachedLimit, VendorError},
    transport::{TransportError, WireReply},
    vendors::Vendor,
};

/// A failed attempt, and whether a retry can help.
pub(super) struct Failure {
    pub(super) error: ProviderError,
    pub(super) is_retryable: bool,
    /// The reply of the model, if the vendor checked it itself and reports it as an error. It is a bad reply, not a bad
    /// request.
    pub(super) generated: Option<Box<str>>,
}

impl Failure {
    pub(super) fn permanent(error: ProviderError) -> Self {
        Self { error, is_retryable: false, generated: None }
    }

    fn temporary(error: ProviderError) -> Self {
        Self { error, is_retryable: true, generated: None }
    }
}

/// The vendor, model and redactor that an error message refers to.
pub(super) struct Context<'a> {
    pub(super) vendor: &'static Vendor,
    pub(super) model: &'a str,
    pub(super) url: &'a str,
    /// The body of the request.
    pub(super) body: &'a [u8],
    pub(super) redactor: &'a Redactor,
}

impl Context<'_> {
    /// Classifies a reply with a status other than success; `body` is the beginning of its body.
    pub(super) fn status_error(&self, reply: &WireReply, body: &[u8]) -> Failure {
        // Redirects are not followed. The query of a login page may contain a token.
        if (300..400).contains(&reply.status) {
            let target = reply.header("location").and_then(|target| target.split(['?', '#']).next());
            let target = target.unwrap_or("another URL");
            return Failure::permanent(self.wrong_interface(&format!("a redirect to {target}")));
        }
        let found = Value::parse_bytes(body).ok().and_then(|body| VendorError::read(body.node()));
        let is_vendor_error = found.is_some();
        if !is_vendor_error && let Some(failure) = self.reply_of_proxy(reply.status, body) {
            return failure;
        }
        let error = found.unwrap_or_else(|| VendorError::from_text(describe(reply.status, body)));
        // A path that does not exist also has this status: then the base URL is wrong, not the model.
        if reply.status == 404 && !(is_vendor_error && is_about_model(&error)) {
            return Failure::permanent(self.wrong_interface(&format!("404, {error}")));
        }
        let wait =
            retry_after(reply.header("retry-after-ms"), reply.header("retry-after"), reply.header("date"));
        let wait = wait.or_else(|| error.limit?.delay());
        let status = error.status.filter(|_| error.is_nested).unwrap_or(reply.status);
        self.vendor_error(Some(status), &error, wait)
    }

    /// Classifies a reply that is not one of an API, and was received through a proxy that sees the request: the proxy may have
    /// written it. Over HTTPS a proxy only sees the name of the host.
    fn reply_of_proxy(&self, status: u16, body: &[u8]) -> Option<Failure> {
        let proxy = NamedProxy::of(self.url).filter(|_| self.url.starts_with("http:") && status != 404)?;
        let found = format!("status {status}");
        let text = describe(status, body);
        let text = if text == found { found } else { format!("{found}, {text}") };
        let message = format!("{} through {proxy}: {}", self.url, self.redactor.clean(&text));
        let error =
            ProviderError::Connect { vendor: self.vendor.title, kind: ConnectErrorKind::Proxy, message };
        Some(if status < 500 { Failure::permanent(error) } else { Failure::temporary(error) })
    }

    /// Classifies an error that occurred before the first token.
    fn vendor_error(
        &self,
        status: Option<u16>,
        error: &VendorError,
        retry_after: Option<Duration>,
    ) -> Failure {
        let failure = self.classify(status, error, retry_after);
        Failure { generated: error.generated.as_deref().map(Box::from), ..failure }
    }

    fn classify(&self, status: Option<u16>, error: &VendorError, retry_after: Option<Duration>) -> Failure {
        let vendor = self.vendor.title;
        let message = self.redactor.clean(&error.to_string());
        let model = self.model.to_owned();
        match kind(status, error, has_media(self.body)) {
            Kind::Key => {
                let variable = self.vendor.key_var().unwrap_or_default();
                Failure::permanent(ProviderError::KeyRejected { vendor, variable, message })
            }
            Kind::Model => Failure::permanent(ProviderError::UnknownModel { vendor, model, message }),
            Kind::Media => Failure::permanent(ProviderError::MediaRejected { vendor, model, message }),
            Kind::Context => Failure::permanent(ProviderError::ContextOverflow { model, message }),
            Kind::Quota => Failure::permanent(ProviderError::RateLimited {
                vendor,
                is_quota: true,
                message,
                retry_after: None,
            }),
            Kind::Rate => Failure::temporary(ProviderError::RateLimited {
                vendor,
                is_quota: false,
                message,
                retry_after,
            }),
            Kind::Rejected => {
                let part = status.filter(|status| matches!(status, 400 | 422));
                let part = part.and_then(|_| rejected_part(&error.to_string(), self.body));
                let status = status.unwrap_or(400);
                Failure::permanent(ProviderError::Rejected { vendor, status, message, part })
            }
            Kind::Filtered(reason) => Failure::permanent(ProviderError::Filtered { vendor, message, reason }),
            Kind::Down => {
                let message = match status {
                    Some(status) if !message.contains(&status.to_string()) => format!("{message} ({status})"),
                    _ => message,
                };
                let by = Interruption::Provider;
                Failure::temporary(ProviderError::Unavailable { vendor, by, message, retry_after })
            }
        }
    }

    /// Classifies a reply that cannot be decoded. `has_started` is true if part of the answer had arrived.
    pub(super) fn decode_error(&self, error: &DecodeError, has_started: bool) -> Failure {
        let vendor = self.vendor.title;
        let message = self.redactor.clean(&error.to_string());
        match error {
            DecodeError::Vendor(error) if !has_started => {
                let wait = error.limit.and_then(ReachedLimit::delay);
                self.vendor_error(error.status, error, wait)
            }
            DecodeError::WebPage(_) => Failure::permanent(self.wrong_interface(&message)),
            DecodeError::Vendor(_)
            | DecodeError::Failed { .. }
            | DecodeError::Empty
            | DecodeError::Incomplete => {
                let by = Interruption::Provider;
                let error = ProviderError::Interrupted { vendor, by, message };
                if has_started { Failure::permanent(error) } else { Failure::temporary(error) }
            }
            DecodeError::FrameTooLarge(limit) => {
                Failure::permanent(ProviderError::TooLarge { vendor, limit: *limit })
            }
            DecodeError::NotJson(_) | DecodeError::NotUtf8 | DecodeError::MediaUrl => {
                Failure::permanent(ProviderError::Malformed { vendor, message })
            }
        }
    }

    /// Classifies a transport error.
    pub(super) fn transport_error(&self, error: TransportError) -> Failure {
        let vendor = self.vendor.title;
        match error {
            TransportError::Connect { message, kind } => {
                let proxy = NamedProxy::of(self.url);
                let through = proxy.as_ref().map(|proxy| format!(" through {proxy}")).unwrap_or_default();
                let message = self.redactor.clean(&message);
                let message = format!("no connection to {}{through}: {message}", self.url);
                // The proxy is the only host that was called by name.
                match kind.or_else(|| proxy.map(|_| ConnectErrorKind::Proxy)) {
                    // A proxy error may be temporary; a certificate error is not.
                    Some(kind @ ConnectErrorKind::Proxy) => {
                        Failure::temporary(ProviderError::Connect { vendor, kind, message })
                    }
                    Some(kind) => Failure::permanent(ProviderError::Connect { vendor, kind, message }),
                    None => {
                        let by = Interruption::Network;
                        Failure::temporary(ProviderError::Unavailable {
                            vendor,
                            by,
                            message,
                            retry_after: None,
                        })
                    }
                }
            }
            TransportError::Broken(message) => {
                let message = self.redactor.clean(&message);
                Failure::temporary(ProviderError::Interrupted { vendor, by: Interruption::Network, message })
            }
            TransportError::BadKey => {
                let variable = self.vendor.key_var().unwrap_or_default();
                Failure::permanent(ProviderError::BadKey { vendor, variable })
            }
            TransportError::Recording(error) => Failure::permanent(*error),
        }
    }

    fn wrong_interface(&self, found: &str) -> ProviderError {
        let mut found = self.redactor.clean(found);
        if let Some(proxy) = NamedProxy::of(self.url) {
            found += &format!(", through {proxy}");
        }
        ProviderError::WrongInterface { vendor: self.vendor.title, url: self.url.to_owned(), found }
    }
}

/// What our requests contain only where they have media. Within a string, the quotes would be escaped.
const MEDIA_MARKS: [&[u8]; 8] = [
    b"\"type\":\"image",
    b"\"type\":\"input_image",
    b"\"type\":\"input_audio",
    b"\"type\":\"file\"",
    b"\"type\":\"input_file",
    b"\"type\":\"document",
    b"\"inlineData\":",
    b"\"images\":[",
];

/// Returns whether the body of a request contains media. It may be large, so it is not parsed.
fn has_media(body: &[u8]) -> bool {
    MEDIA_MARKS.iter().any(|mark| memmem::find(body, mark).is_some())
}

/// Describes a body without an error message: its status and first words, without tags.
fn describe(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let texts = text.split('<').map(|part| part.split_once('>').map_or(part, |(_, after)| after));
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).take(12).collect();
    let excerpt: String = words.join(" ").chars().take(120).collect();
    if excerpt.is_empty() { format!("status {status}") } else { excerpt }
}

// The part of a request that a provider rejected.

/// The members of requests that belong to optional parts.
const FIELDS: &[(&str, OptionalPart)] = &[
    ("prompt_cache_breakpoint", OptionalPart::Cache),
    ("prompt_cache_options", OptionalPart::Cache),
    ("prompt_cache_key", OptionalPart::Cache),
    ("cache_control", OptionalPart::Cache),
    ("stream_options", OptionalPart::StreamOptions),
    ("top_logprobs", OptionalPart::Probabilities),
    ("logprobs", OptionalPart::Probabilities),
    ("responseLogprobs", OptionalPart::Probabilities),
    ("reasoning_effort", OptionalPart::Setting("effort")),
    ("effort", OptionalPart::Setting("effort")),
    ("thinking", OptionalPart::Setting("effort")),
    ("think", OptionalPart::Setting("effort")),
    ("enable_thinking", OptionalPart::Setting("effort")),
    ("thinkingConfig", OptionalPart::Setting("effort")),
    ("thinkingLevel", OptionalPart::Setting("effort")),
    ("thinkingBudget", OptionalPart::Setting("effort")),
    ("verbosity", OptionalPart::Setting("verbosity")),
    ("service_tier", OptionalPart::Setting("service_tier")),
    ("serviceTier", OptionalPart::Setting("service_tier")),
    ("temperature", OptionalPart::Setting("temperature")),
    ("seed", OptionalPart::Setting("seed")),
    ("random_seed", OptionalPart::Setting("seed")),
    ("stop", OptionalPart::Setting("stop")),
    ("stop_sequences", OptionalPart::Setting("stop")),
    ("stopSequences", OptionalPart::Setting("stop")),
    // Last: messages about other members mention these too.
    ("max_tokens", OptionalPart::Setting("max_tokens")),
    ("max_completion_tokens", OptionalPart::Setting("max_tokens")),
    ("max_output_tokens", OptionalPart::Setting("max_tokens")),
    ("maxOutputTokens", OptionalPart::Setting("max_tokens")),
    ("num_predict", OptionalPart::Setting("max_tokens")),
];

/// Members whose names are common words: a message means them only between quotes, or as a location.
const WORDS: &[&str] = &["stop", "think", "thinking", "effort", "seed"];

/// Texts in messages about a member that the server does not know, as opposed to one with a wrong value.
const UNKNOWN_MEMBER: &[&str] = &[
    "unsupported parameter",
    "not supported",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
    "instead",
    "deprecated",
];

/// Texts in messages about a schema.
const SCHEMA: &[&str] = &[
    "schema",
    "response_format",
    "json_object",
    "grammar",
    "structured output",
    "text.format",
    "output_format",
];
/// Texts in messages about the schema of a tool.
const TOOL_SCHEMA: &[&str] = &[
    "tools[",
    "tools.",
    "for function",
    "for tool",
    "function_declarations",
    "function_parameters",
    "input_schema",
];
/// Texts in messages about the schema of the answer.
const ANSWER_SCHEMA: &[&str] = &[
    "response_format",
    "response_schema",
    "responsejsonschema",
    "text.format",
    "output_format",
    "output_config",
];
/// Texts in messages about a model without a system role.
const SYSTEM_ROLE: &[&str] = &[
    "system role",
    "system message",
    "role 'system'",
    "role \"system\"",
    "role `system`",
    "roles must alternate",
];
/// The members of requests that carry a schema.
const SCHEMA_FIELDS: &[&str] = &["response_format", "responseMimeType", "format"];

/// Returns the part that the provider's message names, if the body of the request contains it.
///
/// The body, which may be large, is parsed only for a message that names a part.
pub(super) fn rejected_part(message: &str, body: &[u8]) -> Option<RejectedPart> {
    let lower = message.to_ascii_lowercase();
    let has_tools = memmem::find(body, b"\"tools\":[").is_some();
    let names_schema = names_any(&lower, SCHEMA) && !(has_tools && is_about_tool_schema(&lower));
    if names_any(&lower, SYSTEM_ROLE) && memmem::find(body, b"\"role\":\"system\"").is_some() {
        return Some(RejectedPart::SystemRole);
    }
    let mut named = FIELDS.iter().filter(|(name, _)| names_member(message, name)).peekable();
    if !names_schema && named.peek().is_none() {
        return None;
    }
    let body = Value::parse_bytes(body).ok()?;
    if names_schema && SCHEMA_FIELDS.iter().any(|name| has_member(body.node(), name)) {
        return Some(RejectedPart::Schema);
    }
    let (name, part) = named.find(|(name, _)| has_member(body.node(), name))?;
    let other = other_name(name).filter(|_| names_any(&lower, UNKNOWN_MEMBER));
    Some(match other {
        Some(other) => RejectedPart::Name { name, other },
        None => RejectedPart::Field { name, part: *part },
    })
}

fn names_any(lower: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| lower.contains(text))
}

/// Returns whether a message is about the schema of a tool, so that a weaker schema of the answer would not help.
fn is_about_tool_schema(lower: &str) -> bool {
    names_any(lower, TOOL_SCHEMA) && !names_any(lower, ANSWER_SCHEMA)
}

/// Returns whether a message names a member of the request, as a word of its own.
fn names_member(message: &str, name: &str) -> bool {
    let needs_mark = WORDS.contains(&name);
    message.match_indices(name).any(|(start, _)| {
        let (before, found) = message.split_at(start);
        let after = found.get(name.len()..).unwrap_or_default();
        let is_word = !before.ends_with(is_name_letter) && !after.starts_with(is_name_letter);
        let is_at_start = before.is_empty() && after.starts_with(':');
        let is_marked =
            is_at_start || before.trim_end_matches(' ').ends_with(['\'', '"', '`', '.', '(', ':']);
        is_word && (!needs_mark || is_marked)
    })
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Returns the other name of the limit of output tokens in Chat Completions, of which a server may know only one.
fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "max_tokens" => Some("max_completion_tokens"),
        "max_completion_tokens" => Some("max_tokens"),
        _ => None,
    }
}

/// Returns whether an object within a value has a member with this name.
fn has_member(node: Node<'_>, name: &str) -> bool {
    node.members().any(|(key, value)| key == name || has_member(value, name))
        || node.elements().any(|element| has_member(element, name))
}

// The causes of connection errors.

impl ConnectErrorKind {
    /// Finds the local cause in an error chain; returns `None` for any other error.
    pub(super) fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(kind) = Self::from_cause(cause) {
                return Some(kind);
            }
            // The `source` of an `io::Error` skips the error that it wraps.
            let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = wrapped.map(|cause| cause as _).or_else(|| cause.source());
        }
        None
    }

    fn from_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        match cause.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::General(_)) => Some(Self::Certificate),
            Some(_) => Some(Self::Tls),
            None => is_proxy_error(&cause.to_string()).then_some(Self::Proxy),
        }
    }
}

/// Returns the innermost cause, which is the informative one: `connection refused`, not `error sending request`.
pub(super) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    // The client does not tell the status of the proxy.
    match text.as_str() {
        "tunnel error: unsuccessful" => "the proxy refused the connection".to_owned(),
        "tunnel error: proxy authorization required" => {
            "the proxy requires another user name or password".to_owned()
        }
        _ => text,
    }
}

/// Returns whether an error text is about a proxy. The client reports proxy errors only as text.
fn is_proxy_error(text: &str) -> bool {
    text.starts_with("tunnel error") || text.starts_with("unsupported scheme socks")
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod rejected_tests {
    use super::*;

    const BODY: &[u8] = br#"{"model": "m", "messages": [{"role": "system", "content": [{"type": "text", "text": "\"seed\": 1",
        "prompt_cache_breakpoint": {"mode": "explicit"}}]}], "response_format": {"type": "json_schema", "json_schema": {}},
        "reasoning_effort": "low", "stream_options": {"include_usage": true}}"#;

    fn field(message: &str) -> Option<&'static str> {
        match rejected_part(message, BODY)? {
            RejectedPart::Field { name, .. } | RejectedPart::Name { name, .. } => Some(name),
            RejectedPart::Schema => Some("schema"),
            RejectedPart::SystemRole => Some("system"),
        }
    }

    #[test]
    fn member_with_a_common_name_is_marked_or_stands_at_an_edge() {
        for message in [
            "Unrecognized request argument supplied: seed",
            "seed: Extra inputs are not permitted",
            "`seed` is unknown",
        ] {
            assert!(names_member(message, "seed"), "{message}");
        }
        assert!(!names_member("use another seed value", "seed"));
    }

    #[test]
    fn finds_the_named_member_of_the_request() {
        for (message, expected) in [
            ("Unrecognized request argument supplied: stream_options", Some("stream_options")),
            ("Extra inputs are not permitted (body.stream_options)", Some("stream_options")),
            ("Unsupported parameter: 'reasoning_effort' is not supported", Some("reasoning_effort")),
            (
                "messages.0.content.0.prompt_cache_breakpoint: Extra inputs are not permitted",
                Some("prompt_cache_breakpoint"),
            ),
            ("Invalid schema for response_format 'm'", Some("schema")),
            ("failed to parse grammar", Some("schema")),
        ] {
            assert_eq!(field(message), expected, "{message}");
        }
    }

    #[test]
    fn ignores_members_that_were_not_sent_and_other_messages() {
        for message in [
            "Unknown parameter: 'seed'",
            "Unknown parameter: 'prompt_cache_key'",
            "the stream_optionsx is wrong",
            "messages must not be empty",
            "Unknown parameter: 'model'",
        ] {
            assert_eq!(field(message), None, "{message}");
        }
        assert_eq!(rejected_part("the schema is wrong", br#"{"model": "m"}"#), None);
        assert_eq!(rejected_part("stream_options", b"no JSON"), None);
    }
}

#[cfg(test)]
mod cause_tests {
    use rustls::CertificateError;

    use super::*;

    #[test]
    fn finds_certificate_error_in_wrapped_errors() {
        let error = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(ConnectErrorKind::find(&error), Some(ConnectErrorKind::Certificate));
    }

    #[test]
    fn other_tls_errors_are_not_certificate_errors() {
        let error = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert_eq!(ConnectErrorKind::find(&error), Some(ConnectErrorKind::Tls));
    }

    #[test]
    fn refusal_by_a_proxy_is_named() {
        let error = io::Error::other("tunnel error: unsuccessful");
        assert_eq!(root_cause(&error), "the proxy refused the connection");
        assert_eq!(ConnectErrorKind::find(&error), Some(ConnectErrorKind::Proxy));
    }

    #[test]
    fn refused_connection_has_no_local_cause() {
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(ConnectErrorKind::find(&error), None);
    }
}
