use cog_harmony::{
    Message, Part, ToolChoice, ToolDefinition,
    wire::{Step, anthropic, reports_error, steps},
};
use cog_json::{Value, Writer};
use cog_spec::Dialect;

use super::{Anthropic, version_path};
use crate::{
    RequestError, ToolRequest, WireRequest,
    protocol::{
        Protocol, RequestContext,
        parts::{check, has_text, list, only_text, post, split_system},
        tools::{ToolResult, Turn},
    },
    vendors::CacheMark,
};

/// The default token limit, since Anthropic requires one. Reasoning counts towards it, so it is large.
const MAX_TOKENS: u64 = 16_384;

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let url = format!("{}{}/messages", context.base_url, version_path(context.base_url));
    let mut request = post(url, true, |w| body(w, context));
    request.headers.extend(Anthropic.headers());
    Ok(request)
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let generation = &context.request.generation;
    let (system, turns) = split_system(context);
    w.field("model", context.model);
    w.field("max_tokens", &generation.max_tokens.unwrap_or(MAX_TOKENS));
    if let Some(text) = system {
        write_system(w.key("system"), &text, context);
    }
    w.key("messages").array(|w| turns.iter().for_each(|turn| write_turn(w, turn, context)));
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools);
    }
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let schema = output.and_then(|output| output.schema.as_ref());
    if schema.is_some() || context.effort().is_some() {
        output_config(w.key("output_config"), schema, context.effort());
    }
    context.write_effort_members(w);
    list(w, "stop_sequences", &generation.stop);
    w.optional("service_tier", &context.service_tier());
    w.field("stream", &true);
}

/// Writes the system text. The vendor caches it if it is marked.
fn write_system(w: &mut Writer<'_>, text: &str, context: &RequestContext<'_>) {
    if !context.cache_mark().is_some_and(|(mark, _)| mark == CacheMark::Control) {
        return w.string(text);
    }
    w.array(|w| {
        w.object(|w| {
            w.field("type", "text").field("text", text).key("cache_control").object(|w| {
                w.field("type", "ephemeral");
            });
        });
    });
}

fn output_config(w: &mut Writer<'_>, schema: Option<&Value>, effort: Option<&str>) {
    w.object(|w| {
        w.optional("effort", &effort);
        if let Some(schema) = schema {
            w.key("format").object(|w| {
                w.field("type", "json_schema").field("schema", schema);
            });
        }
    });
}

/// Writes the tools, and which of them the model may call. The choice also limits the number of calls.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest) {
    w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| write_tool(w, tool)));
    let (kind, name) = match &tools.choice {
        ToolChoice::Auto if tools.parallel => return,
        ToolChoice::Auto => ("auto", None),
        ToolChoice::None => ("none", None),
        ToolChoice::Required => ("any", None),
        ToolChoice::Named(name) => ("tool", Some(name)),
    };
    w.key("tool_choice").object(|w| {
        w.field("type", kind).optional("name", &name);
        if !tools.parallel && tools.choice != ToolChoice::None {
            w.field("disable_parallel_tool_use", &true);
        }
    });
}

fn write_tool(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("name", &tool.name).field("description", &tool.description);
        w.field("input_schema", &tool.parameters);
        if tool.strict {
            w.field("strict", &true);
        }
    });
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    w.object(|w| match turn {
        Turn::Text(text) => {
            w.field("role", "user").field("content", text);
        }
        Turn::Message(message) if message.tool_calls.is_empty() => {
            w.field("role", message.role.as_str());
            content(w.key("content"), message);
        }
        Turn::Message(message) => {
            let steps = steps(message, context.own_reasoning(message), "id");
            w.field("role", message.role.as_str()).key("content");
            w.array(|w| steps.iter().for_each(|step| write_step(w, message, step)));
        }
        Turn::Results(results) => {
            w.field("role", "user").key("content");
            w.array(|w| results.iter().for_each(|result| write_result(w, result)));
        }
    });
}

fn write_step(w: &mut Writer<'_>, message: &Message, step: &Step<'_>) {
    match step {
        Step::Reasoning(item) => w.node(*item),
        Step::Content if !has_text(message) => {}
        Step::Content => block(w, &Part::text(message.text())),
        Step::Call(call, _) => w.object(|w| {
            anthropic::write_call(w, call);
        }),
    }
}

fn write_result(w: &mut Writer<'_>, result: &ToolResult<'_>) {
    w.object(|w| {
        w.field("type", "tool_result").field("tool_use_id", result.id);
        content(w.key("content"), result.message);
        if reports_error(result.message) {
            w.field("is_error", &true);
        }
    });
}

fn content(w: &mut Writer<'_>, message: &Message) {
    match only_text(message) {
        Some(text) => w.string(text),
        None => w.array(|w| message.content.iter().for_each(|part| block(w, part))),
    }
}

fn block(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| anthropic::write_part(w, part));
}
