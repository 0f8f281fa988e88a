use cog_harmony::{Message, Part, Role, ToolCall, ToolChoice, wire::write_arguments};
use cog_json::Writer;
use cog_spec::Dialect;

use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        RequestContext,
        parts::{Options, check_inline, inline, post},
        tools::{Turn, function_tool, media_message, turns},
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
    w.key("messages").array(|w| {
        turns(context.request.messages.messages()).iter().for_each(|turn| write_turn(w, turn, context));
    });
    // The protocol has no member for the choice.
    let tools = context.request.tools.as_deref().filter(|tools| tools.choice != ToolChoice::None);
    if let Some(tools) = tools {
        w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| function_tool(w, tool)));
    }
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

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    match turn {
        Turn::Message(message) => write_message(w, message, context),
        Turn::Text(text) => write_message(w, &Message::user(text.as_str()), context),
        Turn::Results(results) => {
            for result in results {
                w.object(|w| {
                    w.field("role", Role::Tool.as_str()).field("content", &result.message.text());
                    w.field("tool_name", result.name);
                });
            }
            if let Some(media) = media_message(results) {
                write_message(w, &media, context);
            }
        }
    }
}

fn write_message(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
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
        context.write_reasoning_members(w, message);
        if !message.tool_calls.is_empty() {
            w.key("tool_calls").array(|w| message.tool_calls.iter().for_each(|call| write_call(w, call)));
        }
    });
}

fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.object(|w| {
        w.key("function").object(|w| {
            w.field("name", &call.name);
            write_arguments(w.key("arguments"), call);
        });
    });
}
