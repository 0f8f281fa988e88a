use cog_harmony::{Message, Part};
use cog_json::Writer;
use cog_spec::Dialect;

use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        RequestContext,
        parts::{Options, check_inline, inline, post},
    },
};

const OPTIONS: Options = Options { max_tokens: "num_predict", seed: Some("seed"), stop: "stop" };

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check_inline(context)?;
    let mut request = post(format!("{}/api/chat", context.base_url), true, |w| body(w, context));
    request.headers.retain(|(name, _)| *name != "accept");
    Ok(request)
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    w.field("model", context.model);
    w.key("messages")
        .array(|w| context.request.messages.messages().iter().for_each(|message| write_message(w, message)));
    if let Some(output) = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt)
    {
        write_output(w, output);
    }
    if OPTIONS.are_set(&context.request.generation) {
        w.key("options").object(|w| OPTIONS.write(w, &context.request.generation));
    }
    context.write_effort_members(w);
    w.field("stream", &true);
    // By default the server silently drops the beginning of a prompt that exceeds its context window.
    w.field("truncate", &false).field("shift", &false);
}

fn write_output(w: &mut Writer<'_>, output: &OutputSchema) {
    match &output.schema {
        Some(schema) => w.field("format", schema),
        None => w.field("format", "json"),
    };
}

fn write_message(w: &mut Writer<'_>, message: &Message) {
    let images = || {
        message.content.iter().filter_map(|part| match part {
            Part::Image(image) => inline(image),
            _ => None,
        })
    };
    w.object(|w| {
        w.field("role", message.role.as_str()).field("content", &message.text());
        if images().next().is_some() {
            w.key("images").array(|w| {
                images().for_each(|(_, data)| {
                    w.item(data);
                });
            });
        }
    });
}
