use std::ops::Range;

/// Changes to a text, by the bytes they replace; everything else stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    list: Vec<(Range<usize>, String)>,
}

impl Edits {
    /// Puts a text in place of a range.
    pub(crate) fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.list.push((span, text.into()));
    }

    /// Puts a text before an offset.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// The text with every change made. Changes at one offset are made in the order they were given.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.list.sort_by_key(|(span, _)| span.start);
        let (mut out, mut done) = (String::with_capacity(text.len() + 256), 0);
        for (span, replacement) in &self.list {
            out.push_str(text.get(done..span.start).unwrap_or_default());
            out.push_str(replacement);
            done = done.max(span.end);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

/// The way a text ends its lines.
pub(crate) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The offset after the line on which an offset stands.
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
    fn edits_leave_everything_else_alone() {
        let mut edits = Edits::default();
        edits.insert(6, "!");
        edits.replace(0..1, "J");
        edits.insert(6, "?");
        assert_eq!(edits.apply("hello world"), "Jello !?world");
    }

    #[test]
    fn the_line_after_is_found_at_every_offset() {
        assert_eq!(after_line("a\nb", 0), 2);
        assert_eq!(after_line("a\nb", 2), 2);
        assert_eq!(after_line("a\nb", 3), 3);
    }
}
