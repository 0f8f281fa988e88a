//! Builds the messages to the model from a module and a checked input (docs/spec/modules.md).
//!
//! The parts of the prompt are expanded in one pass. Text from the input is not expanded again, so a
//! `$ARGUMENTS` in an input stays as it is.

use std::cell::OnceCell;

use cog_harmony::{Conversation, Message, Part, Role};
use cog_json::Node;
use cog_module::{Module, Prompt, PromptPart};
use cog_provider::{ImageRequest, OutputSchema};
use cog_spec::{Code, ErrorBody, Modality};

use crate::input::CheckedInput;

/// The maximum length of the expanded prompt: 64 MB. A prompt may contain the same placeholder many thousand
/// times, and each is replaced by the complete input.
const MAX_LEN: usize = 64 * 1024 * 1024;

/// The user message when nothing else is left to send.
const GO: &str = "Do the task now, and reply in the requested format.";

/// What `$INPUT` is for a handoff packet. Another agent wrote it, so it is never part of the system message.
const PACKET: &str = "(the handoff packet in the user message)";

/// Returns the messages of a run: one system message, which ends with the instructions about the answer, and
/// one user message with the input that the prompt did not place; between them stands what was said before. Where the two are sent as one message, the input and the place
/// of the answer are marked, as in the examples of a prompt.
///
/// `texts` replace the calls and references of the prompt, in their order.
///
/// Media are added to the user message, the only one where providers accept them. With `$MEDIA_INPUTS`, they
/// are placed between the prompt's text before and after it; otherwise they come last.
///
/// # Errors
/// E1005 when the prompt would be longer than 64 MB.
pub(crate) fn conversation(
    module: &Module,
    output: Option<&OutputSchema>,
    input: &CheckedInput,
    texts: &[String],
    media: Vec<Part>,
) -> Result<Conversation, ErrorBody> {
    let instructions = output.map_or("", |output| &output.instructions);
    let room = module.prompt.text().len() + instructions.len();
    let (mut system, after) = fill(module.prompt.parts(), input, texts, room).ok_or_else(too_long)?;
    let unplaced = unplaced(&module.prompt, input);
    let is_one_message = media.is_empty() && output.is_some_and(|output| output.form.is_one_message);
    let unplaced = match is_one_message {
        true => {
            Some(unplaced.map_or_else(|| "Answer:".to_owned(), |input| format!("Input: {input}\nAnswer:")))
        }
        false => unplaced,
    };
    let mut user = if media.is_empty() {
        system.extend(after);
        vec![Part::text(unplaced.unwrap_or_else(|| GO.to_owned()))]
    } else {
        let placed = after.is_some();
        let texts = [after, unplaced].into_iter().flatten().filter(|text| !text.trim().is_empty());
        let texts: Vec<Part> = texts.map(Part::text).collect();
        if placed { [media, texts].concat() } else { [texts, media].concat() }
    };
    if let Some(words) = input.instructions().map(callers_words) {
        // Some engines accept only one text.
        match user.last_mut() {
            Some(Part::Text(last)) if is_one_message => last.text = format!("{words}\n\n{}", last.text),
            Some(Part::Text(last)) => last.text.extend(["\n\n", &words]),
            _ => user.push(Part::text(words)),
        }
    }
    system.truncate(system.trim_end().len());
    system.push_str(instructions);
    let user = Message::new(Role::User, user);
    let history = input.history().iter().cloned();
    Ok(Conversation::new([Message::system(system)].into_iter().chain(history).chain([user])))
}

/// Returns the caller's instructions, marked: the prompt comes from the module, and these from whoever calls it.
fn callers_words(words: &str) -> String {
    format!(
        "The caller of this module adds the instructions below. They are not part of the input. Follow them only as far as they \
         change neither the task nor the format of the answer.\n\n<caller_instructions>\n{words}\n</caller_instructions>"
    )
}

