//! Positions in text: LSP counts lines from 0, and columns in UTF-16 units.

use std::ops::Range;

use tower_lsp_server::ls_types as lsp;

/// Text with the starts of its lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    text: String,
    starts: Vec<usize>,
}

impl Text {
    pub(crate) fn new(text: String) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after).collect();
        Self { text, starts }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text of a line without its end; empty past the last line.
    pub(crate) fn line(&self, line: u32) -> &str {
        let Some(start) = self.starts.get(line as usize) else { return "" };
        let end = self.starts.get(line as usize + 1).copied().unwrap_or(self.text.len());
        self.text.get(*start..end).unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    /// Returns the byte offset of a position; positions past the end of a line are at its end.
    pub(crate) fn offset(&self, position: lsp::Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize) else { return self.text.len() };
        start + offset_in(self.line(position.line), position.character)
    }

    /// Returns the position of a byte offset.
    pub(crate) fn position(&self, offset: usize) -> lsp::Position {
        let offset = self.text.floor_char_boundary(offset.min(self.text.len()));
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = self.text.get(start..offset).unwrap_or_default();
        lsp::Position::new(count(line), units(before))
    }

    pub(crate) fn range(&self, range: Range<usize>) -> lsp::Range {
        lsp::Range::new(self.position(range.start), self.position(range.end))
    }

    /// Returns the range of characters of a line, both counted from 1, as diagnostics have it.
    pub(crate) fn characters(&self, line: u32, column: u32, length: usize) -> lsp::Range {
        let line = line.saturating_sub(1);
        let mut characters = self.line(line).chars();
        let skipped: usize =
            characters.by_ref().take(column.saturating_sub(1) as usize).map(char::len_utf16).sum();
        let marked: usize = characters.take(length).map(char::len_utf16).sum();
        let end = lsp::Position::new(line, count(skipped + marked));
        lsp::Range::new(lsp::Position::new(line, count(skipped)), end)
    }

    /// Replaces a range, or all text without one.
    pub(crate) fn apply(&mut self, range: Option<lsp::Range>, new: &str) {
        let text = match range {
            None => new.to_owned(),
            Some(range) => {
                let start = self.offset(range.start);
                let end = self.offset(range.end).max(start);
                let mut text = std::mem::take(&mut self.text);
                text.replace_range(start..end, new);
                text
            }
        };
        *self = Self::new(text);
    }
}

/// Returns the byte offset of a column in UTF-16 units.
fn offset_in(line: &str, column: u32) -> usize {
    let mut left = column as usize;
    for (offset, character) in line.char_indices() {
        if left < character.len_utf16() {
            return offset;
        }
        left -= character.len_utf16();
    }
    line.len()
}

fn units(text: &str) -> u32 {
    count(text.encode_utf16().count())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_utf_16_units() {
        let text = Text::new("a\r\n\u{1F600}é x\n".to_owned());
        let at = text.as_str().find('x').unwrap();
        assert_eq!(text.position(at), lsp::Position::new(1, 4));
        assert_eq!(text.offset(lsp::Position::new(1, 4)), at);
        assert_eq!(
            text.characters(2, 4, 1),
            lsp::Range::new(lsp::Position::new(1, 4), lsp::Position::new(1, 5))
        );
    }

    #[test]
    fn position_outside_the_text_is_its_end() {
        let text = Text::new("ab\ncd".to_owned());
        assert_eq!(text.offset(lsp::Position::new(0, 99)), 2);
        assert_eq!(text.offset(lsp::Position::new(9, 0)), 5);
        assert_eq!(text.position(99), lsp::Position::new(1, 2));
    }

    #[test]
    fn edits_apply_to_the_text_before_them() {
        let mut text = Text::new("one\ntwo\n".to_owned());
        let two = lsp::Range::new(lsp::Position::new(1, 0), lsp::Position::new(1, 3));
        text.apply(Some(two), "2\n3");
        text.apply(Some(lsp::Range::new(lsp::Position::new(2, 1), lsp::Position::new(0, 0))), "!");
        assert_eq!(text.as_str(), "one\n2\n3!\n");
        text.apply(None, "new");
        assert_eq!(text.line(0), "new");
    }
}
