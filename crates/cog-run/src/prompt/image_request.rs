//! The request for a model that generates only images: it reads no instructions, and draws what it is sent.

use cog_json::Node;
use cog_module::{Module, PromptPart};
use cog_provider::ImageRequest;
use cog_spec::Modality;

use crate::{input::CheckedInput, prompt};

/// The titles of sections that describe the contract to a model that writes text.
const CONTRACT: [&str; 3] = ["input", "output", "errors"];
/// The fields of an input that models accept in addition to the prompt: `{"width": 1024, "height": 1024}`, and a word.
const SIZE: &str = "size";
const STYLE: &str = "style";

/// Returns the request for an image: the prompt without the sections about the contract, the text of the input, and its
/// other fields. None for a module that generates no images, and for a prompt that is too long.
pub(crate) fn from_input(module: &Module, input: &CheckedInput) -> Option<ImageRequest> {
    if !module.manifest.modalities.output.contains(&Modality::Image) {
        return None;
    }
    let parts = without_contract(module.prompt.parts());
    let (mut text, after) = prompt::fill(&parts, input, &[], module.prompt.text().len())?;
    text.extend(after);
    let mut request = ImageRequest { prompt: text.trim().to_owned(), ..ImageRequest::default() };
    let has = |part| parts.contains(&part);
    let is_placed = has(PromptPart::Arguments) && !input.arguments().is_empty();
    let text_field = module.contract.args_target().unwrap_or_default();
    for (key, value) in input.for_prompt().members() {
        match key {
            SIZE if size_of(value).is_some() => request.size = size_of(value),
            STYLE if value.as_str().is_some() => request.style = value.as_str().map(str::to_owned),
            _ if has(PromptPart::Input) => {}
            key if key == text_field && is_placed => {}
            key if key == text_field => add(&mut request.prompt, value.as_str().unwrap_or_default()),
            key => add(&mut request.prompt, &format!("{key}: {}", as_text(value))),
        }
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
    let side = |name: &str| u32::try_from(value.get(name)?.as_u64()?).ok();
    Some((side("width")?, side("height")?))
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
