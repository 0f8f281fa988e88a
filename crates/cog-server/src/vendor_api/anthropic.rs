//! Anthropic's form: the data as the text of a message, the events of a stream, and errors (docs/anthropic.md).

use axum::http::StatusCode;
use cog_json::{ToJson, Writer};
use cog_spec::Usage;

use super::{
    Answer, Events, Head, Members, Reply, RequestError,
    request::{Parameters, Rule},
};

/// The parameters of a message.
pub(super) const PARAMETERS: &Parameters = &[
    ("model", Rule::Read),
    ("messages", Rule::Read),
    ("output_config", Rule::Read),
    ("stream", Rule::Read),
    ("system", Rule::Read),
    ("cache_control", Rule::Label),
    // The interface requires it.
    ("max_tokens", Rule::Label),
    ("metadata", Rule::Label),
    ("service_tier", Rule::Only(&["\"auto\"", "\"standard_only\""])),
    ("speed", Rule::Only(&["\"standard\""])),
    ("thinking", Rule::Only(&[r#"{"type":"disabled"}"#])),
    ("tool_choice", Rule::Only(&[r#"{"type":"auto"}"#, r#"{"type":"none"}"#])),
    ("temperature", Rule::Sampling(&["1"])),
    ("top_k", Rule::Sampling(&[])),
    ("top_p", Rule::Sampling(&["1"])),
];

/// The reply to a request for a message.
pub(super) struct MessagesReply(pub(super) Head);

impl Reply for MessagesReply {
    fn complete(&self, answer: &Answer<'_>, w: &mut Writer<'_>) {
        self.write_message(w, Some(answer));
    }

    fn begin(&mut self, events: &mut Events) {
        push(events, "message_start", |w| self.write_message(w.key("message"), None));
        push(events, "content_block_start", |w| {
            w.field("index", &0_u64);
            w.key("content_block");
            write_text(w, "");
        });
    }

    fn text(&mut self, delta: &str, events: &mut Events) {
        push(events, "content_block_delta", |w| {
            w.field("index", &0_u64);
            w.key("delta").object(|w| {
                w.field("type", "text_delta");
                w.field("text", delta);
            });
        });
    }

    fn end(&mut self, answer: &Answer<'_>, events: &mut Events) {
        push(events, "content_block_stop", |w| {
            w.field("index", &0_u64);
        });
        push(events, "message_delta", |w| {
            w.key("delta").object(|w| write_stop(w, true));
            write_usage(answer.meta.runtime.usage.as_ref(), w);
            answer.write_control(w);
        });
        push(events, "message_stop", |_| {});
    }

    fn fail(&mut self, error: &RequestError, events: &mut Events) {
        events.push(Some("error"), |w| ErrorForm(error.members()).write_json(w));
    }
}

/// Adds an event, whose type is its name.
fn push(events: &mut Events, name: &str, members: impl FnOnce(&mut Writer<'_>)) {
    events.push(Some(name), |w| {
        w.object(|w| {
            w.field("type", name);
            members(w);
        });
    });
}

impl MessagesReply {
    /// Writes the message with its answer, or as it begins.
    fn write_message(&self, w: &mut Writer<'_>, answer: Option<&Answer<'_>>) {
        w.object(|w| {
            w.key("id").string_of(&["msg_", &self.0.id]);
            w.field("type", "message");
            w.field("role", "assistant");
            w.field("model", &self.0.model);
            w.key("content").array(|w| {
                if let Some(answer) = answer {
                    write_text(w, answer.text);
                }
            });
            write_stop(w, answer.is_some());
            write_usage(answer.and_then(|answer| answer.meta.runtime.usage.as_ref()), w);
            if let Some(answer) = answer {
                answer.write_control(w);
            }
        });
    }
}

fn write_text(w: &mut Writer<'_>, text: &str) {
    w.object(|w| {
        w.field("type", "text");
        w.field("text", text);
        w.key("citations").null();
    });
}

fn write_stop(w: &mut Writer<'_>, has_ended: bool) {
    w.key("stop_reason");
    if has_ended {
        w.string("end_turn");
    } else {
        w.null();
    }
    w.key("stop_sequence").null();
}

/// Writes the tokens of the run. Here, the tokens of the input do not include cached ones.
fn write_usage(usage: Option<&Usage>, w: &mut Writer<'_>) {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    let read = usage.cached_input_tokens.unwrap_or_default();
    let written = usage.cache_write_input_tokens.unwrap_or_default();
    w.key("usage").object(|w| {
        w.field("input_tokens", &usage.input_tokens.saturating_sub(read + written));
        w.field("cache_creation_input_tokens", &written);
        w.field("cache_read_input_tokens", &read);
        w.field("output_tokens", &usage.output_tokens);
    });
}

/// The document of an error.
pub(super) struct ErrorForm<'a>(pub(super) Members<'a>);

/// Written by hand: the type depends on the status.
impl ToJson for ErrorForm<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("type", "error");
            w.key("error").object(|w| {
                w.field("type", error_type(self.0.status));
                self.0.write_rest(w);
            });
        });
    }
}

/// Returns the type that Anthropic has for errors of this status.
fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_the_input_are_without_cached_ones() {
        let usage = Usage {
            input_tokens: 100,
            cached_input_tokens: Some(60),
            cache_write_input_tokens: Some(10),
            output_tokens: 7,
            ..Usage::default()
        };
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| write_usage(Some(&usage), w));
        let expected = r#"{"usage":{"input_tokens":30,"cache_creation_input_tokens":10,"cache_read_input_tokens":60,"output_tokens":7}}"#;
        assert_eq!(text, expected);
    }
}