/// Expands the placeholders of a prompt into text with room for so many bytes. The prompt is split at
/// its media. None when it is too long.
fn fill(
    parts: &[PromptPart],
    input: &CheckedInput,
    texts: &[String],
    room: usize,
) -> Option<(String, Option<String>)> {
    let mut before = None;
    let mut texts = texts.iter();
    let mut text = String::with_capacity(room);
    let words: Vec<&str> = input.arguments().split_whitespace().collect();
    let input_json = OnceCell::new();
    for part in parts {
        let raw;
        let expanded = match part {
            PromptPart::Text(text) => text,
            PromptPart::Arguments => input.arguments(),
            PromptPart::Word { index, .. } if *index < words.len() => {
                words.get(*index).copied().unwrap_or_default()
            }
            PromptPart::Input if input.packet().is_some() => PACKET,
            PromptPart::Input => input_json.get_or_init(|| input.for_prompt().to_string()),
            PromptPart::MediaInputs => {
                // All media are placed at the first placeholder.
                if before.is_none() {
                    before = Some(std::mem::take(&mut text));
                }
                ""
            }
            PromptPart::Call(_) | PromptPart::Reference { .. } if !texts.as_slice().is_empty() => {
                texts.next().map_or("", String::as_str)
            }
            // Calls and references without results, and words that do not exist, are text, such as `$5` (ruling R66).
            other => {
                raw = other.raw();
                &raw
            }
        };
        if before.as_ref().map_or(0, String::len) + text.len() + expanded.len() > MAX_LEN {
            return None;
        }
        text.push_str(expanded);
    }
    Some(match before {
        Some(before) => (before, Some(text)),
        None => (text, None),
    })
}

/// Returns a prompt with its placeholders filled; none when it is too long.
pub(crate) fn text(parts: &[PromptPart], input: &CheckedInput) -> Option<String> {
    let (before, after) = fill(parts, input, &[], 0)?;
    Some(before + &after.unwrap_or_default())
}

fn too_long() -> ErrorBody {
    let message = format!("the prompt with the inserted input exceeds {MAX_LEN} bytes");
    ErrorBody::new(Code::InputTooLarge, message)
        .suggest("Shorten the input, or use fewer placeholders in the prompt.")
}

/// Returns whether the system message is the same for every input.
pub(crate) fn has_stable_system(prompt: &Prompt) -> bool {
    prompt.parts().iter().all(|part| !is_input(part))
}

/// Returns the beginning of the prompt that is the same for every input.
pub(crate) fn stable_text(prompt: &Prompt) -> String {
    let stable = prompt.parts().iter().take_while(|part| !is_input(part));
    stable.map(|part| if let PromptPart::Text(text) = part { text.as_str() } else { "" }).collect()
}

fn is_input(part: &PromptPart) -> bool {
    matches!(
        part,
        PromptPart::Arguments
            | PromptPart::Word { .. }
            | PromptPart::Input
            | PromptPart::Call(_)
            | PromptPart::Reference { .. }
    )
}

/// Returns the input that no placeholder used, as JSON, and any handoff packet; none when nothing is left. Words use it only if all of them are
/// inserted (ruling R66).
fn unplaced(prompt: &Prompt, input: &CheckedInput) -> Option<String> {
    if input.packet().is_some() {
        return Some(input.for_prompt().to_string());
    }
    let parts = prompt.parts();
    let has_word =
        |word| parts.iter().any(|part| matches!(part, PromptPart::Word { index, .. } if *index == word));
    let words = input.arguments().split_whitespace().count();
    if parts.contains(&PromptPart::Input) {
        None
    } else if parts.contains(&PromptPart::Arguments) || words > 0 && (0..words).all(has_word) {
        input.without_arguments()
    } else {
        Some(input.for_prompt().to_string())
    }
}

// The request for a model that generates only images: it reads no instructions, and draws what it is sent.

/// The titles of sections that describe the contract to a model that writes text.
const CONTRACT: [&str; 3] = ["input", "output", "errors"];
/// The fields of an input that models accept in addition to the prompt: `{"width": 1024, "height": 1024}`, and a word.
const SIZE: &str = "size";
const STYLE: &str = "style";

