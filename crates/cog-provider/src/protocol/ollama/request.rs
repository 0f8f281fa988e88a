use cog_harmony::{Message, Part};
use cog_spec::Dialect;
use serde_json::Value;

use crate::{
    RequestError, WireRequest,
    protocol::{
        Ask,
        parts::{Body, check_inline, only_inline},
    },
};

pub(super) fn request(ask: &Ask<'_>) -> Result<WireRequest, RequestError> {
    check_inline(ask)?;
    let vendor = ask.vendor.title;
    let messages = ask.request.messages.messages().iter().map(|inner| message(inner, vendor));

    let mut body = Body::new();
    body.set("model", ask.model);
    body.set("messages", messages.collect::<Result<Vec<_>, _>>()?);
    body.set_some("format", format(ask));
    let options = options(ask);
    if !options.is_empty() {
        body.set("options", options.into_value());
    }
    body.set("stream", true);
    // Else the server leaves out the beginning of what does not fit its window, and says nothing.
    body.set("truncate", false);
    body.set("shift", false);
    let mut request = body.post(format!("{}/api/chat", ask.base_url), true);
    request.headers.retain(|(name, _)| *name != "accept");
    Ok(request)
}

fn format(ask: &Ask<'_>) -> Option<Value> {
    let output = ask.request.output.as_ref().filter(|output| output.dialect != Dialect::Prompt)?;
    Some(output.schema.clone().unwrap_or_else(|| "json".into()))
}

fn options(ask: &Ask<'_>) -> Body {
    let generation = &ask.request.generation;
    let mut options = Body::new();
    options.set_some("num_predict", generation.max_tokens);
    options.set_some("temperature", generation.temperature);
    options.set_some("seed", generation.seed);
    options.set_list("stop", &generation.stop);
    options
}

fn message(message: &Message, vendor: &'static str) -> Result<Value, RequestError> {
    let pictures = message.content.iter().filter_map(|part| match part {
        Part::Image(image) => Some(only_inline(image, vendor).map(|(_, data)| data.to_owned())),
        _ => None,
    });
    let mut body = Body::new();
    body.set("role", message.role.as_str());
    body.set("content", message.text());
    body.set_list("images", &pictures.collect::<Result<Vec<_>, _>>()?);
    Ok(body.into_value())
}
