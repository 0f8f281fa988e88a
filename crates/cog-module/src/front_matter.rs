//! The front matter of `MODULE.md`: YAML between two `---` lines, then the prompt (module format v1).

use std::ops::Range;

use crate::{Diagnostic, Rule, source::Source};

/// The byte ranges of both parts of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    /// The YAML, without the `---` lines.
    pub(crate) yaml: Range<usize>,
    /// Everything after the second `---` line.
    pub(crate) body: Range<usize>,
}

/// Finds both parts.
pub(crate) fn split(source: &Source) -> Result<FrontMatter, Diagnostic> {
    let mut lines = Lines { text: &source.text, at: 0 };
    let first = lines.find(|(_, line)| !line.trim().is_empty());
    let Some((opening, "---")) = first.map(|(span, line)| (span, line.trim_end())) else {
        let message = "the file does not start with a `---` line";
        let diagnostic = Diagnostic::error(Rule::FrontMatter, &source.path, message).at(source, 0..0);
        return Err(diagnostic.suggest("Put the keys between two `---` lines at the top."));
    };
    match lines.find(|(_, line)| line.trim_end() == "---") {
        Some((closing, _)) => {
            Ok(FrontMatter { yaml: opening.end..closing.start, body: closing.end..source.text.len() })
        }
        None => {
            let message = "the front matter is not closed: a second `---` line is missing";
            let diagnostic = Diagnostic::error(Rule::FrontMatter, &source.path, message).at(source, opening);
            Err(diagnostic.suggest("Add a `---` line between the keys and the prompt."))
        }
    }
}

/// Returns the text with everything except the YAML blanked, so that offsets, lines and columns stay the same.
pub(crate) fn yaml_alone(source: &Source, front: &FrontMatter) -> Source {
    let opening = source.text.get(..front.yaml.start).unwrap_or_default();
    let blank: String = opening.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    let yaml = source.text.get(front.yaml.clone()).unwrap_or_default();
    Source::new(&source.path, blank + yaml)
}

/// An iterator over lines and their byte ranges, with line endings.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (Range<usize>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        let span = self.at..self.at + line.len();
        self.at = span.end;
        Some((span, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(text: &str) -> Result<(String, String), Diagnostic> {
        let source = Source::new("MODULE.md", text);
        split(&source).map(|front| (text[front.yaml].to_owned(), text[front.body].to_owned()))
    }

    #[test]
    fn prompt_is_the_text_after_the_second_hyphens() {
        let (yaml, body) = halves("---\r\nname: a\r\n---\r\n# Title\n---\nmore\n").unwrap();
        assert_eq!((yaml.as_str(), body.as_str()), ("name: a\r\n", "# Title\n---\nmore\n"));
    }

    #[test]
    fn missing_front_matter_is_reported() {
        assert_eq!(halves("# Title\n").unwrap_err().rule, Rule::FrontMatter);
        let unclosed = halves("---\nname: a\n# Title\n").unwrap_err();
        assert!(unclosed.message.contains("not closed"), "{unclosed}");
    }

    #[test]
    fn offsets_are_preserved_in_the_yaml() {
        let source = Source::new("MODULE.md", "---\nname: a\n---\nbody\n");
        let alone = yaml_alone(&source, &split(&source).unwrap());
        assert_eq!(alone.text, "   \nname: a\n");
    }
}
