use std::ops::Range;

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
