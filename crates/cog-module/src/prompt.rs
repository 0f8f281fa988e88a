//! Parses the prompt once (docs/spec/modules.md, *Placeholders*).

mod call;

use std::ops::Range;

pub use self::call::{Call, CallError, CallOptions};
use crate::name::is_module_name;

/// A prompt: its source text, and its parts.
///
/// The parts, concatenated with [`PromptPart::raw`], equal the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    parts: Vec<PromptPart>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptPart {
    /// Literal text.
    Text(String),
    /// `$ARGUMENTS`: the text of `--args`, otherwise the input's `$ARGUMENTS` or `query`.
    Arguments,
    /// `$ARGUMENTS[n]` or `$n`: a word of that text, counted from 0.
    Word {
        /// The index of the word, from 0.
        index: usize,
        /// Whether it is written as `$n`.
        short: bool,
    },
    /// `$INPUT`: the input as JSON.
    Input,
    /// `$MEDIA_INPUTS`: the position of the media.
    MediaInputs,
    /// `@call:NAME(ARGUMENTS)[OPTIONS]`: the result of another module (docs/spec/composition.md).
    Call(Call),
    /// `{{NAME.path}}`: a value from the result of a module that was called before.
    Reference {
        /// The module.
        module: String,
        /// The path in its envelope, without the leading dot.
        path: String,
        /// The source text.
        raw: String,
    },
}

impl Prompt {
    /// Parses a prompt. There are no errors: everything except placeholders is text.
    pub fn parse(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = parts(&text);
        Self { text, parts }
    }

    /// Returns the source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parts, in order; texts are never adjacent.
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// Returns the parts with their byte ranges in the source.
    pub fn located(&self) -> impl Iterator<Item = (Range<usize>, &PromptPart)> {
        self.parts.iter().scan(0, |start, part| {
            let range = *start..*start + part.raw().len();
            *start = range.end;
            Some((range, part))
        })
    }

    /// Returns whether a placeholder includes the input, which is then not sent separately.
    pub fn places_input(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, PromptPart::Arguments | PromptPart::Word { .. } | PromptPart::Input))
    }

    /// Returns whether the prompt has a placeholder for media.
    pub fn places_media(&self) -> bool {
        self.parts.contains(&PromptPart::MediaInputs)
    }
}

impl PromptPart {
    /// Returns the source text of the part.
    pub fn raw(&self) -> String {
        match self {
            PromptPart::Text(text) => text.clone(),
            PromptPart::Arguments => "$ARGUMENTS".to_owned(),
            PromptPart::Word { index, short: true } => format!("${index}"),
            PromptPart::Word { index, short: false } => format!("$ARGUMENTS[{index}]"),
            PromptPart::Input => "$INPUT".to_owned(),
            PromptPart::MediaInputs => "$MEDIA_INPUTS".to_owned(),
            PromptPart::Call(call) => call.raw.clone(),
            PromptPart::Reference { raw, .. } => raw.clone(),
        }
    }
}

/// Splits text at its placeholders, in one pass.
fn parts(text: &str) -> Vec<PromptPart> {
    // One pass over the author's text. Inputs and results are filled in later and never scanned, so that what a user
    // or a model writes cannot become a placeholder or a call.
    let mut parts = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find(['$', '@', '{']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        rest = match placeholder(from) {
            Some((part, after)) => {
                flush(&mut plain, &mut parts);
                parts.push(part);
                after
            }
            None => {
                let (sign, after) = from.split_at(1);
                plain.push_str(sign);
                after
            }
        };
    }
    plain.push_str(rest);
    flush(&mut plain, &mut parts);
    parts
}

fn flush(plain: &mut String, parts: &mut Vec<PromptPart>) {
    if !plain.is_empty() {
        parts.push(PromptPart::Text(std::mem::take(plain)));
    }
}

/// Returns the placeholder at the start of text, and the rest.
fn placeholder(text: &str) -> Option<(PromptPart, &str)> {
    if let Some(rest) = text.strip_prefix('$') {
        dollar(rest)
    } else if let Some(rest) = text.strip_prefix("@call:") {
        let (call, after) = call::call(text, rest)?;
        Some((PromptPart::Call(call), after))
    } else {
        reference(text)
    }
}

fn dollar(rest: &str) -> Option<(PromptPart, &str)> {
    if let Some(after) = after_name(rest, "ARGUMENTS") {
        return Some(indexed(after).unwrap_or((PromptPart::Arguments, after)));
    }
    if let Some(after) = after_name(rest, "INPUT") {
        return Some((PromptPart::Input, after));
    }
    if let Some(after) = after_name(rest, "MEDIA_INPUTS") {
        return Some((PromptPart::MediaInputs, after));
    }
    let (index, after) = number(rest)?;
    is_end_of_short(after).then_some((PromptPart::Word { index, short: true }, after))
}

/// Returns the rest after `name` if the name ends there: `$INPUTS` is not `$INPUT`.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let after = text.strip_prefix(name)?;
    (!after.starts_with(|c: char| c.is_alphanumeric() || c == '_')).then_some(after)
}

fn indexed(after: &str) -> Option<(PromptPart, &str)> {
    let (index, after) = number(after.strip_prefix('[')?)?;
    Some((PromptPart::Word { index, short: false }, after.strip_prefix(']')?))
}

/// Reads a number of at most three digits without leading zeros.
fn number(text: &str) -> Option<(usize, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = text.split_at(length);
    let is_plain = digits == "0" || !digits.starts_with('0');
    (length <= 3 && is_plain).then(|| digits.parse().ok()).flatten().map(|index| (index, after))
}

/// Returns whether `$n` ends here: prices such as `$5.00`, `$1,000` and `$5k` are text.
fn is_end_of_short(after: &str) -> bool {
    let mut next = after.chars();
    match next.next() {
        Some(c) if c.is_alphanumeric() || c == '_' => false,
        Some('.' | ',') => !next.next().is_some_and(|c| c.is_ascii_digit()),
        _ => true,
    }
}

/// Reads `{{module.path}}`; other text between braces is literal.
fn reference(text: &str) -> Option<(PromptPart, &str)> {
    let rest = text.strip_prefix("{{")?;
    let (inside, closing) = rest.split_at(rest.find(['{', '}'])?);
    let after = closing.strip_prefix("}}")?;
    let raw = text.get(..inside.len() + 4)?;
    let (module, path) = inside.trim().split_once('.')?;
    let is_path = !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || "_-$.[]".contains(c));
    if !is_module_name(module) || !is_path {
        return None;
    }
    let reference =
        PromptPart::Reference { module: module.to_owned(), path: path.to_owned(), raw: raw.to_owned() };
    Some((reference, after))
}

#[cfg(test)]
mod tests;
