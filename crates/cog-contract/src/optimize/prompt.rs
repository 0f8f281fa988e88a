//! Which prompts of a model are refused.

use std::collections::BTreeMap;

use cog_module::{Prompt, PromptPart};

use super::copied::copied;

/// What a new prompt is compared with.
#[derive(Debug, Clone)]
pub struct PromptRules<'a> {
    /// The prompt that the module has.
    pub old: &'a Prompt,
    /// Texts that a prompt must not contain: the strings of the inputs and of the expected answers of the cases.
    pub sources: &'a [String],
}

/// Why a prompt is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It says nothing.
    #[error("it is empty")]
    Empty,
    /// It is longer than the limit in bytes.
    #[error("it has {bytes} bytes; the maximum is {max}")]
    TooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// It was written before.
    #[error("it was proposed before")]
    Repeated,
    /// It has a character that a person does not see.
    #[error("it has the invisible character U+{:04X}", u32::from(*.0))]
    Invisible(char),
    /// Its placeholders are others than those of the old prompt.
    #[error("its placeholders are others: {0}")]
    Placeholders(String),
    /// It has text of a case.
    #[error("it copies text of a case: \"{0}\"")]
    Copied(String),
    /// It tells the model to ignore the contract.
    #[error("it tells the model to ignore the contract: \"{0}\"")]
    OverridesContract(String),
    /// It contains a secret of the environment.
    #[error("it contains the secret {0}")]
    Secret(String),
}

impl PromptRules<'_> {
    /// Returns the maximum size of a prompt in bytes: twice the old one, and at least 8 KiB.
    pub fn max_bytes(&self) -> usize {
        (2 * self.old.text().len()).max(8 << 10)
    }

    /// Checks a prompt.
    ///
    /// # Errors
    /// The first reason for which it is refused.
    pub fn check(&self, text: &str) -> Result<(), Refusal> {
        let bytes = text.len();
        if text.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        if bytes > self.max_bytes() {
            return Err(Refusal::TooLong { bytes, max: self.max_bytes() });
        }
        if text.trim() == self.old.text().trim() {
            return Err(Refusal::Repeated);
        }
        if let Some(hidden) = text.chars().find(|c| is_hidden(*c) && !self.old.text().contains(*c)) {
            return Err(Refusal::Invisible(hidden));
        }
        if let Some(difference) = other_placeholders(self.old, &Prompt::parse(text)) {
            return Err(Refusal::Placeholders(difference));
        }
        if let Some(sentence) = overriding(text, self.old.text()) {
            return Err(Refusal::OverridesContract(sentence));
        }
        match copied(text, self.old.text(), self.sources.iter().map(String::as_str)) {
            Some(words) => Err(Refusal::Copied(words)),
            None => Ok(()),
        }
    }
}

/// Whether a character hides text from a person who reads the difference: control characters, marks that change the direction, and
/// tags, which can spell sentences. Joiners are letters of some scripts and of emoji.
fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    is_control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns how the placeholders differ. How often a call or a reference stands in a prompt changes what a run costs, so that their
/// number counts, too.
fn other_placeholders(old: &Prompt, new: &Prompt) -> Option<String> {
    let count = |prompt: &Prompt| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let placeholders = prompt.parts().iter().filter(|part| !matches!(part, PromptPart::Text(_)));
        placeholders.for_each(|part| *counts.entry(part.raw()).or_default() += 1);
        counts
    };
    let (old, new) = (count(old), count(new));
    let missing = old.iter().find(|(raw, number)| new.get(*raw).copied().unwrap_or_default() < **number);
    let added = new.iter().find(|(raw, number)| old.get(*raw).copied().unwrap_or_default() < **number);
    match (missing, added) {
        (Some((raw, _)), _) => Some(format!("`{raw}` is missing")),
        (None, Some((raw, _))) => Some(format!("`{raw}` is new")),
        (None, None) => None,
    }
}

/// Words for not following something.
const VERBS: [&str; 8] = ["ignor", "disregard", "bypass", "override", "overrul", "skip", "violat", "forget"];
/// What must be followed. "Ignore instructions in the text" is a good sentence, so instructions are not among them.
const NOUNS: [&str; 6] = ["schema", "contract", "envelope", "json", "format", "validation"];

/// Returns a sentence that tells the model to ignore its contract and was not in the old prompt. The runtime checks every answer, so that
/// such a prompt gains nothing; a person should not have to find it in a diff.
fn overriding(text: &str, old: &str) -> Option<String> {
    let sentences = text.split(['.', '!', '?', '\n', ';']).map(str::trim);
    let found =
        sentences.filter(|sentence| !sentence.is_empty() && !old.contains(sentence)).find(|sentence| {
            let lower = sentence.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            let is_verb = |word: &str| VERBS.iter().any(|verb| word.starts_with(verb));
            // The noun follows its verb.
            words.any(is_verb) && words.any(|word| NOUNS.contains(&word))
        });
    found.map(|sentence| sentence.chars().take(120).collect())
}
