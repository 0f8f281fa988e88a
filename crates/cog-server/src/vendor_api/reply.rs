//! The form of chat completions: the data as the text of a message, and the chunks of a stream.

use cog_json::{ToJson as _, Writer};
use cog_spec::Usage;

use super::{Answer, ErrorForm, Events, Head, Members, Reply, RequestError};

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
        self.push_chunk(
            events,
            None,
            |w| {
                w.field("role", "assistant");
                w.field("content", "");
                w.key("refusal").null();
            },
            |_| {},
        );
    }

    fn text(&mut self, delta: &str, events: &mut Events) {
        self.push_chunk(
            events,
            None,
            |w| {
                w.field("content", delta);
            },
            |_| {},
        );
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
    fn fail(&mut self, error: &RequestError, events: &mut Events) {
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

// The form of responses: the data as the text of a message, and the events of a stream, which are numbered.

/// The reply to a request for a response.
pub(super) struct ResponsesReply {
    head: Head,
    /// The number of the next event.
    next: u64,
}

/// How far a response has come.
#[derive(Clone, Copy)]
enum State<'a> {
    InProgress,
    Completed(Answer<'a>),
    Failed(Members<'a>),
}

impl ResponsesReply {
    pub(super) fn new(head: Head) -> Self {
        Self { head, next: 0 }
    }
}

impl Reply for ResponsesReply {
    fn complete(&self, answer: &Answer<'_>, w: &mut Writer<'_>) {
        self.write_response(State::Completed(*answer), w);
    }

    fn begin(&mut self, events: &mut Events) {
        for name in ["response.created", "response.in_progress"] {
            self.push_state(events, name, State::InProgress);
        }
        self.push(events, "response.output_item.added", |reply, w| {
            w.field("output_index", &0_u64);
            w.key("item");
            reply.write_message("in_progress", None, w);
        });
        self.push(events, "response.content_part.added", |reply, w| {
            reply.write_place(w);
            w.key("part");
            write_part("", w);
        });
    }

    fn text(&mut self, delta: &str, events: &mut Events) {
        self.push(events, "response.output_text.delta", |reply, w| {
            reply.write_place(w);
            w.field("delta", delta);
            w.key("logprobs").array(|_| {});
        });
    }

    fn end(&mut self, answer: &Answer<'_>, events: &mut Events) {
        self.push(events, "response.output_text.done", |reply, w| {
            reply.write_place(w);
            w.field("text", answer.text);
            w.key("logprobs").array(|_| {});
        });
        self.push(events, "response.content_part.done", |reply, w| {
            reply.write_place(w);
            w.key("part");
            write_part(answer.text, w);
        });
        self.push(events, "response.output_item.done", |reply, w| {
            w.field("output_index", &0_u64);
            w.key("item");
            reply.write_message("completed", Some(answer.text), w);
        });
        self.push_state(events, "response.completed", State::Completed(*answer));
    }

    /// The event `error` has the error twice: with the members that the interface documents, and as the object that the SDKs raise.
    fn fail(&mut self, error: &RequestError, events: &mut Events) {
        let members = error.members();
        self.push(events, "error", |_, w| {
            w.field("code", members.code());
            w.field("message", &members.message());
            members.write_param(w);
            w.field("error", &members);
        });
        self.push_state(events, "response.failed", State::Failed(members));
    }
}

impl ResponsesReply {
    /// Adds an event with its number.
    fn push(&mut self, events: &mut Events, name: &str, members: impl FnOnce(&Self, &mut Writer<'_>)) {
        let number = self.next;
        self.next += 1;
        events.push(Some(name), |w| {
            w.object(|w| {
                w.field("type", name);
                w.field("sequence_number", &number);
                members(self, w);
            });
        });
    }

    fn push_state(&mut self, events: &mut Events, name: &str, state: State<'_>) {
        self.push(events, name, |reply, w| {
            w.key("response");
            reply.write_response(state, w);
        });
    }

    fn write_item_id(&self, key: &str, w: &mut Writer<'_>) {
        w.key(key).string_of(&["msg_", &self.head.id]);
    }

    /// Writes where the text is: the first part of the first item.
    fn write_place(&self, w: &mut Writer<'_>) {
        self.write_item_id("item_id", w);
        w.field("output_index", &0_u64);
        w.field("content_index", &0_u64);
    }

    fn write_message(&self, status: &str, text: Option<&str>, w: &mut Writer<'_>) {
        w.object(|w| {
            self.write_item_id("id", w);
            w.field("type", "message");
            w.field("status", status);
            w.field("role", "assistant");
            w.key("content").array(|w| {
                if let Some(text) = text {
                    write_part(text, w);
                }
            });
        });
    }

    fn write_response(&self, state: State<'_>, w: &mut Writer<'_>) {
        w.object(|w| {
            w.key("id").string_of(&["resp_", &self.head.id]);
            w.field("object", "response");
            w.field("created_at", &self.head.created);
            w.field("model", &self.head.model);
            self.write_state(state, w);
            write_parameters(w);
        });
    }

    fn write_state(&self, state: State<'_>, w: &mut Writer<'_>) {
        match state {
            State::InProgress => {
                w.field("status", "in_progress");
                w.key("error").null();
                w.key("output").array(|_| {});
                w.key("usage").null();
            }
            State::Completed(answer) => {
                w.field("status", "completed");
                w.key("error").null();
                w.key("output").array(|w| self.write_message("completed", Some(answer.text), w));
                write_response_usage(answer.meta.runtime.usage.as_ref(), w);
                answer.write_control(w);
            }
            State::Failed(error) => {
                w.field("status", "failed");
                w.key("error").object(|w| {
                    w.field("code", error.code());
                    w.field("message", &error.message());
                    w.field("details", &error.error.all_details());
                });
                w.key("output").array(|_| {});
                w.key("usage").null();
            }
        }
    }
}

fn write_part(text: &str, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("type", "output_text");
        w.field("text", text);
        w.key("annotations").array(|_| {});
        w.key("logprobs").array(|_| {});
    });
}

/// Writes the parameters that clients expect in a response. Each has the only value that is supported.
fn write_parameters(w: &mut Writer<'_>) {
    for key in ["incomplete_details", "instructions", "max_output_tokens", "previous_response_id"] {
        w.key(key).null();
    }
    w.field("background", &false);
    w.key("metadata").object(|_| {});
    w.field("parallel_tool_calls", &false);
    w.field("store", &false);
    w.field("temperature", &1_u64);
    w.field("tool_choice", "none");
    w.key("tools").array(|_| {});
    w.field("top_p", &1_u64);
    w.field("truncation", "disabled");
}

/// Writes the tokens of the run. A run that called no model has none.
fn write_response_usage(usage: Option<&Usage>, w: &mut Writer<'_>) {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    w.key("usage").object(|w| {
        w.field("input_tokens", &usage.input_tokens);
        w.key("input_tokens_details").object(|w| {
            w.field("cached_tokens", &usage.cached_input_tokens.unwrap_or_default());
        });
        w.field("output_tokens", &usage.output_tokens);
        w.key("output_tokens_details").object(|w| {
            w.field("reasoning_tokens", &usage.reasoning_tokens.unwrap_or_default());
        });
        w.field("total_tokens", &(usage.input_tokens + usage.output_tokens));
    });
}
