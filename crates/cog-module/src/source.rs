use std::{ops::Range, path::PathBuf};

/// A text file of a module.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path, for messages.
    pub(crate) path: PathBuf,
    /// Its text, without a byte order mark.
    pub(crate) text: String,
}

/// A location in text, with an excerpt of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The text of the line, shortened around the location.
    pub excerpt: String,
    /// The byte range of the location in `excerpt`.
    pub marked: Range<usize>,
}

impl Location {
    /// Returns whether the excerpt starts at the start of its line.
    pub(crate) fn starts_at_line_start(&self) -> bool {
        let before = self.excerpt.get(..self.marked.start).unwrap_or_default();
        before.chars().count() + 1 == self.column as usize
    }
}

/// The maximum bytes of a line that are shown on each side of a location.
const MARGIN: usize = 120;

impl Source {
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Returns the location of a byte range; ranges past the end are at the end.
    pub(crate) fn location(&self, span: Range<usize>) -> Location {
        let start = floor_boundary(&self.text, span.start);
        let (before, after) = self.text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = start + after.find(['\n', '\r']).unwrap_or(after.len());
        let line_number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = self.text.get(line_start..start).map_or(0, |before| before.chars().count()) + 1;

        let from = floor_boundary(&self.text, start.saturating_sub(MARGIN).max(line_start));
        let to = floor_boundary(&self.text, (start + 2 * MARGIN).min(line_end)).max(start);
        let end = floor_boundary(&self.text, span.end).clamp(start, to);
        Location {
            line: u32::try_from(line_number).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            excerpt: self.text.get(from..to).unwrap_or_default().to_owned(),
            marked: start - from..end - from,
        }
    }

    /// Returns the offset of a line and a column, both from 1, with columns in characters.
    pub(crate) fn offset(&self, line: u64, column: u64) -> usize {
        let mut start = 0;
        for _ in 1..line {
            let rest = self.text.get(start..).unwrap_or_default();
            let Some(newline) = rest.find('\n') else { break };
            start += newline + 1;
        }
        let rest = self.text.get(start..).unwrap_or_default();
        let skipped = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        start + rest.char_indices().nth(skipped).map_or(rest.len(), |(offset, _)| offset)
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

/// Edits of text, by the bytes they replace; everything else is unchanged.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    list: Vec<(Range<usize>, String)>,
}

impl Edits {
    /// Replaces a range.
    pub(crate) fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.list.push((span, text.into()));
    }

    /// Inserts text before an offset.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Returns the edited text. Edits at the same offset are applied in the order they were added.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.list.sort_by_key(|(span, _)| span.start);
        let mut out = String::with_capacity(text.len() + 256);
        let mut done = 0;
        for (span, replacement) in &self.list {
            out.push_str(text.get(done..span.start).unwrap_or_default());
            out.push_str(replacement);
            done = done.max(span.end);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

/// Returns the line ending of text.
pub(crate) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns the offset after the line that contains an offset.
pub(crate) fn after_line(text: &str, offset: usize) -> usize {
    let is_line_start = offset > 0 && text.as_bytes().get(offset - 1) == Some(&b'\n');
    if is_line_start {
        return offset;
    }
    text.get(offset..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| offset + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_count_lines_and_characters() {
        let source = Source::new("x", "a: 1\r\nb\u{e9}: oops\n");
        let start = source.text.find("oops").unwrap();
        let location = source.location(start..start + 4);
        assert_eq!((location.line, location.column), (2, 5));
        assert_eq!(location.excerpt.get(location.marked), Some("oops"));
        assert_eq!(source.offset(2, 5), start);
    }

    #[test]
    fn long_line_is_shortened_around_the_location() {
        let source = Source::new("x", format!("{}!{}", "a".repeat(5000), "b".repeat(5000)));
        let location = source.location(5000..5001);
        assert!(location.excerpt.len() < 400);
        assert_eq!(location.excerpt.get(location.marked), Some("!"));
        assert_eq!(location.column, 5001);
    }

    #[test]
    fn location_past_the_end_is_the_end() {
        let location = Source::new("x", "ab").location(10..20);
        assert_eq!((location.line, location.column, location.marked), (1, 3, 2..2));
    }
}

#[cfg(test)]
mod edit_tests {
    use super::*;

    #[test]
    fn edits_change_nothing_else() {
        let mut edits = Edits::default();
        edits.insert(6, "!");
        edits.replace(0..1, "J");
        edits.insert(6, "?");
        assert_eq!(edits.apply("hello world"), "Jello !?world");
    }

    #[test]
    fn finds_the_next_line_at_every_offset() {
        assert_eq!(after_line("a\nb", 0), 2);
        assert_eq!(after_line("a\nb", 2), 2);
        assert_eq!(after_line("a\nb", 3), 3);
    }
}
