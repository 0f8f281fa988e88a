//! The form of chat completions: the data as the text of a message, and the chunks of a stream.

use cog_json::{ToJson as _, Writer};
use cog_spec::Usage;

use super::{
    Answer, Events, Head, Reply,
    error::{ErrorForm, OpenAiError},
};

/// The reply to a chat completion.
pub(super) struct ChatReply(pub(super) Head);

impl Reply for ChatReply {
    fn complete(&self, answer: &Answer<'_>, w: &mut Writer<'_>) {
        w.object(|w| {
            self.write_head("chat.completion", w);
            w.key("choices").array(|w| {
                write_choice(w, "message", Some("stop"), |w| {
                    w.field("role", "assistant");
                    w.field("content", answer.text);
                    w.key("refusal").null();
                });
            });
            write_usage(answer.meta.runtime.usage.as_ref(), w);
            answer.write_control(w);
        });
    }

    fn begin(&mut self, events: &mut Events) {
        let role = |w: &mut Writer<'_>| {
            w.field("role", "assistant");
            w.field("content", "");
            w.key("refusal").null();
        };
        self.push_chunk(events, None, role, |_| {});
    }

    fn text(&mut self, delta: &str, events: &mut Events) {
        let content = |w: &mut Writer<'_>| {
            w.field("content", delta);
        };
        self.push_chunk(events, None, content, |_| {});
    }

    fn end(&mut self, answer: &Answer<'_>, events: &mut Events) {
        self.push_chunk(events, Some("stop"), |_| {}, |w| answer.write_control(w));
        if self.0.include_usage {
            events.push(None, |w| {
                w.object(|w| {
                    self.write_head(CHUNK, w);
                    w.key("choices").array(|_| {});
                    write_usage(answer.meta.runtime.usage.as_ref(), w);
                });
            });
        }
        events.push_word("[DONE]");
    }

    /// The SDKs raise the error. No `[DONE]` follows, because the answer is not complete.
    fn fail(&mut self, error: &OpenAiError, events: &mut Events) {
        events.push(None, |w| ErrorForm(error.members()).write_json(w));
    }
}

/// The type of a chunk.
const CHUNK: &str = "chat.completion.chunk";

impl ChatReply {
    fn write_head(&self, object: &str, w: &mut Writer<'_>) {
        w.key("id").string_of(&["chatcmpl-", &self.0.id]);
        w.field("object", object);
        w.field("created", &self.0.created);
        w.field("model", &self.0.model);
    }

    fn push_chunk(
        &self,
        events: &mut Events,
        finish_reason: Option<&str>,
        delta: impl FnOnce(&mut Writer<'_>),
        more: impl FnOnce(&mut Writer<'_>),
    ) {
        events.push(None, |w| {
            w.object(|w| {
                self.write_head(CHUNK, w);
                w.key("choices").array(|w| write_choice(w, "delta", finish_reason, delta));
                if self.0.include_usage {
                    w.key("usage").null();
                }
                more(w);
            });
        });
    }
}

fn write_choice(
    w: &mut Writer<'_>,
    key: &str,
    finish_reason: Option<&str>,
    content: impl FnOnce(&mut Writer<'_>),
) {
    w.object(|w| {
        w.field("index", &0_u64);
        w.key(key).object(content);
        w.key("logprobs").null();
        match finish_reason {
            Some(reason) => w.key("finish_reason").string(reason),
            None => w.key("finish_reason").null(),
        }
    });
}

/// Writes the tokens of the run. A run that called no model has none.
fn write_usage(usage: Option<&Usage>, w: &mut Writer<'_>) {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    w.key("usage").object(|w| {
        w.field("prompt_tokens", &usage.input_tokens);
        w.field("completion_tokens", &usage.output_tokens);
        w.field("total_tokens", &(usage.input_tokens + usage.output_tokens));
        w.key("prompt_tokens_details").object(|w| {
            w.field("cached_tokens", &usage.cached_input_tokens.unwrap_or_default());
        });
        w.key("completion_tokens_details").object(|w| {
            w.field("reasoning_tokens", &usage.reasoning_tokens.unwrap_or_default());
        });
    });
}
