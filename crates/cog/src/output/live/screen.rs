//! A frame of lines that is redrawn in place on a terminal.

use std::fmt::Write as _;

/// A line of a frame: its text, which may be coloured, and its columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) width: usize,
}

/// The last frame on the terminal. The cursor is at the end of its last line.
#[derive(Debug, Default)]
pub(super) struct Screen {
    shown: Vec<Line>,
    columns: usize,
}

/// Synchronized updates; terminals without support ignore these sequences.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

impl Screen {
    /// Returns the output that replaces the last frame by these lines; unchanged lines are not written. Lines must be
    /// narrower than the terminal, and fewer than its rows.
    pub(super) fn show(&mut self, lines: Vec<Line>, columns: usize) -> String {
        // Keystrokes are echoed at the end of the frame, so each frame begins with a jump to its first line.
        let mut text = format!("{BEGIN}{}", self.to_top(columns));
        // A resized terminal may have wrapped lines again, so all lines have moved.
        let is_same_place = columns == self.columns;
        if !is_same_place {
            text += CLEAR_BELOW;
        }
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                text += "\r\n";
            }
            if !is_same_place || self.shown.get(index) != Some(line) {
                text += &line.text;
                text += CLEAR_LINE;
            }
        }
        // Move to the end of the last line, if it was not written.
        let end = lines.last().map_or(0, |line| line.width);
        let _ = write!(text, "\r{}{CLEAR_BELOW}{END}", right(end));
        (self.shown, self.columns) = (lines, columns);
        text
    }

    /// Returns the output that erases the frame.
    pub(super) fn clear(&mut self, columns: usize) -> String {
        let text = if self.shown.is_empty() { String::new() } else { self.to_top(columns) + CLEAR_BELOW };
        self.shown.clear();
        text
    }

    /// Moves the cursor to the start of the frame, on a terminal of this width: one that became narrower has wrapped the lines.
    fn to_top(&self, columns: usize) -> String {
        let rows: usize = self.shown.iter().map(|line| line.width.max(1).div_ceil(columns.max(1))).sum();
        let above = rows.saturating_sub(1);
        if above == 0 { "\r".to_owned() } else { format!("\r\u{1b}[{above}A") }
    }
}

fn right(columns: usize) -> String {
    if columns == 0 { String::new() } else { format!("\u{1b}[{columns}C") }
}

#[cfg(test)]
mod tests {
    use super::{super::terminal::Terminal, *};

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts
            .iter()
            .map(|text| Line { text: (*text).to_owned(), width: crate::output::width(text) })
            .collect()
    }

    #[test]
    fn frame_replaces_previous_one() {
        let mut terminal = Terminal::new(20, 6);
        let mut screen = Screen::default();
        terminal.write("$ cog run\r\n");
        terminal.write(&screen.show(lines(&["one", "two", "three"]), 20));
        terminal.write(&screen.show(lines(&["one", "2"]), 20));
        assert_eq!(terminal.rows(), ["$ cog run", "one", "2"]);
        terminal.write(&screen.show(lines(&["审查", "2", "three", "four"]), 20));
        assert_eq!(terminal.rows(), ["$ cog run", "审查", "2", "three", "four"]);
    }

    #[test]
    fn unchanged_lines_are_not_written() {
        let mut screen = Screen::default();
        screen.show(lines(&["stays", "goes"]), 20);
        let written = screen.show(lines(&["stays", "comes"]), 20);
        assert!(!written.contains("stays") && written.contains("comes"), "{written:?}");
    }

    #[test]
    fn frame_at_bottom_scrolls_and_preserves_scrollback() {
        let mut terminal = Terminal::new(20, 3);
        let mut screen = Screen::default();
        terminal.write("first\r\nsecond\r\n");
        terminal.write(&screen.show(lines(&["a", "b"]), 20));
        terminal.write(&screen.show(lines(&["a", "b", "c"]), 20));
        assert_eq!(terminal.rows(), ["first", "second", "a", "b", "c"]);
        terminal.write(&screen.clear(20));
        assert_eq!(terminal.rows(), ["first", "second"]);
    }

    #[test]
    fn redraws_over_keystrokes() {
        let mut terminal = Terminal::new(20, 4);
        let mut screen = Screen::default();
        terminal.write(&screen.show(lines(&["one", "two"]), 20));
        terminal.write("^C");
        terminal.write(&screen.show(lines(&["one", "two"]), 20));
        assert_eq!(terminal.cursor(), (1, 3));
        terminal.write(&screen.clear(20));
        assert_eq!(terminal.rows(), Vec::<String>::new());
    }
}
