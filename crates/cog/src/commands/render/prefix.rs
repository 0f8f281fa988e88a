//! `cog render --prefix`: the part of a request that a provider can cache.

use cog_json::ToJson as _;
use cog_run::StablePrefix;

use crate::output::{Layout, wrap};

/// Formats the size of the prefix, and then its text.
pub(super) fn describe(prefix: &StablePrefix, layout: Layout) -> String {
    let palette = layout.palette;
    let mut text = format!("{}\n", palette.bold("── the same for every input"));
    for line in [size(prefix), cache(prefix)] {
        text += &format!("{}\n", wrap(&line, layout.width).join("\n  "));
    }
    if let Some(schema) = &prefix.schema {
        text += &format!("\n{}\n{}\n", palette.bold("── schema"), schema.to_json());
    }
    text + &format!("\n{}\n{}\n", palette.bold("── system"), prefix.text.trim_end())
}

fn size(prefix: &StablePrefix) -> String {
    let part = match prefix.is_complete {
        true => "the complete system message",
        false => "the system message up to the first placeholder for the input",
    };
    let tokens = prefix.estimated_tokens();
    let bytes = prefix.bytes();
    format!("about {tokens} tokens (estimated from {bytes} bytes): schema and {part}")
}

fn cache(prefix: &StablePrefix) -> String {
    let model = &prefix.model;
    let minimum = match (prefix.min_tokens, prefix.reaches_minimum()) {
        (Some(min), Some(true)) => format!("{model} caches from {min} tokens on: reached"),
        (Some(min), _) => format!("{model} caches from {min} tokens on: not reached"),
        (None, _) => format!("the minimum that {model} caches is not known"),
    };
    match prefix.mark {
        Some(mark) => format!("{minimum}; marked with `{mark}`"),
        None => format!("{minimum}; not marked"),
    }
}
