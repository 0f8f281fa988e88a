//! A terminal emulator for tests.

use unicode_width::UnicodeWidthChar as _;

/// The visible rows and the scrollback.
pub(super) struct Terminal {
    columns: usize,
    height: usize,
    /// The cells of every row, with the scrollback; the second cell of a wide character is NUL.
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    pub(super) fn new(columns: usize, height: usize) -> Self {
        Self { columns, height, cells: vec![Vec::new()], row: 0, column: 0 }
    }

    /// Returns the rows without trailing spaces and empty rows.
    pub(super) fn rows(&self) -> Vec<String> {
        let texts = self.cells.iter().map(|row| row.iter().filter(|c| **c != '\0').collect::<String>());
        let mut rows: Vec<String> = texts.map(|text| text.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Returns row and column, from 0.
    pub(super) fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    pub(super) fn write(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\r' => self.column = 0,
                '\n' => self.down(),
                '\u{1b}' => rest = self.escape(rest),
                c => self.put(c),
            }
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.cells.len() {
            self.cells.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        let width = c.width().expect("only what a terminal shows");
        assert!(
            self.column + width < self.columns,
            "a line as wide as the terminal: {:?}",
            self.cells[self.row]
        );
        let row = &mut self.cells[self.row];
        row.resize(row.len().max(self.column + width), ' ');
        row[self.column] = c;
        if width == 2 {
            row[self.column + 1] = '\0';
        }
        self.column += width;
    }

    /// Runs an escape sequence, and returns the text after it.
    fn escape<'a>(&mut self, text: &'a str) -> &'a str {
        let body = text.strip_prefix('[').expect("only CSI");
        let end = body.find(|c: char| c.is_ascii_alphabetic()).expect("an escape ends");
        let parameter = &body[..end];
        let number = body[..end].parse().unwrap_or(1);
        // The cursor stops at the edge of the window.
        let top = self.cells.len().saturating_sub(self.height);
        match &body[end..=end] {
            "A" => self.row = self.row.saturating_sub(number).max(top),
            "C" => self.column = (self.column + number).min(self.columns - 1),
            "K" => self.cells[self.row].truncate(self.column),
            "J" => {
                self.cells[self.row].truncate(self.column);
                self.cells[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            "m" => {}
            "h" | "l" if parameter == "?2026" => {}
            other => panic!("an escape that the frame does not need: {parameter}{other}"),
        }
        &body[end + 1..]
    }
}
