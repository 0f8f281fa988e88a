//! From a module and a checked input to the messages that the model gets (supplement section 3).
//!
//! One pass over the parts of the prompt: what came from an input is put in place and never looked
//! at again, so that a `$ARGUMENTS` inside an input stays what it is.

use cog_harmony::{Conversation, Message};
use cog_module::{Module, Prompt, PromptPart};

use crate::{compiled::Compiled, input::CheckedInput};

/// The conversation of a run: one system message, and one user message with what the prompt did not
/// place.
pub(crate) fn conversation(module: &Module, compiled: &Compiled, input: &CheckedInput) -> Conversation {
    let mut system = fill(&module.prompt, input, compiled.words.len());
    system.push_str(&compiled.words);
    let user =
        unplaced(&module.prompt, input).unwrap_or_else(|| "Answer now, in the format given.".to_owned());
    Conversation::new(vec![Message::system(system), Message::user(user)])
}

/// The prompt with its placeholders filled, and room for what follows it.
fn fill(prompt: &Prompt, input: &CheckedInput, room: usize) -> String {
    let mut text = String::with_capacity(prompt.text().len() + room);
    for part in prompt.parts() {
        match part {
            PromptPart::Text(piece) => text.push_str(piece),
            PromptPart::Arguments => text.push_str(input.arguments()),
            PromptPart::Word { index, .. } => {
                text.push_str(input.arguments().split_whitespace().nth(*index).unwrap_or_default());
            }
            PromptPart::Input => text.push_str(&input.value().to_string()),
            // Nothing stands in their place yet: media, calls and references belong to later stages.
            other => text.push_str(&other.raw()),
        }
    }
    text
}

/// What of the input no placeholder took up, as JSON; none where nothing is left.
fn unplaced(prompt: &Prompt, input: &CheckedInput) -> Option<String> {
    if prompt.parts().contains(&PromptPart::Input) {
        None
    } else if prompt.places_input() {
        input.without_arguments()
    } else {
        Some(input.value().to_string())
    }
}
