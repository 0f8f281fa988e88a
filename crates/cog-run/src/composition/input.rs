//! The input of a composition, and the content of its media.

use std::sync::Arc;

use cog_json::{Node, Value};
use cog_module::{Module, PromptPart};

use crate::{
    RunInput, RunOptions,
    input::{CheckedInput, pointer_in_input},
    prompt,
};

/// The input of a composition.
///
/// A composition that continues has the content of media whose sources can expire. Its steps read the sources as they were,
/// because the answers of parts count only for the same input. The parts that run receive the content.
#[derive(Clone)]
pub(crate) struct CompositionInput {
    /// The input of the run, whose media can be opened.
    own: CheckedInput,
    /// The input before content replaced sources; none if it replaced none.
    original: Option<CheckedInput>,
    /// The replaced sources, and what replaced them.
    replaced: Arc<[(serde_json::Value, serde_json::Value)]>,
}

impl CompositionInput {
    pub(crate) fn new(module: &Module, own: CheckedInput, options: &RunOptions) -> Self {
        let original = options.original_input.clone().map(RunInput::Json);
        let original = original.and_then(|original| CheckedInput::new(module, original).ok());
        let replaced = original.as_ref().map(|original| replaced(original, &own)).unwrap_or_default();
        Self { own, original, replaced: replaced.into() }
    }

    /// Returns the input of the run.
    pub(crate) fn own(&self) -> &CheckedInput {
        &self.own
    }

    /// Returns the input that the steps read.
    pub(super) fn node(&self) -> Node<'_> {
        self.original.as_ref().unwrap_or(&self.own).node()
    }

    /// Returns the input as the caller gave it, and with the content of its media if that is known.
    pub(super) fn to_store(&self) -> (Value, Option<Value>) {
        match &self.original {
            Some(original) => (original.original(), Some(self.own.original())),
            None => (self.own.original(), None),
        }
    }

    /// Returns a prompt with its placeholders filled; none if the text is too long.
    pub(super) fn fill(&self, prompt: &[PromptPart]) -> Option<String> {
        prompt::text(prompt, self.original.as_ref().unwrap_or(&self.own))
    }

    /// Returns the input of a part with the content of its media, unless the module of the part does not accept that.
    pub(super) fn with_content(&self, module: &Module, input: RunInput) -> RunInput {
        let RunInput::Json(value) = &input else { return input };
        if self.replaced.is_empty() {
            return input;
        }
        let mut json = value.to_serde();
        if replace(&mut json, &self.replaced) == 0 {
            return input;
        }
        let stored = RunInput::Json(Value::from(json));
        if CheckedInput::new(module, stored.clone()).is_ok() { stored } else { input }
    }
}

/// Returns the sources of media that differ, each with its content.
fn replaced(original: &CheckedInput, own: &CheckedInput) -> Vec<(serde_json::Value, serde_json::Value)> {
    let (before, after) = (original.original().to_serde(), own.original().to_serde());
    let paths = original.media().iter().zip(own.media()).map(|((path, _), _)| path.pointer());
    let pairs = paths.filter_map(|pointer| {
        let pointer = pointer_in_input(&pointer);
        Some((before.pointer(pointer)?.clone(), after.pointer(pointer)?.clone()))
    });
    pairs.filter(|(before, after)| before != after).collect()
}

/// Replaces each of these sources in a value. Returns how many there were.
fn replace(value: &mut serde_json::Value, replaced: &[(serde_json::Value, serde_json::Value)]) -> usize {
    if let Some((_, content)) = replaced.iter().find(|(source, _)| source == value) {
        *value = content.clone();
        return 1;
    }
    match value {
        serde_json::Value::Array(items) => items.iter_mut().map(|item| replace(item, replaced)).sum(),
        serde_json::Value::Object(members) => {
            members.values_mut().map(|member| replace(member, replaced)).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_replaced_wherever_a_step_puts_them() {
        let (source, content) = (json!({"type": "url", "url": "u"}), json!({"type": "base64", "data": "d"}));
        let replaced = [(source.clone(), content.clone())];
        let mut input =
            json!({"images": [source, 7], "deep": {"image": {"type": "url", "url": "u"}}, "link": "u"});
        assert_eq!(replace(&mut input, &replaced), 2);
        assert_eq!(input, json!({"images": [content, 7], "deep": {"image": content}, "link": "u"}));
        assert_eq!(replace(&mut json!({"link": "u"}), &replaced), 0);
    }
}
