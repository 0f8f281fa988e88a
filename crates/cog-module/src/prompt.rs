//! The prompt, parsed once (docs/spec/modules.md, *Placeholders*).

mod parse;

/// A prompt: its source, and the source cut at its placeholders.
///
/// The parts, written one after another with [`PromptPart::raw`], are the source again: text stays
/// as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    parts: Vec<PromptPart>,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptPart {
    /// Text, taken as it is.
    Text(String),
    /// `$ARGUMENTS`: the text given with `--args`, else the input's `$ARGUMENTS` or `query`.
    Arguments,
    /// `$ARGUMENTS[n]` or `$n`: a word of that text, counted from 0.
    Word {
        /// Which word, from 0.
        index: usize,
        /// Written as `$n`.
        short: bool,
    },
    /// `$INPUT`: the input as JSON.
    Input,
    /// `$MEDIA_INPUTS`: where the media stand.
    MediaInputs,
    /// `@call:NAME(ARGUMENTS)[OPTIONS]`: the result of another module (docs/spec/composition.md).
    Call(Call),
    /// `{{NAME.path}}`: a value from the result of a module that was called before.
    Reference {
        /// The module.
        module: String,
        /// The path in its envelope, without the leading dot.
        path: String,
        /// As it was written.
        raw: String,
    },
}

/// A module called from a prompt, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The module.
    pub name: String,
    /// What stands between the parentheses; none without parentheses.
    pub arguments: Option<String>,
    /// What stands between the brackets, item by item.
    pub options: Vec<String>,
    /// As it was written.
    pub raw: String,
}

impl Prompt {
    /// Parses a prompt. Nothing is an error: what is no placeholder is text.
    pub fn parse(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = parse::parts(&text);
        Self { text, parts }
    }

    /// The source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts, in order; no two texts follow each other.
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// Whether some placeholder takes up the input: then it is not sent a second time.
    pub fn places_input(&self) -> bool {
        let takes_it = |part: &PromptPart| {
            matches!(part, PromptPart::Arguments | PromptPart::Word { .. } | PromptPart::Input)
        };
        self.parts.iter().any(takes_it)
    }

    /// Whether the media have their place in the prompt.
    pub fn places_media(&self) -> bool {
        self.parts.contains(&PromptPart::MediaInputs)
    }
}

impl PromptPart {
    /// The part as it was written.
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
