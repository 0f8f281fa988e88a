//! What the targets share.

pub mod wrapping;

use cog_spec::ModelEvent;

/// The bytes in chunks of this size.
pub fn chunks(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.min(bytes.len()).max(1))
}

/// The text in chunks of about this size, never half a character.
pub fn text_chunks(mut text: &str, size: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (chunk, rest) = text.split_at(text.ceil_char_boundary(size.min(text.len())));
        text = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The events, adjacent texts joined.
pub fn joined(events: &[ModelEvent]) -> String {
    let mut out = String::new();
    let mut last = "";
    for event in events {
        let (kind, text) = match event {
            ModelEvent::Text(text) => ("text", text.clone()),
            ModelEvent::Reasoning(text) => ("reasoning", text.clone()),
            event => ("", format!("{event:?}")),
        };
        if kind.is_empty() || kind != last {
            out.push_str(&format!("\n{kind} "));
        }
        out.push_str(&text);
        last = kind;
    }
    out
}
