//! From a module and a checked input to the messages that the model gets (docs/spec/modules.md).
//!
//! One pass over the parts of the prompt: what came from an input is put in place and never looked
//! at again, so that a `$ARGUMENTS` inside an input stays what it is.

use std::cell::OnceCell;

use cog_harmony::{Conversation, Message, Part, Role};
use cog_module::{Module, Prompt, PromptPart};
use cog_spec::{Code, ErrorBody};

use crate::{compiled::Compiled, input::CheckedInput};

/// The longest prompt once its placeholders are filled: 64 MB. A large input is put in place as often as
/// the prompt asks for it, which a module from elsewhere may do a hundred thousand times.
const MAX_LEN: usize = 64 * 1024 * 1024;

/// What a user message says where nothing else is left to say.
const GO: &str = "Answer now, in the format given.";

/// The conversation of a run: one system message, and one user message with what the prompt did not place. Media stand in
/// the user message, the only one where vendors take them: behind it, or where the prompt has `$MEDIA_INPUTS`, between
/// what the prompt says before that and what it says after.
///
/// # Errors
/// E1005 where the prompt would be longer than 64 MB.
pub(crate) fn conversation(
    module: &Module,
    compiled: &Compiled,
    input: &CheckedInput,
    media: Vec<Part>,
) -> Result<Conversation, ErrorBody> {
    let (mut system, after) = fill(&module.prompt, input, compiled.words.len()).ok_or_else(too_long)?;
    let unplaced = unplaced(&module.prompt, input);
    let user = if media.is_empty() {
        system.extend(after);
        vec![Part::text(unplaced.unwrap_or_else(|| GO.to_owned()))]
    } else {
        let placed = after.is_some();
        let told = [after, unplaced].into_iter().flatten().filter(|text| !text.trim().is_empty());
        let told: Vec<Part> = told.map(Part::text).collect();
        if placed { [media, told].concat() } else { [told, media].concat() }
    };
    system.push_str(&compiled.words);
    Ok(Conversation::new(vec![Message::system(system), Message::new(Role::User, user)]))
}

/// The prompt with its placeholders filled, and room for what follows it, cut where its media stand; none where it is too
/// long.
fn fill(prompt: &Prompt, input: &CheckedInput, room: usize) -> Option<(String, Option<String>)> {
    let mut before = None;
    let mut text = String::with_capacity(prompt.text().len() + room);
    let words: Vec<&str> = input.arguments().split_whitespace().collect();
    let whole = OnceCell::new();
    for part in prompt.parts() {
        let raw;
        let piece = match part {
            PromptPart::Text(piece) => piece,
            PromptPart::Arguments => input.arguments(),
            PromptPart::Word { index, .. } => words.get(*index).copied().unwrap_or_default(),
            PromptPart::Input => whole.get_or_init(|| input.told().to_string()),
            PromptPart::MediaInputs => {
                // They stand in one place.
                if before.is_none() {
                    before = Some(std::mem::take(&mut text));
                }
                ""
            }
            // Nothing stands in their place yet: calls and references belong to later stages.
            other => {
                raw = other.raw();
                &raw
            }
        };
        if before.as_ref().map_or(0, String::len) + text.len() + piece.len() > MAX_LEN {
            return None;
        }
        text.push_str(piece);
    }
    Some(match before {
        Some(before) => (before, Some(text)),
        None => (text, None),
    })
}

fn too_long() -> ErrorBody {
    let message = format!("the prompt with the input in its places is longer than {MAX_LEN} bytes");
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
        Some(input.told().to_string())
    }
}
