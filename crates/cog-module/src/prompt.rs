//! Parses the prompt once (docs/spec/modules.md, *Placeholders*).

mod call;
mod parse;

use std::ops::Range;

pub use self::call::{Call, CallError, CallOptions};

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
        let parts = parse::parts(&text);
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
        let takes_it = |part: &PromptPart| {
            matches!(part, PromptPart::Arguments | PromptPart::Word { .. } | PromptPart::Input)
        };
        self.parts.iter().any(takes_it)
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

#[cfg(test)]
mod tests;
