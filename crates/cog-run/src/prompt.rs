//! From a module and a checked input to the messages that the model gets (supplement section 3).
//!
//! One pass over the parts of the prompt: what came from an input is put in place and never looked
//! at again, so that a `$ARGUMENTS` inside an input stays what it is.

use std::cell::OnceCell;

use cog_harmony::{Conversation, Message};
use cog_module::{Module, Prompt, PromptPart};
use cog_spec::{Code, ErrorBody};

use crate::{compiled::Compiled, input::CheckedInput};

/// The longest prompt once its placeholders are filled: 64 MB. A large input is put in place as often as
/// the prompt asks for it, which a module from elsewhere may do a hundred thousand times.
const LONGEST: usize = 64 * 1024 * 1024;

/// The conversation of a run: one system message, and one user message with what the prompt did not
/// place.
///
/// # Errors
/// E1005 where the prompt would be longer than 64 MB.
pub(crate) fn conversation(
    module: &Module,
    compiled: &Compiled,
    input: &CheckedInput,
) -> Result<Conversation, ErrorBody> {
    let mut system = fill(&module.prompt, input, compiled.words.len()).ok_or_else(too_long)?;
    system.push_str(&compiled.words);
    let user =
        unplaced(&module.prompt, input).unwrap_or_else(|| "Answer now, in the format given.".to_owned());
    Ok(Conversation::new(vec![Message::system(system), Message::user(user)]))
}

/// The prompt with its placeholders filled, and room for what follows it; none where it is too long.
fn fill(prompt: &Prompt, input: &CheckedInput, room: usize) -> Option<String> {
    let mut text = String::with_capacity(prompt.text().len() + room);
    let words: Vec<&str> = input.arguments().split_whitespace().collect();
    let whole = OnceCell::new();
    for part in prompt.parts() {
        let raw;
        let piece = match part {
            PromptPart::Text(piece) => piece,
            PromptPart::Arguments => input.arguments(),
            PromptPart::Word { index, .. } => words.get(*index).copied().unwrap_or_default(),
            PromptPart::Input => whole.get_or_init(|| input.value().to_string()),
            // Nothing stands in their place yet: media, calls and references belong to later stages.
            other => {
                raw = other.raw();
                &raw
            }
        };
        if text.len() + piece.len() > LONGEST {
            return None;
        }
        text.push_str(piece);
    }
    Some(text)
}

fn too_long() -> ErrorBody {
    let message = format!("the prompt with the input in its places is longer than {LONGEST} bytes");
    ErrorBody::new(Code::InputTooLarge, message)
        .suggest("shorten the input, or let the prompt place it less often")
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