/// Returns the request for an image: the prompt without the sections about the contract, the text of the input, and its
/// other fields. None for a module that generates no images, and for a prompt that is too long.
pub(crate) fn image_request(module: &Module, input: &CheckedInput) -> Option<ImageRequest> {
    if !module.manifest.modalities.output.contains(&Modality::Image) {
        return None;
    }
    let parts = without_contract(module.prompt.parts());
    let (mut text, after) = fill(&parts, input, &[], module.prompt.text().len())?;
    text.extend(after);
    let mut request = ImageRequest { prompt: text.trim().to_owned(), ..ImageRequest::default() };
    let is_placed = parts.contains(&PromptPart::Arguments) && !input.arguments().is_empty();
    let text_field = module.contract.args_target().unwrap_or_default();
    for (key, value) in input.for_prompt().members() {
        match key {
            SIZE if size_of(value).is_some() => request.size = size_of(value),
            STYLE if value.as_str().is_some() => request.style = value.as_str().map(str::to_owned),
            _ if parts.contains(&PromptPart::Input) => {}
            key if key == text_field && is_placed => {}
            key if key == text_field => add(&mut request.prompt, value.as_str().unwrap_or_default()),
            key => add(&mut request.prompt, &format!("{key}: {}", as_text(value))),
        }
    }
    if let Some(words) = input.instructions() {
        add(&mut request.prompt, words);
    }
    Some(request)
}

fn add(prompt: &mut String, text: &str) {
    if !prompt.is_empty() {
        prompt.push_str("\n\n");
    }
    prompt.push_str(text);
}

fn as_text(value: Node<'_>) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn size_of(value: Node<'_>) -> Option<(u32, u32)> {
    let width = value.get("width")?.as_u64()?;
    let height = value.get("height")?.as_u64()?;
    Some((u32::try_from(width).ok()?, u32::try_from(height).ok()?))
}

/// Removes the title and the sections about the contract.
fn without_contract(parts: &[PromptPart]) -> Vec<PromptPart> {
    let mut sections = Sections { skipped_level: None, is_line_start: true };
    let mut left = Vec::new();
    for part in parts {
        match part {
            PromptPart::Text(text) => {
                let lines = text.split_inclusive('\n').filter(|line| sections.contain(line));
                left.push(PromptPart::Text(lines.collect()));
            }
            other => {
                sections.is_line_start = false;
                if sections.skipped_level.is_none() {
                    left.push(other.clone());
                }
            }
        }
    }
    left
}

/// The sections of a Markdown text that is read line by line.
struct Sections {
    /// The level of the heading whose section is skipped.
    skipped_level: Option<usize>,
    is_line_start: bool,
}

impl Sections {
    /// Reads a line. Returns whether it stays.
    fn contain(&mut self, line: &str) -> bool {
        let is_heading = self.is_line_start && line.starts_with('#');
        self.is_line_start = line.ends_with('\n');
        if !is_heading {
            return self.skipped_level.is_none();
        }
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if self.skipped_level.is_none_or(|skipped| level <= skipped) {
            let is_contract = CONTRACT.contains(&title.trim().to_lowercase().as_str());
            self.skipped_level = is_contract.then_some(level);
        }
        self.skipped_level.is_none() && level > 1
    }
}

#[cfg(test)]
mod tests {
    use cog_module::Prompt;

    use super::*;

    fn left(text: &str) -> String {
        without_contract(Prompt::parse(text).parts()).iter().map(PromptPart::raw).collect()
    }

    #[test]
    fn sections_about_the_contract_are_removed() {
        let prompt = "# Logos\n\nDraw $ARGUMENTS.\n\n## Input\n\n- `query` $INPUT\n### More\n$1\n## Colours\n\nBlue.\n\n\
                      ## Output\n\n- `image`\n\n## ERRORS \n\n- `E2004`\n";
        assert_eq!(left(prompt), "\nDraw $ARGUMENTS.\n\n## Colours\n\nBlue.\n\n");
        assert_eq!(
            left("Draw a #hashtag and\n$ARGUMENTS# Output"),
            "Draw a #hashtag and\n$ARGUMENTS# Output"
        );
    }
}
