//! The response to a chat completion: the data of the envelope as the text of a message.

use cog_json::{ToJson, Value, Writer};
use cog_spec::{Meta, Usage, Warning};

/// A chat completion.
pub(super) struct Completion<'a> {
    pub(super) id: &'a str,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) data: &'a Value,
    pub(super) meta: &'a Meta,
    pub(super) warnings: &'a [Warning],
}

/// Written by hand: the data are a text within the document.
impl ToJson for Completion<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("id", self.id);
            w.field("object", "chat.completion");
            w.field("created", &self.created);
            w.field("model", self.model);
            w.key("choices").array(|w| {
                w.item(&Choice(self.data));
            });
            w.field("usage", &UsageForm(self.meta.runtime.usage.as_ref()));
            w.field("cognitive", &Control { meta: self.meta, warnings: self.warnings });
        });
    }
}

struct Choice<'a>(&'a Value);

impl ToJson for Choice<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("index", &0_u64);
            w.key("message").object(|w| {
                w.field("role", "assistant");
                w.field("content", &self.0.to_json());
                w.field("refusal", &Value::null());
            });
            w.field("logprobs", &Value::null());
            w.field("finish_reason", "stop");
        });
    }
}

/// The tokens of the run, in OpenAI's names. A run that called no model has none.
pub(super) struct UsageForm<'a>(pub(super) Option<&'a Usage>);

impl ToJson for UsageForm<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let none = Usage::default();
        let usage = self.0.unwrap_or(&none);
        w.object(|w| {
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
}

/// The control plane of the envelope, which OpenAI's form has no place for.
struct Control<'a> {
    meta: &'a Meta,
    warnings: &'a [Warning],
}

impl ToJson for Control<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("meta", self.meta);
            if !self.warnings.is_empty() {
                w.field("_warnings", self.warnings);
            }
        });
    }
}
