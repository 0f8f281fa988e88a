//! The tags in which models write their reasoning (ruling R75).

/// The tags that end the reasoning of gpt-oss: only the last channel is the reply.
const FINAL: &[&str] = &["<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>"];

/// Each opening tag with the tags that may close it.
const TAGS: [(&str, &[&str]); 10] = [
    ("<think>", &["</think>"]),
    ("<thinking>", &["</thinking>"]),
    ("<Think>", &["</Think>"]),
    ("[THINK]", &["[/THINK]"]),
    ("<seed:think>", &["</seed:think>"]),
    ("◁think▷", &["◁/think▷"]),
    ("<|channel|>analysis<|message|>", FINAL),
    ("<|channel|>commentary<|message|>", FINAL),
    ("<|start|>assistant<|channel|>analysis<|message|>", FINAL),
    ("<|start|>assistant<|channel|>commentary<|message|>", FINAL),
];

/// The result of reading where a tag may begin.
pub(super) enum Tag<T> {
    /// The tag, of this length.
    Found(usize, T),
    /// The text ends where it may become a tag.
    Cut,
    None,
}

/// Reads an opening tag at the start of `rest`, with the tags that may close it.
pub(super) fn opening_tag(rest: &str) -> Tag<&'static [&'static str]> {
    read(rest, TAGS.into_iter())
}

/// Reads a closing tag at the start of `rest`.
pub(super) fn closing_tag_at(rest: &str) -> Tag<()> {
    read(rest, TAGS.into_iter().flat_map(|(_, closing)| closing).map(|tag| (*tag, ())))
}

fn read<T>(rest: &str, mut tags: impl Iterator<Item = (&'static str, T)> + Clone) -> Tag<T> {
    match tags.clone().find(|(tag, _)| rest.starts_with(tag)) {
        Some((tag, detail)) => Tag::Found(tag.len(), detail),
        None if tags.any(|(tag, _)| tag.starts_with(rest)) => Tag::Cut,
        None => Tag::None,
    }
}

/// Searches the first closing tag after `from`. Returns its end, or otherwise the offset to search from next.
pub(super) fn closing_tag(text: &str, from: usize) -> Result<usize, usize> {
    let mut pos = from;
    while let Some(length) = text.get(pos..).and_then(|rest| rest.find(['<', '[', '◁'])) {
        pos += length;
        let rest = text.get(pos..).unwrap_or_default();
        match closing_tag_at(rest) {
            Tag::Found(length, ()) => return Ok(pos + length),
            Tag::Cut => return Err(pos),
            Tag::None => pos += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    Err(text.len().max(from))
}

/// Searches the first of the tags `closing` after `from`. Returns its end, or otherwise the offset to search from next.
pub(super) fn end_of_reasoning(text: &str, from: usize, closing: &[&str]) -> Result<usize, usize> {
    let rest = text.get(from..).unwrap_or_default();
    let found = closing.iter().filter_map(|tag| rest.find(tag).map(|at| (at, at + tag.len()))).min();
    let longest = closing.iter().map(|tag| tag.len()).max().unwrap_or_default();
    match found {
        Some((_, end)) => Ok(from + end),
        None => Err(text.floor_char_boundary(from.max(text.len().saturating_sub(longest)))),
    }
}
