use std::borrow::Cow;

use cog_harmony::{Detail, ImagePart, Message, Part, Role};
use cog_json::{Value, Writer};
use cog_spec::{Dialect, Modality};

use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        RequestContext,
        parts::{self, cached_text, file_members, modality, only_text, post, schema_name},
    },
};

/// Checks a request. The protocol has no parameter for a seed or stop sequences, and no part for audio and video.
pub(super) fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    parts::check(context)?;
    let generation = &context.request.generation;
    if generation.seed.is_some() {
        return Err(context.unsupported("seed"));
    }
    if !generation.stop.is_empty() {
        return Err(context.unsupported("stop"));
    }
    let vendor = context.vendor.title;
    let parts = context.request.messages.messages().iter().flat_map(|message| &message.content);
    match parts.map(modality).find(|kind| matches!(kind, Modality::Audio | Modality::Video)) {
        Some(modality) => Err(RequestError::Modality { vendor, modality }),
        None => Ok(()),
    }
}

pub(super) fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let streams = output.is_none() || context.vendor.quirks.streams_schema;
    let url = format!("{}/responses", context.base_url);
    Ok(post(url, streams, |w| body(w, context, output, streams)))
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>, output: Option<&OutputSchema>, streams: bool) {
    let quirks = &context.vendor.quirks;
    let verbosity = context.request.generation.verbosity;
    w.field("model", context.model);
    w.key("input").array(|w| {
        context.request.messages.messages().iter().for_each(|message| items(w, message, context));
    });
    if output.is_some() || verbosity.is_some() {
        w.key("text").object(|w| {
            output.iter().for_each(|output| format(w.key("format"), output));
            w.optional("verbosity", &verbosity);
        });
    }
    options(w, context);
    w.field("store", &false).field("stream", &streams);
    if streams && quirks.pads_events && context.request.stream_options {
        w.key("stream_options").object(|w| {
            w.field("include_obfuscation", &false);
        });
    }
    for (key, value) in quirks.extra {
        w.optional(key, &Value::parse(value).ok());
    }
}

fn options(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    if let Some(effort) = context.effort() {
        w.key("reasoning").object(|w| {
            w.field("effort", effort);
        });
    }
    context.write_effort_members(w);
    w.optional("service_tier", &context.service_tier());
    context.write_cache_key(w);
    w.optional("max_output_tokens", &context.request.generation.max_tokens);
    w.optional("temperature", &context.request.generation.temperature);
}

fn format(w: &mut Writer<'_>, output: &OutputSchema) {
    let schema = output.schema.as_ref().filter(|_| output.dialect != Dialect::JsonObject);
    w.object(|w| match schema {
        None => {
            w.field("type", "json_object");
        }
        Some(schema) => {
            w.field("type", "json_schema").field("name", &schema_name(&output.name));
            w.field("strict", &(output.dialect == Dialect::OpenAiStrict)).field("schema", schema);
        }
    });
}

/// Writes a message, after the reasoning that led to it. Only the vendor that sent a reasoning item can read it.
fn items(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    let own = message.reasoning.as_ref().filter(|reasoning| reasoning.provider == context.vendor.name);
    own.into_iter().flat_map(|reasoning| &reasoning.items).for_each(|item| w.node(item.node()));
    w.object(|w| {
        w.field("role", message.role.as_str());
        content(w.key("content"), message, context);
    });
}

/// Writes the content of a message; only user messages contain anything but text.
fn content(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    let text = match message.role {
        Role::User => only_text(message).map(Cow::Borrowed),
        _ => Some(Cow::Owned(message.text())),
    };
    match text {
        Some(text) if context.has_breakpoint(message) => cached_text(w, "input_text", &text),
        Some(text) => w.string(&text),
        None => w.array(|w| message.content.iter().for_each(|part| block(w, part))),
    }
}

fn block(w: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Text(text) => w.object(|w| {
            w.field("type", "input_text").field("text", &text.text);
        }),
        Part::Image(image) => image_block(w, image),
        Part::File(file) => w.object(|w| {
            w.field("type", "input_file");
            file_members(w, file);
        }),
        _ => {}
    }
}

fn image_block(w: &mut Writer<'_>, image: &ImagePart) {
    let detail = image.detail.map_or("auto", Detail::as_str);
    w.object(|w| {
        w.field("type", "input_image").field("detail", detail).field("image_url", &image.url);
    });
}
